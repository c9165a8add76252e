#include "base/json.h"
#include "drive/cmd.h"
#include "drive/result/impl.h"
#include "drive/threshold.h"
#include "locale_comma.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

/* A run with 100 saves of 10 ms, one failed download and one violated check. */
static void fill(struct result *r)
{
    struct api_result ok = {.outcome = OUT_OK, .sent = {1000}, .done = {11000}};
    struct api_result bad = {.outcome = OUT_SERVER, .status = 503, .reason = "no store"};
    result_init(r, "run");
    r->seed = 7;
    r->seconds_us = 180200000;
    for (int i = 0; i < 100; i++) /* as many as a p99 needs */
        stats_record(&r->stats, OP_SAVE, &ok, (struct mono){0});
    stats_record(&r->stats, OP_DOWNLOAD, &bad, (struct mono){0});
    r->stats.by_cause[CAUSE_ACTION] = 7011;
    r->stats.by_cause[CAUSE_FIRST_PASS] = 15000;
    r->apps = (struct app_summary){true, 50, 49, 50, 49000};
    r->generator = (struct generator_summary){.known = true, .cpu_us = 12300000, .lag_p99_us = 800};
    r->tree = (struct tree_summary){true, 2194, 16787, 10, 22, 3357, 1073741824, "ab12"};
}

static void add_check(struct result *r, const char *name, enum check_status status, uint64_t wrong)
{
    r->checks = mem_realloc_array(r->checks, r->n_checks + 1, sizeof *r->checks);
    struct check_result *c = &r->checks[r->n_checks++];
    *c = (struct check_result){.name = name, .status = status, .examined = 100, .wrong = wrong};
    if (wrong) {
        c->detail = mem_alloc(sizeof *c->detail);
        c->detail[0] = mem_strdup("folder abc: 5 in the row, 4 counted");
        c->n_detail = 1;
    }
    if (status == CHECK_NOT_RUN)
        snprintf(c->summary, sizeof c->summary, "DATABASE_URL is not set");
}

static char *printed(const struct result *r, bool color)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    result_print(r, out, color);
    fclose(out);
    return text;
}

static struct json *parsed(const struct result *r)
{
    struct buf b = BUF_INIT(1 << 20);
    struct json *j = NULL;
    assert_int_equal(result_json(r, &b), ERR_OK);
    assert_int_equal(b.data[b.len - 1], '\n');
    assert_int_equal(json_parse(b.data, b.len, &j, NULL), ERR_OK);
    buf_done(&b);
    return j;
}

static void json_of_a_run(void **state)
{
    (void)state;
    struct result r;
    double d;
    fill(&r);
    add_check(&r, "aggregates", CHECK_VIOLATED, 2);
    add_check(&r, "objects", CHECK_NOT_RUN, 0);
    result_figure(&r, "pairs", "per_second", 9.75, 2);
    result_figure(&r, "server", "cpu_seconds", 1, 1);
    result_figure(&r, "pairs", "succeeded", 3, 0);
    r.server_peak_rss = 5 << 20;
    struct json *j = parsed(&r);
    static const char *const numbers[] = {"exit",
                                          "seconds",
                                          "requests",
                                          "failed",
                                          "seed",
                                          "causes.first_pass",
                                          "operations.save.ok",
                                          "operations.save.p50_ms",
                                          "operations.save.from_due.p99_ms",
                                          "apps.planned",
                                          "apps.streams_up",
                                          "apps.rss_bytes_per_app",
                                          "generator.cpu_seconds",
                                          "generator.lag_p99_ms",
                                          "tree.folders",
                                          "tree.files",
                                          "tree.depth",
                                          "tree.hot_folders",
                                          "tree.hot_files",
                                          "tree.bytes",
                                          "server.peak_rss_bytes",
                                          "server.cpu_seconds",
                                          "pairs.per_second",
                                          "pairs.succeeded"};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct sv rest = sv_of(numbers[i]), word;
        const struct json *v = j;
        while (sv_split(&rest, '.', &word)) {
            char key[40];
            snprintf(key, sizeof key, SV_FMT, SV_ARG(word));
            v = json_get(v, key);
        }
        if (!json_f64(v, &d))
            fail_msg("no number %s", numbers[i]);
    }
    assert_string_equal(json_str(json_get(j, "command")), "run");
    assert_string_equal(json_str(json_get(json_get(j, "tree"), "manifest_sha256")), "ab12");
    assert_false(json_bool(json_get(json_get(j, "generator"), "limited"), true));
    const struct json *c = json_first(json_get(j, "checks"));
    assert_string_equal(json_str(json_get(c, "name")), "aggregates");
    assert_string_equal(json_str(json_get(c, "status")), "violated");
    assert_int_equal(json_count(json_get(c, "detail")), 1);
    assert_string_equal(json_str(json_get(json_next(c), "status")), "not_run");
    assert_true(json_f64(json_get(j, "exit"), &d) && d == 1);
    json_free(&j);
    result_done(&r);
}

/* L08: a command that failed before it began still has a whole JSON, without NaN. */
static void json_of_nothing(void **state)
{
    (void)state;
    struct result r;
    double d;
    result_init(&r, "seed");
    r.err = ERR_ENV;
    err_set(&r.why, ERR_ENV, "nothing listens at http://127.0.0.1:1");
    struct json *j = parsed(&r);
    assert_true(json_f64(json_get(j, "exit"), &d) && d == 3);
    assert_string_equal(json_str(json_get(json_get(j, "error"), "code")), "ENV");
    assert_string_equal(json_str(json_get(json_get(j, "error"), "message")), "nothing listens at http://127.0.0.1:1");
    assert_int_equal(json_count(json_get(j, "operations")), 0);
    assert_null(json_get(j, "tree"));
    json_free(&j);
    char *text = printed(&r, false);
    assert_string_equal(text, "");
    free(text);
    result_done(&r);
}

static void exit_statuses(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, "run");
    assert_int_equal(result_exit_status(&r), 0);
    add_check(&r, "objects", CHECK_NOT_RUN, 0);
    assert_int_equal(result_exit_status(&r), 0);
    add_check(&r, "aggregates", CHECK_VIOLATED, 1);
    assert_int_equal(result_exit_status(&r), 1);
    r.err = ERR_STOPPED;
    assert_int_equal(result_exit_status(&r), 4);
    r.err = ERR_SAFETY;
    assert_int_equal(result_exit_status(&r), 3);
    r.interrupted = true;
    assert_int_equal(result_exit_status(&r), 130);
    r.reader_gone = true;
    assert_int_equal(result_exit_status(&r), 141);
    result_done(&r);
}

/* A failed operation is unhealthy where that matters, unless a threshold speaks of failures itself. */
static void failures_count_once(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    assert_int_equal(result_exit_status(&r), 0);
    r.failures_matter = true;
    assert_int_equal(result_exit_status(&r), 1);
    assert_int_equal(result_threshold(&r, "failed<=1", NULL), ERR_OK);
    result_judge(&r);
    assert_int_equal(result_exit_status(&r), 0);
    result_done(&r);
}

static void thresholds(void **state)
{
    (void)state;
    static const struct {
        const char *expr;
        enum threshold_state state;
    } rows[] = {{"save.p99<200ms", THRESHOLD_MET},
                {"save.p99 < 9.9", THRESHOLD_MISSED},
                {"save.p99 < 200 ms", THRESHOLD_MET},
                {"save.p99<=10", THRESHOLD_MET},
                {"save.p99_ms<0.2s", THRESHOLD_MET},
                {"operations.save.p50_ms==10", THRESHOLD_MET},
                {"save.slowest<1s", THRESHOLD_MET},
                {"save.max>1s", THRESHOLD_MISSED},
                {"save.from_due.p95<20ms", THRESHOLD_MET},
                {"failed==0", THRESHOLD_MISSED},
                {"failed=1", THRESHOLD_MET},
                {"download.failed<=2", THRESHOLD_MET},
                {"download.failed!=1", THRESHOLD_MISSED},
                {"download.server_error>=1", THRESHOLD_MET},
                {"download.outcomes.timeout==0", THRESHOLD_MET},
                {"download.p99<1s", THRESHOLD_NOT_JUDGED}, /* none succeeded: not known to be fast */
                {"rename.p99<1s", THRESHOLD_NOT_JUDGED},
                {"rename.from_due.p50<1s", THRESHOLD_NOT_JUDGED},
                {"rename.slowest<1s", THRESHOLD_NOT_JUDGED},
                {"rename.failed==0", THRESHOLD_MET}, /* none at all: 0 failed */
                {"rename.conflict<1", THRESHOLD_MET},
                {"full pass.failed==0", THRESHOLD_MET},
                {"rss_bytes_per_app<65536", THRESHOLD_MET},
                {"apps.rss_bytes_per_app<64KiB", THRESHOLD_MET},
                {"streams_up==50", THRESHOLD_MISSED},
                {"lag_p99<50ms", THRESHOLD_MET},
                {"generator.limited==0", THRESHOLD_MET},
                {"cpu_seconds<1min", THRESHOLD_MET},
                {"tree.files==16787", THRESHOLD_MET},
                {"seconds<3min", THRESHOLD_MISSED},
                {"requests>20000", THRESHOLD_MET},
                {"first_pass>=15000", THRESHOLD_MET},
                {"checks.aggregates.wrong==0", THRESHOLD_MISSED},
                {"checks.storage.wrong==0", THRESHOLD_NO_SAMPLES}, /* it never ran: no silent pass */
                {"server.peak_rss_bytes<200MiB", THRESHOLD_NO_SAMPLES}};
    struct result r;
    fill(&r);
    add_check(&r, "aggregates", CHECK_VIOLATED, 2);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct errinfo ei = {0};
        if (result_threshold(&r, rows[i].expr, &ei))
            fail_msg("%s: %s", rows[i].expr, ei.msg);
    }
    result_judge(&r);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (r.thresholds[i].state != rows[i].state)
            fail_msg("%s: state %d, found %g", rows[i].expr, r.thresholds[i].state, r.thresholds[i].found);
    result_done(&r);
}

/* Where the generator was the limit no time and no rate is judged, whatever was found; counts are, and what it says of
 * itself. Where it was late alone, rates are. */
static void generator_limited(void **state)
{
    (void)state;
    static const struct {
        const char *expr;
        enum threshold_state limited, late;
    } rows[] = {{"save.p99<200ms", THRESHOLD_NOT_JUDGED, THRESHOLD_NOT_JUDGED},
                {"save.p99<1us", THRESHOLD_NOT_JUDGED, THRESHOLD_NOT_JUDGED},
                {"save.from_due.slowest<1ms", THRESHOLD_NOT_JUDGED, THRESHOLD_NOT_JUDGED},
                {"window.requests_per_s>1", THRESHOLD_NOT_JUDGED, THRESHOLD_MET},
                {"uploads.mb_per_s>9", THRESHOLD_NOT_JUDGED, THRESHOLD_MISSED},
                {"ramp.knee>9", THRESHOLD_NOT_JUDGED, THRESHOLD_MET},
                {"save.failed==0", THRESHOLD_MET, THRESHOLD_MET},
                {"download.failed==0", THRESHOLD_MISSED, THRESHOLD_MISSED},
                {"checks.aggregates.wrong==0", THRESHOLD_MISSED, THRESHOLD_MISSED},
                {"lag_p99<50ms", THRESHOLD_MET, THRESHOLD_MET},
                {"cpu_seconds<1s", THRESHOLD_MISSED, THRESHOLD_MISSED},
                {"generator.limited==0", THRESHOLD_MISSED, THRESHOLD_MET},
                {"apps.rss_bytes_per_app<64KiB", THRESHOLD_MET, THRESHOLD_MET}};
    for (int limited = 0; limited < 2; limited++) {
        struct result r;
        fill(&r);
        add_check(&r, "aggregates", CHECK_VIOLATED, 2);
        result_figure(&r, "window", "requests_per_s", 7, 1);
        result_figure(&r, "uploads", "mb_per_s", 7, 1);
        result_figure(&r, "ramp", "knee", 70, 0);
        r.generator.limited = limited;
        r.generator.late = !limited;
        snprintf(r.generator.why, sizeof r.generator.why, "it slept: wake it");
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct threshold t;
            struct json *doc = NULL;
            struct buf text = BUF_INIT(1 << 20);
            assert_int_equal(result_json(&r, &text), ERR_OK);
            assert_int_equal(json_parse(text.data, text.len, &doc, NULL), ERR_OK);
            assert_int_equal(threshold_parse(&t, rows[i].expr, doc, NULL), ERR_OK);
            threshold_judge(&t, doc);
            if (t.state != (limited ? rows[i].limited : rows[i].late))
                fail_msg("%s, %s: state %d", rows[i].expr, limited ? "limited" : "late", t.state);
            if (t.time && limited)
                assert_string_equal(t.why, "the generator was the limit: it slept: wake it");
            mem_free(t.text);
            json_free(&doc);
            buf_done(&text);
        }
        result_done(&r);
    }
}

/* In the last line, whatever else it says; the status is of the rest. */
static void verdict_of_a_limited_generator(void **state)
{
    (void)state;
    static const struct {
        bool violated, not_run, limited, late;
        const char *text;
        int status;
    } rows[] = {
        {false, false, false, false, "healthy", 0},
        {false, false, true, false, "healthy, but the generator was the limit: no figures; it slept: wake it", 0},
        {false, true, true, false,
         "healthy, 1 check not run, but the generator was the limit: no figures; it slept: wake it", 0},
        {false, false, false, true, "healthy, but its times hold the generator's own delays; it slept: wake it", 0},
        {true, false, true, false,
         "not healthy: 1 check violated (aggregates), and the generator was the limit: no figures; it slept: wake it",
         1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct result r;
        char text[VERDICT_TEXT_MAX];
        result_init(&r, "run");
        r.judged = true;
        if (rows[i].violated)
            add_check(&r, "aggregates", CHECK_VIOLATED, 2);
        if (rows[i].not_run)
            add_check(&r, "storage", CHECK_NOT_RUN, 0);
        r.generator.limited = rows[i].limited;
        r.generator.late = rows[i].late;
        snprintf(r.generator.why, sizeof r.generator.why, "it slept: wake it");
        assert_string_equal(result_verdict_text(&r, text), rows[i].text);
        assert_int_equal(result_exit_status(&r), rows[i].status);
        result_done(&r);
    }
}

/* A percentile of fewer samples than it needs is neither met nor missed: status 3, unless something is known to be
 * bad. */
static void too_few_to_judge(void **state)
{
    (void)state;
    static const struct {
        const char *expr, *why;
        int samples;
        enum threshold_state state;
    } rows[] = {{"save.p99<200ms", "99 samples, it needs 100", 99, THRESHOLD_NOT_JUDGED},
                {"save.p99<1ms", "99 samples, it needs 100", 99, THRESHOLD_NOT_JUDGED},
                {"save.p99<200ms", "", 100, THRESHOLD_MET},
                {"save.p95<200ms", "19 samples, it needs 20", 19, THRESHOLD_NOT_JUDGED},
                {"save.from_due.p95<1ms", "19 samples, it needs 20", 19, THRESHOLD_NOT_JUDGED},
                {"save.p95<1ms", "", 20, THRESHOLD_MISSED},
                {"save.p50<200ms", "1 sample, it needs 2", 1, THRESHOLD_NOT_JUDGED},
                {"save.p50<200ms", "", 2, THRESHOLD_MET},
                {"save.p50<200ms", "0 samples, it needs 2", 0, THRESHOLD_NOT_JUDGED},
                {"save.slowest<200ms", "", 1, THRESHOLD_MET},
                {"save.slowest<200ms", "0 samples, it needs 1", 0, THRESHOLD_NOT_JUDGED},
                {"save.ok==0", "", 0, THRESHOLD_MET}};
    struct api_result ok = {.outcome = OUT_OK, .sent = {1000}, .done = {11000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct result r;
        char *text;
        result_init(&r, "run");
        stats_record(&r.stats, OP_LIST, &ok, (struct mono){0});
        for (int k = 0; k < rows[i].samples; k++)
            stats_record(&r.stats, OP_SAVE, &ok, (struct mono){0});
        assert_int_equal(result_threshold(&r, rows[i].expr, NULL), ERR_OK);
        result_judge(&r);
        if (r.thresholds[0].state != rows[i].state)
            fail_msg("%s of %d: state %d", rows[i].expr, rows[i].samples, r.thresholds[0].state);
        if (rows[i].state == THRESHOLD_NOT_JUDGED) {
            char line[120], verdict[120];
            snprintf(line, sizeof line, "  unknown  %s (could not be judged: %s)\n", rows[i].expr, rows[i].why);
            snprintf(verdict, sizeof verdict, "\nnot judged: 1 threshold could not be judged (%s)\n", rows[i].expr);
            assert_int_equal(result_exit_status(&r), 3);
            text = printed(&r, false);
            assert_non_null(strstr(text, line));
            assert_non_null(strstr(text, verdict));
            free(text);
            struct json *j = parsed(&r);
            const struct json *t = json_first(json_get(j, "thresholds")), *v = json_get(j, "verdict");
            assert_string_equal(json_str(json_get(t, "status")), "not_judged");
            assert_true(json_is_null(json_get(t, "met")) && json_is_null(json_get(v, "healthy")));
            assert_string_equal(json_str(json_get(t, "why")), rows[i].why);
            json_free(&j);
            add_check(&r, "aggregates", CHECK_VIOLATED, 1);
            assert_int_equal(result_exit_status(&r), 1);
        }
        result_done(&r);
    }
}

/* Figures of one command alone know their samples as well. */
static void own_percentiles(void **state)
{
    (void)state;
    struct result r;
    struct hist *h = hist_new();
    for (int i = 0; i < 19; i++)
        hist_record(h, 1500000);
    result_init(&r, "bigfiles");
    result_percentile(&r, "uploads", "p50_seconds", h, 50, US_PER_S, 2);
    result_percentile(&r, "uploads", "p95_seconds", h, 95, US_PER_S, 2);
    result_percentile(&r, "uploads", "slowest_seconds", h, 100, US_PER_S, 2);
    char *text = printed(&r, false);
    assert_non_null(strstr(text, "uploads   p50_seconds 1.50, p95_seconds ~1.50, slowest_seconds 1.50\n"));
    assert_non_null(strstr(text, HIST_FEW));
    free(text);
    struct json *j = parsed(&r);
    uint64_t samples = 0, needs = 0;
    assert_true(few_read(json_get(j, "uploads"), "p95_seconds", &samples, &needs));
    assert_true(samples == 19 && needs == 20);
    assert_false(few_read(json_get(j, "uploads"), "p50_seconds", &samples, &needs));
    json_free(&j);
    hist_free(&h);
    result_done(&r);
}

static void malformed_thresholds(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "save",          "save.p99",     "<5",
                                      "save.p99<",  "save.p99<fast", "save.p99<5x",  "save.p99<5KiB",
                                      "failed<2ms", "sav.p99<5",     "save.p98<5",   "save<5",
                                      "save.p99~5", "command==1",    "operations>1", "failed==0,5",
                                      "failed<nan", "failed => 0",   "\x1b[2J<1",    "checks.x.y<1",
                                      "failed<1 2"};
    struct result r;
    result_init(&r, "run");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct errinfo ei = {0};
        if (result_threshold(&r, bad[i], &ei) != ERR_USAGE)
            fail_msg("'%s' was accepted", bad[i]);
        assert_non_null(strstr(ei.msg, "--fail-on"));
        assert_null(strchr(ei.msg, '\x1b'));
    }
    assert_int_equal(r.n_thresholds, 0);
    result_done(&r);
}

/* What only one command reports can be named before it is there: its figures, and single rows of its table. */
static void add_own(struct result *r, double mb_per_s, double p95)
{
    struct buf json = BUF_INIT(4096);
    struct jsonw w;
    char text[200];
    result_figure(r, "uploads", "failed", 0, 0);
    result_figure(r, "uploads", "mb_per_s", mb_per_s, 1);
    result_figure(r, "uploads", "slowest_seconds", 2.5, 2);
    result_figure(r, "uploads", "server_peak_rss_bytes", 100e6, 0);
    str_format(text, sizeof text,
               "{\"list_hot\":{\"what\":\"a "
               "page\",\"rows\":200,\"alone\":{\"p95_ms\":%.1f},\"loaded\":{\"p95_ms\":90},\"total_ms\":{\"p99\":50}}}",
               p95);
    jsonw_init(&w, &json);
    jsonw_raw(&w, NULL, sv_of(text));
    result_part(r, "reads", &w);
    assert_int_equal(json.len, 0);
}

static void sample_of_own(struct result *r)
{
    add_own(r, 0, 0);
}

static void own_figures(void **state)
{
    (void)state;
    static const struct {
        const char *expr;
        enum threshold_state state;
    } rows[] = {{"uploads.mb_per_s>50", THRESHOLD_MET},
                {"mb_per_s>80", THRESHOLD_MISSED},
                {"uploads.slowest<3s", THRESHOLD_MET},
                {"uploads.server_peak_rss<128MiB", THRESHOLD_MET},
                {"uploads.failed==0", THRESHOLD_MET},
                {"reads.list_hot.alone.p95_ms<50", THRESHOLD_MET},
                {"list_hot.p95<50ms", THRESHOLD_MET},
                {"list-hot.p95<10ms", THRESHOLD_MISSED},
                {"list_hot.loaded.p95<50ms", THRESHOLD_MISSED},
                {"list_hot.total.p99<0.1s", THRESHOLD_MET},
                {"list_hot.total_ms.p99<=40", THRESHOLD_MISSED},
                {"list_hot.rows==200", THRESHOLD_MET}};
    struct result r, none;
    struct errinfo ei = {0};
    result_init(&r, "bigfiles");
    result_init(&none, "bigfiles");
    r.sample = none.sample = sample_of_own;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (result_threshold(&r, rows[i].expr, &ei))
            fail_msg("%s: %s", rows[i].expr, ei.msg);
    assert_int_equal(result_threshold(&r, "list_cold.p95<50ms", &ei), ERR_USAGE);
    assert_int_equal(result_threshold(&r, "list_hot.what<1", &ei), ERR_USAGE);
    assert_int_equal(result_threshold(&r, "list_hot.rows<1ms", &ei), ERR_USAGE);
    assert_int_equal(result_threshold(&none, "mb_per_s>1", &ei), ERR_OK);
    add_own(&r, 75.5, 12.5);
    result_judge(&r);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (r.thresholds[i].state != rows[i].state)
            fail_msg("%s: state %d, found %g", rows[i].expr, r.thresholds[i].state, r.thresholds[i].found);
    result_judge(&none);
    assert_int_equal(none.thresholds[0].state, THRESHOLD_NO_SAMPLES); /* it was never measured: no silent pass */
    result_done(&r);
    result_done(&none);
}

static void names_of_own_figures(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    result_print_names(sample_of_own, out);
    fclose(out);
    assert_string_equal(text, "  uploads. failed mb_per_s slowest_seconds server_peak_rss_bytes\n"
                              "  reads.ROW. rows alone.p95_ms loaded.p95_ms total_ms.p99\n"
                              "    ROW: list_hot\n");
    free(text);
}

static void text_of_a_run(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    r.failures_matter = true;
    add_check(&r, "storage", CHECK_OK, 0);
    add_check(&r, "aggregates", CHECK_VIOLATED, 51);
    add_check(&r, "objects", CHECK_NOT_RUN, 0);
    assert_int_equal(result_threshold(&r, "save.p99<5ms", NULL), ERR_OK);
    result_judge(&r);
    char *text = printed(&r, false);
    static const char *const wanted[] = {
        "summary of run, 3 min 0 s\n",
        "save                   100       0      10.0      10.0      10.0      10.0\n",
        "requests  22,011 (first pass 15,000, action 7,011), failed operations 1\n",
        "tree      2,194 folders, 16,787 files, 1.0 GiB, depth 10; 3,357 files in 22 hot folders\n",
        "ok       storage      100 examined, 0 wrong\n",
        "VIOLATED aggregates   100 examined, 51 wrong\n",
        "folder abc: 5 in the row, 4 counted\n",
        "and 50 more\n",
        "not run  objects      DATABASE_URL is not set\n",
        "MISSED   save.p99<5ms (10)\n",
        "        1  download: 503 no store\n",
        "not healthy: 1 operation failed (download), 1 check violated (aggregates), 1 threshold missed "
        "(save.p99<5ms)\n"};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!strstr(text, wanted[i]))
            fail_msg("missing: %s\nin: %s", wanted[i], text);
    assert_null(strchr(text, '\x1b'));
    assert_null(strchr(text, '\r'));
    free(text);
    r.interrupted = true;
    text = printed(&r, true);
    assert_non_null(strstr(text, "interrupted after 3 min 0 s"));
    assert_non_null(strchr(text, '\x1b'));
    free(text);
    result_done(&r);
}

static size_t times_in(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

static void checks_not_run_for_one_reason_share_a_row(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    add_check(&r, "objects", CHECK_NOT_RUN, 0);
    add_check(&r, "storage", CHECK_OK, 0);
    add_check(&r, "aggregates", CHECK_NOT_RUN, 0);
    add_check(&r, "drain", CHECK_NOT_RUN, 0);
    add_check(&r, "locks", CHECK_NOT_RUN, 0);
    snprintf(r.checks[r.n_checks - 1].summary, sizeof r.checks[0].summary, "another reason");
    char *text = printed(&r, false);
    assert_non_null(strstr(text, "not run  objects      DATABASE_URL is not set\n"
                                 "             likewise aggregates, drain\n"));
    assert_int_equal(times_in(text, "DATABASE_URL is not set"), 1);
    assert_non_null(strstr(text, "ok       storage"));
    assert_non_null(strstr(text, "not run  locks        another reason\n"));
    free(text);
    result_done(&r);
}

static void figures_say_how_they_are_named(void **state)
{
    (void)state;
    struct result r;
    result_init(&r, "run");
    result_figure(&r, "outages", "count", 0, 0);
    result_figure(&r, "outages", "seconds", 0, 1);
    result_figure(&r, "writes", "acknowledged", 59, 0);
    snprintf(r.run_dir, sizeof r.run_dir, "runs/a");
    char *text = printed(&r, false);
    assert_non_null(strstr(text, "figures, by the names that --fail-on takes (writes.acknowledged)\n"
                                 "writes    acknowledged 59\n"));
    assert_null(strstr(text, "outages"));
    assert_non_null(strstr(text, "ledger    runs/a\n"));
    free(text);
    r.figures[0].value = 1;
    r.run_holds = "files";
    text = printed(&r, false);
    assert_non_null(strstr(text, "outages   count 1, seconds 0.0\n"));
    assert_non_null(strstr(text, "files     runs/a\n"));
    free(text);
    result_done(&r);
}

static void csv_of(const struct result *r, struct buf *out)
{
    struct doc *d = NULL;
    assert_int_equal(doc_of_result(r, &d, NULL), ERR_OK);
    assert_int_equal(rendering_make(RENDERING_CSV, d, out), ERR_OK);
    doc_free(&d);
}

/* X01 */
static void decimal_comma(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    char *plain = printed(&r, false);
    struct buf plain_json = BUF_INIT(1 << 20), json = BUF_INIT(1 << 20), plain_csv = BUF_INIT(1 << 20),
               csv = BUF_INIT(1 << 20);
    assert_int_equal(result_json(&r, &plain_json), ERR_OK);
    csv_of(&r, &plain_csv);
    if (!locale_comma()) {
        free(plain);
        buf_done(&plain_json);
        buf_done(&plain_csv);
        result_done(&r);
        skip();
    }
    char *text = printed(&r, false);
    assert_int_equal(result_json(&r, &json), ERR_OK);
    csv_of(&r, &csv);
    assert_int_equal(result_threshold(&r, "save.p99<10.5", NULL), ERR_OK);
    result_judge(&r);
    assert_int_equal(r.thresholds[0].state, THRESHOLD_MET);
    locale_plain();
    assert_string_equal(text, plain);
    assert_string_equal(json.data, plain_json.data);
    assert_string_equal(csv.data, plain_csv.data);
    free(plain);
    free(text);
    buf_done(&plain_json);
    buf_done(&json);
    buf_done(&plain_csv);
    buf_done(&csv);
    result_done(&r);
}

/* X05: in a pipe whole lines without CR or ESC. */
static void progress_lines(void **state)
{
    (void)state;
    for (int tty = 0; tty < 2; tty++) {
        char *text = NULL;
        size_t n;
        FILE *out = open_memstream(&text, &n);
        struct progress *p = progress_new(out, tty, "files", 16787);
        progress_set(p, 1, NULL);
        progress_set(p, 8393, "one account commits one write at a time: 212 commits/s");
        progress_free(&p);
        assert_null(p);
        progress_free(&p);
        fclose(out);
        assert_int_equal(text[n - 1], '\n');
        assert_non_null(strstr(text, "files 8,393 of 16,787 (49 %)"));
        assert_int_equal(strchr(text, '\r') != NULL, tty);
        if (!tty) {
            assert_null(strchr(text, '\x1b'));
            assert_non_null(strstr(text, "; one account commits one write at a time: 212 commits/s\n"));
        }
        free(text);
    }
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    struct progress *timed = progress_new_seconds(out, true, "step 1 of 2, 25 sessions", 305);
    progress_set(timed, 48, "25 of 25 in");
    fflush(out);
    assert_string_equal(text, "\rstep 1 of 2, 25 sessions: 48 s of about 5 min 5 s; 25 of 25 in");
    progress_drop(&timed);
    assert_null(timed);
    progress_drop(&timed);
    fclose(out);
    assert_int_equal(text[n - 1], '\r'); /* blanks over it, and the cursor where it was */
    assert_null(strchr(text, '\n'));
    free(text);
    struct progress *silent = progress_new(NULL, false, "files", 0);
    progress_set(silent, 5, NULL);
    progress_free(&silent);
}

/* What a server lacks is a line each, under one another. */
static void a_note_is_lines(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    snprintf(r.note, sizeof(r.note), "no trash: deleted at once; no jobs: long work ends with its call");
    char *text = printed(&r, false);
    assert_non_null(
        strstr(text, "\nnote      no trash: deleted at once\n          no jobs: long work ends with its call\n"));
    free(text);
    result_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_of_a_run),
        cmocka_unit_test(json_of_nothing),
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(thresholds),
        cmocka_unit_test(too_few_to_judge),
        cmocka_unit_test(own_percentiles),
        cmocka_unit_test(malformed_thresholds),
        cmocka_unit_test(own_figures),
        cmocka_unit_test(names_of_own_figures),
        cmocka_unit_test(failures_count_once),
        cmocka_unit_test(text_of_a_run),
        cmocka_unit_test(checks_not_run_for_one_reason_share_a_row),
        cmocka_unit_test(figures_say_how_they_are_named),
        cmocka_unit_test(generator_limited),
        cmocka_unit_test(verdict_of_a_limited_generator),
        cmocka_unit_test(decimal_comma),
        cmocka_unit_test(progress_lines),
        cmocka_unit_test(a_note_is_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
