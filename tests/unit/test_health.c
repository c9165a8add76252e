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
    struct health_verdict none = {0};
    (void)state;
    health_begin(&h);
    struct health first = h;
    struct health_span s = health_lap(&h);
    assert_true(s.us >= 1 && s.own >= 0 && s.thread >= 0);
    assert_true(s.machine == -1 || (s.machine >= 0 && s.machine <= 1));
    assert_false(mono_before(h.at, first.at));
    h.total = 0; /* could not be read */
    assert_true(health_since(&h).machine == -1);
    assert_true(health_rss_bytes() > 0);
    struct hist *lag = hist_new();
    struct generator_summary g = health_summary(lag, &none);
    assert_true(g.known && !g.limited && !g.cause && !g.why[0] && g.cpu_us > 0 && g.peak_rss_bytes > 0);
    assert_int_equal(g.lag_p99_us, -1);
    hist_free(&lag);
}

/* Two readings of 10 s, all at rest but for one figure. */
static void test_between(void **state)
{
    const struct health from = {.at = {US_PER_S}, .wall_us = 5, .boot_us = 7, .busy = 100, .total = 1000};
    struct health to = from;
    (void)state;
    to.at.us += 10 * US_PER_S;
    to.wall_us += 10 * US_PER_S - 3 * US_PER_S; /* set back by an hour, and such */
    to.boot_us += 10 * US_PER_S;
    to.busy += 150;
    to.total += 200;
    to.stolen += 20;
    to.thread_us = 9 * US_PER_S;
    to.throttled_us = US_PER_S;
    to.queued_us = 2 * US_PER_S;
    to.memory_us = 3; /* it could be read, but not before */
    struct health unread = from;
    unread.memory_us = -1;
    to.away_us = 1500000;
    to.short_of[SHORTAGE_FILES] = 4;
    struct health_span s = health_between(&unread, &to);
    assert_int_equal(s.us, 10 * US_PER_S);
    assert_true(s.clock_s < -2.99 && s.clock_s > -3.01 && s.suspended_s == 0);
    assert_true(s.machine == 0.75 && s.stolen == 0.1 && s.thread == 0.9 && s.throttled == 0.1 && s.queued == 0.2);
    assert_true(s.memory == 0 && s.away_s == 1.5 && s.short_of[SHORTAGE_FILES] == 4);
    to.boot_us += 60 * US_PER_S; /* a lid was shut: both other clocks go on */
    to.wall_us = from.wall_us + 70 * US_PER_S;
    s = health_between(&from, &to);
    assert_true(s.suspended_s == 60 && s.clock_s == 0);
}

#define S    1000000
#define LATE 51000

/* Every cause by itself: at its limit, just below it, and what is no cause at all. */
static void test_causes(void **state)
{
    static const struct {
        struct health_span s;
        int64_t lag_us;
        const char *cause; /* NULL: none */
        const char *text;
        bool crowded;
    } rows[] = {
        {{.us = 9 * S, .machine = -1}, 1000, NULL, "", false},
        {{.us = 9 * S, .machine = -1}, -1, NULL, "", false},
        {{.us = 9 * S, .machine = -1}, LATE, NULL, "", false}, /* late alone is a symptom */
        {{.us = 9 * S, .machine = -1}, 250000, "late", "no cause was found", false},
        {{.us = 9 * S, .machine = 0.5, .short_of = {[SHORTAGE_PORTS] = 1}}, -1, "local_ports", "no local ports", false},
        {{.us = 9 * S, .machine = 0.5, .short_of = {[SHORTAGE_FILES] = 3}}, 0, "open_files", "(3 times)", false},
        {{.us = 9 * S, .machine = 0.5, .short_of = {[SHORTAGE_MEMORY] = 2}}, 0, "no_memory", "no memory left", false},
        {{.us = 9 * S, .machine = 0.5, .throttled = 0.7, .quota = 0.1},
         0,
         "cpu_quota",
         "70 % of the time (10 % of a processor)",
         false},
        {{.us = 9 * S, .machine = 0.5, .throttled = 0.04, .quota = 0.1}, 0, NULL, "", false},
        {{.us = 9 * S, .machine = 0.5, .thread = 0.95, .own = 0.97}, 0, "own_cpu", "95 % of a processor itself", false},
        {{.us = 9 * S, .machine = 0.5, .thread = 0.6, .own = 1.7}, 0, NULL, "", false}, /* worker threads */
        {{.us = S / 2, .machine = 0.5, .thread = 1, .own = 1}, 0, NULL, "", false},     /* a burst */
        {{.us = 9 * S, .machine = 0.5, .away_s = 3.25}, 0, "paused", "3.2 s", false},
        {{.us = 9 * S, .machine = 0.5, .away_s = 0.9}, 0, NULL, "", false},
        {{.us = 9 * S, .machine = 0.5, .suspended_s = 60}, 0, "suspended", "60.0 s", false},
        {{.us = 9 * S, .machine = 0.5, .clock_s = -3600}, 0, "clock", "3600.0 s", false},
        {{.us = 9 * S, .machine = 0.5, .clock_s = 1800}, 0, "clock", "1800.0 s", false},
        {{.us = 9 * S, .machine = 0.5, .clock_s = 0.2}, 0, NULL, "", false}, /* slewed */
        {{.us = 9 * S, .machine = 0.9, .stolen = 0.12}, LATE, "stolen_time", "12 %", false},
        {{.us = 9 * S, .machine = 0.9, .stolen = 0.12}, 9000, NULL, "", false}, /* it did no harm */
        {{.us = 9 * S, .machine = 0.9, .memory = 0.2}, LATE, "memory", "20 %", false},
        {{.us = 10 * S, .machine = 0.9, .memory_limits = 250}, LATE, "memory", "25 times a second", false},
        {{.us = 9 * S, .machine = 0.97, .own = 0.23},
         LATE,
         "busy_machine",
         "97 % busy, 23 % of one by this process",
         true},
        {{.us = 9 * S, .machine = 0.97, .own = 0.23}, 9000, NULL, "", false},
        {{.us = 9 * S, .machine = 0.6, .queued = 0.3}, LATE, "busy_machine", "waited for a processor in 30 %", true},
        {{.us = 9 * S, .machine = 0.97, .own = 0.23, .throttled = 0.5, .quota = 0.2}, LATE, "cpu_quota", "busy", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct health_verdict v = {0};
        char text[400];
        print_message("# row %zu: %s\n", i, rows[i].cause ? rows[i].cause : "none");
        unsigned found = health_judge(&v, &rows[i].s, rows[i].lag_us);
        assert_int_equal(found, v.causes);
        assert_int_equal(found != 0, rows[i].cause != NULL);
        if (rows[i].cause)
            assert_string_equal(health_key(&v), rows[i].cause);
        else
            assert_null(health_key(&v));
        assert_non_null(strstr(health_text(&v, text, sizeof text), rows[i].text));
        assert_int_equal(text[0] != '\0', rows[i].cause != NULL);
        assert_int_equal(health_crowded(v.causes), rows[i].crowded);
    }
}

/* Of several stretches: counts are added, of shares the worst is told. */
static void test_several(void **state)
{
    const struct health_span spans[] = {{.us = 9 * S, .machine = 0.5, .throttled = 0.2, .quota = 0.5},
                                        {.us = 9 * S, .machine = 0.5, .throttled = 0.6, .quota = 0.5},
                                        {.us = 9 * S, .machine = 0.5, .short_of = {[SHORTAGE_PORTS] = 5}},
                                        {.us = 9 * S, .machine = 0.5, .short_of = {[SHORTAGE_PORTS] = 2}}};
    struct health_verdict v = {0};
    char text[400], tiny[20];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spans); i++)
        assert_true(health_judge(&v, &spans[i], 0));
    assert_string_equal(health_text(&v, text, sizeof text),
                        "no local ports were left (7 times), its CPU quota was used up in 60 % of the time (50 % of a "
                        "processor): widen net.ipv4.ip_local_port_range, or start fewer apps");
    assert_true(strlen(health_text(&v, tiny, sizeof tiny)) < sizeof tiny);
    for (unsigned c = 0; c < HEALTH_CAUSES; c++)
        assert_non_null(health_cause_key((enum health_cause)c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_cpu), cmocka_unit_test(test_span),    cmocka_unit_test(test_between),
        cmocka_unit_test(test_causes),    cmocka_unit_test(test_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
