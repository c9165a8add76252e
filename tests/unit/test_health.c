/* The generator's own health: the line of /proc/stat, a stretch of time, and the verdict over it. */
#include "drive/health.h"
#include "unit.h"
#include <string.h>

static void test_parse_cpu(void **state)
{
    static const struct {
        const char *line;
        bool ok;
        uint64_t busy, total;
    } rows[] = {
        {"cpu  10 20 30 400 50 6 7 8 9 10", true, 81, 531},
        {"cpu 1 0 0 1 0 0 0 0", true, 1, 2},
        {"cpu0 10 20 30 400 50 6 7 8", false, 0, 0},
        {"cpu  10 20 30 400 50 6 7", false, 0, 0},
        {"cpu  10 20 x 400 50 6 7 8", false, 0, 0},
        {"procs_running 3", false, 0, 0},
        {"", false, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t busy = 0, total = 0;
        print_message("# %s\n", rows[i].line);
        assert_int_equal(health_parse_cpu(sv_of(rows[i].line), &busy, &total), rows[i].ok);
        assert_int_equal(busy, rows[i].busy);
        assert_int_equal(total, rows[i].total);
    }
}

static void test_span(void **state)
{
    struct health h;
    (void)state;
    health_begin(&h);
    struct health first = h;
    struct health_span s = health_lap(&h);
    assert_true(s.us >= 1 && s.own >= 0);
    assert_true(s.machine == -1 || (s.machine >= 0 && s.machine <= 1));
    assert_false(mono_before(h.at, first.at));
    h.total = 0; /* could not be read */
    assert_true(health_since(&h).machine == -1);
    assert_true(health_rss_bytes() > 0);
    struct hist *lag = hist_new();
    struct generator_summary g = health_summary(lag);
    assert_true(g.known && !g.limited && g.cpu_us > 0 && g.peak_rss_bytes > 0);
    assert_int_equal(g.lag_p99_us, -1);
    hist_free(&lag);
}

static void test_verdict(void **state)
{
    static const struct {
        double own, machine;
        int64_t lag_us;
        bool limited, crowded;
    } rows[] = {
        {0.5, 0.5, 1000, false, false}, {0.95, 0.5, 1000, true, false}, {0.5, 0.5, 51000, true, false},
        {0.5, 0.99, 51000, true, true}, {0.95, 0.99, 0, true, false}, /* by its own doing */
        {0.5, -1, 51000, true, false},  {0.5, 0.99, -1, false, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct health_span s = {.us = 1, .own = rows[i].own, .machine = rows[i].machine};
        char why[120];
        assert_int_equal(health_limited(&s, rows[i].lag_us, why, sizeof(why)), rows[i].limited);
        assert_int_equal(why[0] != '\0', rows[i].limited);
        assert_int_equal(strstr(why, "no processor time was left") != NULL, rows[i].limited && rows[i].crowded);
        assert_int_equal(health_crowded(&s), rows[i].crowded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_cpu),
        cmocka_unit_test(test_span),
        cmocka_unit_test(test_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
