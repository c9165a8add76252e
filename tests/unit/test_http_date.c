/* HTTP's dates and how long answers ask to wait (RFC 9110, 5.6.7 and 10.2.3). */
#include "net/http_date.h"
#include "unit.h"
#include <string.h>

static struct wall at(const char *iso)
{
    struct wall w;
    assert_true(wall_parse(iso, &w));
    return w;
}

static void dates(void **state)
{
    (void)state;
    static const struct {
        const char *text, *iso; /* NULL: none */
    } rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"},
        {"Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"},
        {"Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"},
        {"Sun Nov 16 08:49:37 1994", "1994-11-16T08:49:37Z"},
        {" Sun, 06 Nov 1994 08:49:37 GMT ", "1994-11-06T08:49:37Z"},
        {"sun, 6 NOV 1994 8:49:37 utc", "1994-11-06T08:49:37Z"},
        {"Sun, 06 Nov 1994 08:49:37 +0000", "1994-11-06T08:49:37Z"},
        {"Sun, 06 Nov 1994 08:49:37 -0130", "1994-11-06T10:19:37Z"},
        {"Wed, 09-Jun-2021 10:18:14 GMT", "2021-06-09T10:18:14Z"}, /* as cookies have it */
        {"Sat, 31 Dec 2016 23:59:60 GMT", "2017-01-01T00:00:00Z"},
        {"Thu, 29 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"},
        {"Thursday, 29-Feb-24 00:00:00 GMT", "2024-02-29T00:00:00Z"},
        /* Of two digits, in December 2026: no more than 50 years ahead. */
        {"Monday, 30-Nov-76 00:00:00 GMT", "2076-11-30T00:00:00Z"},
        {"Thursday, 02-Dec-76 00:00:00 GMT", "1976-12-02T00:00:00Z"},
        {"Tuesday, 01-Dec-26 00:00:01 GMT", "2026-12-01T00:00:01Z"},
        {"Saturday, 01-Jan-00 00:00:00 GMT", "2000-01-01T00:00:00Z"},
        {"Friday, 31-Dec-99 23:59:59 GMT", "1999-12-31T23:59:59Z"},
        {"Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59Z"},
        {"Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00Z"},
        {"Sun, 06 Foo 1994 08:49:37 GMT", NULL},
        {"Foo, 06 Nov 1994 08:49:37 GMT", NULL},
        {"Sun, 06 Nov 1994 08:49:37", NULL},
        {"Sun, 06 Nov 1994 08:49:37 EST", NULL},
        {"Sun, 06 Nov 1994 08:49:37 GMTx", NULL},
        {"Sun, 06 Nov 1994 08:49 GMT", NULL},
        {"Sun, 06 Nov 1994 24:00:00 GMT", NULL},
        {"Sun, 06 Nov 1994 08:60:00 GMT", NULL},
        {"Sun, 06 Nov 994 08:49:37 GMT", NULL},
        {"Sun, 06 Nov 19940 08:49:37 GMT", NULL},
        {"Sun, 00 Nov 1994 08:49:37 GMT", NULL},
        {"Sun, 31 Nov 1994 08:49:37 GMT", NULL},
        {"Wed, 29 Feb 2023 00:00:00 GMT", NULL},
        {"Sun, 06-Nov 1994 08:49:37 GMT", NULL},
        {"Sunday, 32-Nov-94 08:49:37 GMT", NULL},
        {"Sun, -6 Nov 1994 08:49:37 GMT", NULL},
        {"Sun Nov  6 08:49:37 94", NULL},
        {"Sun Nov  6 08:49:37 1994 GMT", NULL},
        {"06 Nov 1994 08:49:37 GMT", NULL},
        {"1994-11-06T08:49:37Z", NULL},
        {"Sun,", NULL},
        {"Sun", NULL},
        {"", NULL},
        {"0", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wall w = {0};
        size_t n = strlen(rows[i].text);
        char *exact = mem_dup(rows[i].text, n); /* an overrun is seen */
        bool good = http_date_parse((struct sv){exact, n}, at("2026-12-01T00:00:00Z"), &w);
        mem_free(exact);
        if (good != (rows[i].iso != NULL) || (good && w.us != at(rows[i].iso).us))
            fail_msg("\"%s\": %d, %lld", rows[i].text, good, (long long)w.us);
    }
}

static void every_day_goes_round(void **state)
{
    (void)state;
    char s[40];
    for (int64_t day = 0; day < 60000; day++) {
        struct wall w = {day * 86400 * US_PER_S + 45296 * US_PER_S}, back;
        assert_true(http_date_parse(sv_of(http_date_format(s, sizeof s, w)), w, &back));
        assert_int_equal(back.us, w.us);
    }
    assert_string_equal(http_date_format(s, sizeof s, at("1994-11-06T08:49:37Z")), "Sun, 06 Nov 1994 08:49:37 GMT");
}

static void waits(void **state)
{
    (void)state;
#define S(s) ((s)*US_PER_S)
    static const struct {
        const char *headers;
        int64_t retry_after, wait; /* -1: not said; wait of a 429 */
    } rows[] = {
        {"Retry-After: 0", 0, 0},
        {"Retry-After: 30", S(30), S(30)},
        {"retry-after:  5 ", S(5), S(5)},
        {"Retry-After: 007", S(7), S(7)},
        {"Retry-After: 0.5", S(1), S(1)},
        {"Retry-After: 2.000", S(2), S(2)},
        {"Retry-After:", -1, -1},
        {"Retry-After: -3", -1, -1},
        {"Retry-After: +3", -1, -1},
        {"Retry-After: 3 s", -1, -1},
        {"Retry-After: 1e3", -1, -1},
        {"Retry-After: 3.", -1, -1},
        {"Retry-After: .5", -1, -1},
        {"Retry-After: 1.2.3", -1, -1},
        {"Retry-After: 0x10", -1, -1},
        {"Retry-After: soon", -1, -1},
        {"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", S(37), S(37)},
        {"Retry-After: Sunday, 06-Nov-94 08:49:37 GMT", S(37), S(37)},
        {"Retry-After: Sun Nov  6 08:49:37 1994", S(37), S(37)},
        {"Retry-After: Sun, 06 Nov 1994 08:48:37 GMT", 0, 0}, /* over */
        {"Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", 0, 0},
        {"Retry-After: Sun, 06 Foo 1994 08:49:37 GMT", -1, -1},
        /* By the server's clock, which is an hour ahead here. */
        {"Date: Sun, 06 Nov 1994 09:49:00 GMT\r\nRetry-After: Sun, 06 Nov 1994 09:49:37 GMT", S(37), S(37)},
        {"Date: Sunday, 06-Nov-94 09:49:00 GMT\r\nRetry-After: Sun Nov  6 09:48:00 1994", 0, 0},
        {"Date: nonsense\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT", S(37), S(37)},
        {"Date: Sun, 06 Nov 1994 09:49:00 GMT\r\nRetry-After: 5", S(5), S(5)},
        /* Of several the longest that can be read. */
        {"Retry-After: 5\r\nRetry-After: 9\r\nRetry-After: 7", S(9), S(9)},
        {"Retry-After: 5\r\nRetry-After: soon", S(5), S(5)},
        {"Retry-After: 99999999999", S(INT64_C(99999999999)), S(INT64_C(99999999999))},
        {"Retry-After: 99999999999999999999", HTTP_WAIT_MAX_US, HTTP_WAIT_MAX_US},
        {"Retry-After: 9223372036854775807", HTTP_WAIT_MAX_US, HTTP_WAIT_MAX_US},
        {"RateLimit-Reset: 9", -1, S(9)},
        {"X-RateLimit-Reset: 12", -1, S(12)},
        {"X-RateLimit-Reset: 784111747", -1, S(784111747)},
        {"RateLimit-Reset: 9\r\nRetry-After: 4", S(4), S(4)},
        {"RateLimit-Reset: 9\r\nRetry-After: soon", -1, S(9)},
        {"X-Retry-After: 4\r\nX: Retry-After: 4", -1, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_resp r = {.status = 429};
        buf_init(&r.headers, 1 << 16);
        assert_int_equal(buf_appendf(&r.headers, "HTTP/1.1 429 Slow\r\n%s\r\n\r\n", rows[i].headers), ERR_OK);
        struct wall now = at("1994-11-06T08:49:00Z");
        if (http_retry_after_us(&r, now) != rows[i].retry_after || http_wait_us(&r, now) != rows[i].wait)
            fail_msg("%s: %lld, %lld", rows[i].headers, (long long)http_retry_after_us(&r, now),
                     (long long)http_wait_us(&r, now));
        r.status = 503; /* budgets are told with each answer: only a 429 says that one is spent */
        assert_int_equal(http_wait_us(&r, now), rows[i].retry_after);
        http_resp_done(&r);
    }
    struct http_resp r = {.status = 429};
    buf_init(&r.headers, 1 << 16);
    assert_int_equal(buf_append_str(&r.headers, "X-RateLimit-Reset: 1796083260\r\n"), ERR_OK);
    assert_int_equal(http_wait_us(&r, at("2026-12-01T00:00:00Z")), S(60)); /* a time, not 57 years */
    assert_int_equal(http_wait_us(&r, at("2026-12-01T00:02:00Z")), 0);
    http_resp_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates),
        cmocka_unit_test(every_day_goes_round),
        cmocka_unit_test(waits),
    };
    return cmocka_run_group_tests_name("http_date", tests, NULL, NULL);
}
