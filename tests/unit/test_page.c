/* Cursors of listings: what goes in comes out, and nothing else is taken for one. */
#include "base/arena.h"
#include "server/http/page.h"
#include "unit.h"
#include <string.h>

static void round_trip(void **state)
{
    static const struct page_mark marks[] = {
        {"name.asc", "folder", "plain", "abc"},
        {"name.desc", "file", "ärger \xf0\x9f\x8c\x8d & co.txt", "5HueCGU8rMjxEXxi"},
        {"size.asc", "file", "9223372036854775807", "x"},
        {"modified.desc", "folder", "-11644473600000000", "x"},
        {"name.asc", "file", "", "x"},
    };
    struct arena *mem = arena_new(4096);
    (void)state;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        struct page_mark back;
        const char *text = page_cursor_make(mem, &marks[i]);
        assert_non_null(text);
        assert_int_equal(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                         strlen(text));
        assert_true(page_cursor_read(mem, text, marks[i].listing, &back));
        assert_string_equal(back.type, marks[i].type);
        assert_string_equal(back.key, marks[i].key);
        assert_string_equal(back.id, marks[i].id);
        assert_false(page_cursor_read(mem, text, "accessedAt.asc", &back));
    }
    arena_free(&mem);
}

static void longest_name(void **state)
{
    char name[256];
    struct page_mark back, mark = {"accessedAt.desc", "folder", name, "5HueCGU8rMjxEXxi"};
    struct arena *mem = arena_new(4096);
    (void)state;
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_true(page_cursor_read(mem, page_cursor_make(mem, &mark), mark.listing, &back));
    assert_string_equal(back.key, name);
    arena_free(&mem);
}

static void no_cursor(void **state)
{
    /* not base64; another program's; a part missing, one too many, an unknown kind, bytes that are no UTF-8, a NUL */
    static const char *const texts[] = {"",
                                        "%%%",
                                        "abc",
                                        "bmFtZS5hc2MfZm9sZGVyH3g",
                                        "bmFtZS5hc2MfZm9sZGVyH3gfeR96",
                                        "bmFtZS5hc2MfbGluax94H3k",
                                        "bmFtZS5hc2MfZm9sZGVyH3gf_w",
                                        "bmFtZS5hc2MfZm9sZGVyH3gfAA"};
    char huge[PAGE_CURSOR_MAX + 2];
    struct arena *mem = arena_new(4096);
    struct page_mark back;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(page_cursor_read(mem, texts[i], "name.asc", &back));
    memset(huge, 'A', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_false(page_cursor_read(mem, huge, "name.asc", &back));
    arena_free(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(longest_name),
        cmocka_unit_test(no_cursor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
