#include "sim/ramp/line.h"
#include "unit.h"
#include <string.h>

static void forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct ramp_line want;
    } rows[] = {
        {"p95_login@300<2s",
         {.kind = RAMP_LINE_TIME, .op = OP_SIGN_IN, .pct = 95, .at = 300, .compare = CMP_LT, .want = 2000}},
        {"p95.upload>2s", {.kind = RAMP_LINE_TIME, .op = OP_UPLOAD, .pct = 95, .compare = CMP_GT, .want = 2000}},
        {"upload.p99 <= 250", {.kind = RAMP_LINE_TIME, .op = OP_UPLOAD, .pct = 99, .compare = CMP_LE, .want = 250}},
        {"max-sign-in<500ms", {.kind = RAMP_LINE_TIME, .op = OP_SIGN_IN, .pct = 100, .compare = CMP_LT, .want = 500}},
        {"p95>2s", {.kind = RAMP_LINE_TIME, .op = OP_COUNT, .pct = 95, .compare = CMP_GT, .want = 2000}},
        {"failure-rate>5%", {.kind = RAMP_LINE_STEP, .figure = RAMP_FIGURE_FAILED_PCT, .compare = CMP_GT, .want = 5}},
        {"timeouts>0", {.kind = RAMP_LINE_STEP, .figure = RAMP_FIGURE_TIMED_OUT, .compare = CMP_GT}},
        {"throughput@4>=1Gbit/s",
         {.kind = RAMP_LINE_STEP, .figure = RAMP_FIGURE_MB_PER_S, .at = 4, .compare = CMP_GE, .want = 125}},
        {"cpu<90", {.kind = RAMP_LINE_WATCH, .watch = WATCH_CPU, .compare = CMP_LT, .want = 90}},
        {"failed_pct>5", {.kind = RAMP_LINE_STEP, .figure = RAMP_FIGURE_FAILED_PCT, .compare = CMP_GT, .want = 5}},
        {"failed_pct@50>=0.5%",
         {.kind = RAMP_LINE_STEP, .figure = RAMP_FIGURE_FAILED_PCT, .at = 50, .compare = CMP_GE, .want = 0.5}},
        {"refused@200=0",
         {.kind = RAMP_LINE_STEP, .figure = RAMP_FIGURE_REFUSED, .at = 200, .compare = CMP_EQ, .want = 0}},
        {"mb_per_s@100>80",
         {.kind = RAMP_LINE_STEP, .figure = RAMP_FIGURE_MB_PER_S, .at = 100, .compare = CMP_GT, .want = 80}},
        {"cpu_pct>85%", {.kind = RAMP_LINE_WATCH, .watch = WATCH_CPU, .compare = CMP_GT, .want = 85}},
        {"disk_write_ms>0.1s", {.kind = RAMP_LINE_WATCH, .watch = WATCH_DISK_WRITE, .compare = CMP_GT, .want = 100}},
        {"knee=150", {.kind = RAMP_LINE_KNEE, .compare = CMP_EQ, .want = 150}},
        {"limit>=100", {.kind = RAMP_LINE_LIMIT, .compare = CMP_GE, .want = 100}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct ramp_line *w = &rows[i].want;
        struct ramp_line l;
        struct errinfo why = {0};
        enum err e = ramp_line_parse("--expect", rows[i].text, true, &l, &why);
        if (e != ERR_OK)
            print_message("%s: %s\n", rows[i].text, err_message(&why));
        assert_int_equal(e, ERR_OK);
        assert_true(l.kind == w->kind && l.at == w->at && l.compare == w->compare);
        assert_true(l.want > w->want - 1e-9 && l.want < w->want + 1e-9);
        assert_true(w->kind != RAMP_LINE_TIME || (l.op == w->op && l.pct == w->pct));
        assert_true(w->kind != RAMP_LINE_STEP || l.figure == w->figure);
        assert_true(w->kind != RAMP_LINE_WATCH || l.watch == w->watch);
    }
}

static void refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "knee",
                                       "=150",
                                       "p95_upload",
                                       "p96_upload<1",
                                       "p95_dance<1",
                                       "failed_pct>",
                                       "failed_pct>x",
                                       "failed_pct>2s",
                                       "p95_upload<5%",
                                       "p95_upload<1e300",
                                       "p95_upload@4294967297<1",
                                       "knee@100=150",
                                       "ok@x=1",
                                       "ok@0=1",
                                       "ok@1@2=1",
                                       "p95_upload@1<2parsec",
                                       "mb_per_s>fast",
                                       "p95@3",
                                       "cpus<1"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ramp_line l;
        struct errinfo why = {0};
        if (ramp_line_parse("--expect", rows[i], true, &l, &why) != ERR_USAGE)
            print_message("taken: %s\n", rows[i]);
        assert_int_equal(ramp_line_parse("--expect", rows[i], true, &l, &why), ERR_USAGE);
        assert_non_null(strstr(why.msg, "--expect '"));
    }
    struct ramp_line l;
    assert_int_equal(ramp_line_parse("--stop-on", "knee>100", false, &l, NULL), ERR_USAGE); /* known too late */
}

static void judged(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
        bool holds;
        const char *shown;
    } rows[] = {
        {"p95_upload<2s", 1999, true, "2.0 s"},
        {"p95_upload<2s", 2000, false, NULL},
        {"mb_per_s=100", 91, true, "91"},
        {"mb_per_s=100", 89, false, NULL},
        {"mb_per_s!=100", 89, true, NULL},
        {"ok=100", 99, false, NULL},
        {"ok=100", 100, true, "100"},
        {"failed_pct>5", 5.5, true, "5.5 %"},
        {"disk_write_ms>100", 100.5, true, "100.5"},
    };
    char text[40];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ramp_line l;
        assert_int_equal(ramp_line_parse("--stop-on", rows[i].text, false, &l, NULL), ERR_OK);
        assert_int_equal(ramp_line_holds(&l, rows[i].value), rows[i].holds);
        if (rows[i].shown)
            assert_string_equal(ramp_line_value(&l, rows[i].value, text, sizeof(text)), rows[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(refused), cmocka_unit_test(judged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
