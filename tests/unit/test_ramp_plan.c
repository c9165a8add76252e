#include "sim/ramp/plan.h"
#include "unit.h"
#include <string.h>

static void steps(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want; /* NULL: refused */
    } rows[] = {
        {"100", "100"},
        {"25,50,100", "25 50 100"},
        {"100, 50", "100 50"},
        {"25:400:x2", "25 50 100 200 400"},
        {"25:300:x2", "25 50 100 200 300"},
        {"25:100:+50", "25 75 100"},
        {"25:100:25", "25 50 75 100"},
        {"10:25:10", "10 20 25"},
        {"1:3:x1.2", "1 2 3"},
        {"7:7:x2", "7"},
        {"1:20000:*10", "1 10 100 1000 10000 20000"},
        {"", NULL},
        {"0", NULL},
        {"-5", NULL},
        {"5,", NULL},
        {"5,x", NULL},
        {"20001", NULL},
        {"25:400", NULL},
        {"25:400:2", NULL}, /* more steps than anybody waits for */
        {"25:400:", NULL},
        {"25:400:x", NULL},
        {"25:400:-5", NULL},
        {"25:400:x1", NULL},
        {"25:400:+0", NULL},
        {"400:25:x2", NULL},
        {"1:20000:+1", NULL},
        {"a:b:x2", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ramp_steps s;
        struct errinfo why = {0};
        char got[400] = "";
        enum err e = ramp_parse_steps(rows[i].text, &s, &why);
        for (unsigned k = 0; e == ERR_OK && k < s.n; k++)
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u", k ? " " : "", s.sessions[k]);
        if ((e == ERR_OK) != (rows[i].want != NULL) || (rows[i].want && strcmp(got, rows[i].want) != 0))
            fail_msg("\"%s\": %d \"%s\"", rows[i].text, e, got);
        if (e != ERR_OK && *rows[i].text)
            assert_non_null(strstr(why.msg, rows[i].text));
    }
}

static void rates_and_links(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err (*parse)(const char *, double *, struct errinfo *);
        double want; /* -1: refused */
    } rows[] = {
        {"5/s", ramp_parse_rate, 5},
        {"300/min", ramp_parse_rate, 5},
        {"0.5", ramp_parse_rate, 0.5},
        {"0", ramp_parse_rate, 0},
        {"900/h", ramp_parse_rate, 0.25},
        {"5/sec", ramp_parse_rate, 5},
        {"5/week", ramp_parse_rate, -1},
        {"-1/s", ramp_parse_rate, -1},
        {"1/min", ramp_parse_rate, 1.0 / 60},
        {"0.0000000002/s", ramp_parse_rate, -1}, /* one in 160 years */
        {"", ramp_parse_rate, -1},
        {"110MB/s", ramp_parse_link, 110e6},
        {"1Gbit/s", ramp_parse_link, 125e6},
        {"1.5MiB/s", ramp_parse_link, 1572864},
        {"64 KiB/s", ramp_parse_link, 65536},
        {"7B", ramp_parse_link, 7},
        {"110", ramp_parse_link, -1},
        {"MB/s", ramp_parse_link, -1},
        {"1e300GB/s", ramp_parse_link, -1},
        {"0MB/s", ramp_parse_link, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double got = -1;
        enum err e = rows[i].parse(rows[i].text, &got, NULL);
        if ((e == ERR_OK) != (rows[i].want >= 0) || (e == ERR_OK && got != rows[i].want))
            fail_msg("\"%s\": %d %g", rows[i].text, e, got);
    }
}

static void work(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum ramp_session kind;
        int64_t bytes; /* of an upload; -1: refused */
    } rows[] = {
        {"sign-in", RAMP_SIGN_IN, 0},
        {"login", RAMP_SIGN_IN, 0},
        {"apps", RAMP_APPS, 0},
        {"mix", RAMP_APPS, 0},
        {"upload:50MiB", RAMP_UPLOAD, 50 * 1048576},
        {"upload:0", RAMP_UPLOAD, 0},
        {"upload", RAMP_UPLOAD, 1048576},
        {"upload:", RAMP_UPLOAD, -1},
        {"upload:many", RAMP_UPLOAD, -1},
        {"apps:3", RAMP_APPS, -1},
        {"download:1MiB", RAMP_UPLOAD, -1},
        {"", RAMP_UPLOAD, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ramp_work w;
        enum err e = ramp_parse_work(rows[i].text, &w, NULL);
        bool right = rows[i].bytes < 0 ? e == ERR_USAGE : e == ERR_OK && w.kind == rows[i].kind;
        if (!right || (e == ERR_OK && w.kind == RAMP_UPLOAD && w.bytes != rows[i].bytes))
            fail_msg("\"%s\": %d", rows[i].text, e);
    }
}

/* The document's own figures: 50 MB each over 110 MB/s shared by 100 sessions is 45 s. */
static void expectations(void **state)
{
    (void)state;
    const struct ramp_measure first = {.sessions = 25, .rate = 50e6, .p95_s = 25};
    const struct ramp_measure none = {.sessions = 25, .rate = -1, .p95_s = -1};
    struct ramp_measure x = ramp_expect(&first, 100, 110e6, 50000000);
    assert_true(x.rate == 110e6 && x.p95_s > 45.4 && x.p95_s < 45.5);
    x = ramp_expect(&first, 50, 110e6, 50000000); /* the link is not full yet */
    assert_true(x.rate == 100e6);
    x = ramp_expect(&first, 100, 0, 50000000);
    assert_true(x.rate == 200e6 && x.p95_s == 25);
    x = ramp_expect(&none, 100, 0, 50000000);
    assert_true(x.rate < 0 && x.p95_s < 0);
}

static void arrivals(void **state)
{
    (void)state;
    assert_true(ramp_due_us(5, 0) == 0 && ramp_due_us(5, 1) == 200000 && ramp_due_us(5, 300) == 60000000);
    assert_true(ramp_due_us(0, 99) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),        cmocka_unit_test(rates_and_links), cmocka_unit_test(work),
        cmocka_unit_test(expectations), cmocka_unit_test(arrivals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
