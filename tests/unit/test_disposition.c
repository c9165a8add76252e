/* Names and ranges of downloads. */
#include "server/http/disposition.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"report.pdf", "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"},
        {"a b+c.txt", "attachment; filename=\"a b+c.txt\"; filename*=UTF-8''a%20b%2Bc.txt"},
        {"100%.txt", "attachment; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt"},
        {"Amélie.txt", "attachment; filename=\"Am_lie.txt\"; filename*=UTF-8''Am%C3%A9lie.txt"},
        {"🌍.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%F0%9F%8C%8D.txt"},
        {"q\"\\.txt", "attachment; filename=\"q__.txt\"; filename*=UTF-8''q%22%5C.txt"},
        {"x\r\nSet-Cookie: y", "attachment; filename=\"x__Set-Cookie: y\"; filename*=UTF-8''x%0D%0ASet-Cookie%3A%20y"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT(4096);
        assert_int_equal(disposition_write(&out, cases[i].name), ERR_OK);
        assert_string_equal(buf_cstr(&out), cases[i].want);
        buf_done(&out);
    }
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        uint64_t size;
        enum range_kind want;
        uint64_t first, count;
    } cases[] = {
        {"bytes=0-0", 10, RANGE_PART, 0, 1},
        {"bytes=0-", 10, RANGE_PART, 0, 10},
        {"bytes=9-", 10, RANGE_PART, 9, 1},
        {"bytes=2-5", 10, RANGE_PART, 2, 4},
        {"Bytes= 2 - 5 ", 10, RANGE_PART, 2, 4},
        {"bytes=2-99", 10, RANGE_PART, 2, 8},
        {"bytes=-3", 10, RANGE_PART, 7, 3},
        {"bytes=-99", 10, RANGE_PART, 0, 10},
        {"bytes=0-18446744073709551615", 10, RANGE_PART, 0, 10},
        {"bytes=0-99999999999999999999999", 10, RANGE_PART, 0, 10},
        {"bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=99999999999999999999999-", 10, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-5", 0, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=5-2", 10, RANGE_NONE, 0, 0},
        {"bytes=0-1,3-4", 10, RANGE_NONE, 0, 0},
        {"bytes=a-b", 10, RANGE_NONE, 0, 0},
        {"bytes=", 10, RANGE_NONE, 0, 0},
        {"bytes=-", 10, RANGE_NONE, 0, 0},
        {"bytes=+1-2", 10, RANGE_NONE, 0, 0},
        {"items=0-1", 10, RANGE_NONE, 0, 0},
        {"", 10, RANGE_NONE, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t first = 0, count = 0;
        enum range_kind k = range_parse(sv_of(cases[i].header), cases[i].size, &first, &count);
        if (k != cases[i].want || first != cases[i].first || count != cases[i].count)
            fail_msg("%s of %llu", cases[i].header, (unsigned long long)cases[i].size);
    }
}

static void test_etags(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool want;
    } cases[] = {
        {"\"7\"", true}, {"W/\"7\"", true}, {"\"6\", W/\"7\"", true}, {"*", true}, {"\"77\"", false}, {"7", false},
        {"\"7", false},  {"", false},       {"\"6\",\"8\"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (etag_listed(sv_of(cases[i].header), "7") != cases[i].want)
            fail_msg("%s", cases[i].header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_etags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
