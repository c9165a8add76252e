#include "base/percentiles.h"
#include "drive/stats_told.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000)

static struct api_result ended(enum outcome outcome, int64_t sent_ms, int64_t done_ms)
{
    return (struct api_result){
        .outcome = outcome, .sent = {sent_ms * MS}, .done = {done_ms * MS}, .bytes_up = 10, .bytes_down = 20};
}

static void record(struct stats *s, enum drive_op op, enum outcome outcome, int64_t took_ms)
{
    struct api_result r = ended(outcome, 1000, 1000 + took_ms);
    stats_record(s, op, &r, (struct mono){0});
}

static char *text_of(void (*print)(const struct stats *s, FILE *out), const struct stats *s)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    print(s, out);
    fclose(out);
    return text;
}

static void table(const struct stats *s, FILE *out)
{
    stats_print_table(s, out, false);
}

static void reasons(const struct stats *s, FILE *out)
{
    stats_print_reasons(s, out, 2);
}

/* The accounting identity: ok + failed + conflicts + throttled + outage + local = calls. */
static void outcomes_add_up(void **state)
{
    (void)state;
    struct stats s;
    stats_init(&s);
    for (unsigned o = 0; o < OUT_COUNT; o++)
        for (unsigned k = 0; k <= o; k++)
            record(&s, OP_SAVE, (enum outcome)o, 5);
    uint64_t passed_over = s.op[OP_SAVE].by_outcome[OUT_CONFLICT] + s.op[OP_SAVE].by_outcome[OUT_THROTTLED] +
                           s.op[OP_SAVE].by_outcome[OUT_OUTAGE] + s.op[OP_SAVE].by_outcome[OUT_LOCAL];
    assert_int_equal(stats_calls(&s, OP_SAVE), OUT_COUNT * (OUT_COUNT + 1) / 2);
    assert_int_equal(stats_ok(&s, OP_SAVE) + stats_failed(&s, OP_SAVE) + passed_over, stats_calls(&s, OP_SAVE));
    assert_int_equal(stats_failed_all(&s), stats_failed(&s, OP_SAVE));
    assert_int_equal(hist_count(s.op[OP_SAVE].from_send), stats_ok(&s, OP_SAVE));
    assert_int_equal(s.bytes_up, 10 * stats_calls(&s, OP_SAVE));
    stats_done(&s);
}

static void latency_is_kept_twice(void **state)
{
    (void)state;
    struct stats s;
    struct api_result r = ended(OUT_OK, 1000, 1010);
    stats_init(&s);
    stats_record(&s, OP_LIST, &r, (struct mono){700 * MS}); /* it had to wait 300 ms for its turn */
    assert_int_equal(hist_max(s.op[OP_LIST].from_send), 10 * MS);
    assert_int_equal(hist_max(s.op[OP_LIST].from_due), 310 * MS);
    stats_done(&s);
}

/* L02 and L10 on this level: workers and intervals add up to the whole. */
static void merging(void **state)
{
    (void)state;
    struct stats a, b, total;
    stats_init(&a);
    stats_init(&b);
    stats_init(&total);
    for (int i = 0; i < 1000; i++)
        record(&a, OP_DOWNLOAD, OUT_OK, 10);
    for (int i = 0; i < 10; i++)
        record(&b, OP_DOWNLOAD, OUT_OK, 2000);
    record(&b, OP_SAVE, OUT_SERVER, 1);
    a.by_cause[CAUSE_RELIST] = 1000;
    b.by_cause[CAUSE_RELIST] = 4;
    a.by_cause[CAUSE_ACTION] = 7;
    stats_merge(&total, &a);
    stats_merge(&total, &b);
    assert_int_equal(stats_requests(&total), 1011);
    assert_int_equal(total.by_cause[CAUSE_ACTION], 7);
    assert_int_equal(stats_ok(&total, OP_DOWNLOAD), 1010);
    assert_int_equal(hist_percentile(total.op[OP_DOWNLOAD].from_send, 99), 10 * MS);
    assert_int_equal(hist_max(total.op[OP_DOWNLOAD].from_send), 2000 * MS);
    assert_int_equal(total.n_reasons, 1);
    stats_reset(&a);
    assert_int_equal(stats_calls(&a, OP_DOWNLOAD), 0);
    assert_int_equal(hist_count(a.op[OP_DOWNLOAD].from_send), 0);
    stats_merge(&total, &a);
    assert_int_equal(stats_ok(&total, OP_DOWNLOAD), 1010);
    stats_done(&a);
    stats_done(&b);
    stats_done(&total);
}

/* X11: a new request id in every reason makes no new kind; hostile text is shown, cut and stays one line. */
static void reasons_are_folded(void **state)
{
    (void)state;
    struct stats s;
    char text[11000];
    stats_init(&s);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "503 busy, try %d (request %08x-12ab-4f3c)", i, i * 7919 + 1);
        stats_reason_add(&s, OP_SAVE, text);
    }
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "404 no file %s", i % 2 ? "kTnVbQzRwXyLmPsD" : "9sKfh3MzQp2Ld8Rx");
        stats_reason_add(&s, OP_DOWNLOAD, text);
    }
    assert_int_equal(s.n_reasons, 2);
    assert_string_equal(s.reasons[0].text, "save: 503 busy, try # (request #-#ab-#f#c)");
    assert_int_equal(s.reasons[0].count, 100);
    assert_string_equal(s.reasons[1].text, "download: 404 no file #");
    int n = snprintf(text, sizeof text, "boom\x1b[2J\x1b]0;x\x07\r\nok");
    memset(text + n, 'y', sizeof text - (size_t)n - 1);
    text[sizeof text - 1] = '\0';
    stats_reason_add(&s, OP_SAVE, text);
    assert_int_equal(s.n_reasons, 3);
    assert_non_null(strstr(s.reasons[2].text, "boom\\x1b[#J\\x1b]#;x\\x07\\x0d\\x0aok"));
    assert_non_null(strstr(s.reasons[2].text, "…"));
    stats_reason_add(&s, OP_SAVE, "SignatureDoesNotMatch");
    /* Times that nobody waits for are seen, others differ each time. */
    stats_reason_add(&s, OP_COPY, "429 asked to wait 3,168 years, and 1 h at most is waited: 12 hours 5 s 3,400 ms h");
    assert_string_equal(s.reasons[4].text,
                        "copy: 429 asked to wait 3,168 years, and 1 h at most is waited: # hours # s #,# ms h");
    assert_string_equal(s.reasons[3].text, "save: SignatureDoesNotMatch");
    stats_done(&s);
}

/* L18: at most 64 kinds, the rest is counted together. */
static void reasons_are_bounded(void **state)
{
    (void)state;
    struct stats s, total;
    stats_init(&s);
    stats_init(&total);
    for (int i = 0; i < 300; i++) {
        char text[40];
        snprintf(text, sizeof text, "reason %c%c", 'a' + i % 20, 'a' + i / 20);
        stats_reason_add(&s, OP_SAVE, text);
    }
    assert_int_equal(s.n_reasons, STATS_REASONS);
    assert_int_equal(s.other_reasons, 300 - STATS_REASONS);
    stats_merge(&total, &s);
    stats_merge(&total, &s);
    assert_int_equal(total.other_reasons, 2 * (300 - STATS_REASONS));
    char *text = text_of(reasons, &s);
    assert_non_null(strstr(text, "298  other reasons\n"));
    free(text);
    stats_done(&s);
    stats_done(&total);
}

/* L08: "-" where there is nothing; one sample shows the same value everywhere. */
static void table_of_few(void **state)
{
    (void)state;
    struct stats s;
    stats_init(&s);
    record(&s, OP_LIST, OUT_TRANSPORT, 1);
    record(&s, OP_SAVE, OUT_OK, 7);
    record(&s, OP_SAVE, OUT_CONFLICT, 7);
    char *text = text_of(table, &s);
    assert_non_null(strstr(text, "\nlist                     0       1         -         -         -         -\n"));
    assert_non_null(strstr(text, "\nsave                     1       0      ~7.0      ~7.0      ~7.0       7.0      1 "
                                 "conflict\n~: fewer samples than "));
    assert_null(strstr(text, "download"));
    assert_null(strchr(text, '\x1b'));
    free(text);
    stats_done(&s);
}

/* A percentile needs 1/(1 - pct) samples; what has fewer is marked, in a table whose columns stay in line. */
static void few_samples_are_marked(void **state)
{
    (void)state;
    static const struct {
        int n;
        const char *line;
        bool p50, p95, p99;
    } rows[] = {
        {1, "\nsave                     1       0      ~7.0      ~7.0      ~7.0       7.0\n", true, true, true},
        {2, "\nsave                     2       0       7.0      ~7.0      ~7.0       7.0\n", false, true, true},
        {19, "\nsave                    19       0       7.0      ~7.0      ~7.0       7.0\n", false, true, true},
        {20, "\nsave                    20       0       7.0       7.0      ~7.0       7.0\n", false, false, true},
        {99, "\nsave                    99       0       7.0       7.0      ~7.0       7.0\n", false, false, true},
        {100, "\nsave                   100       0       7.0       7.0       7.0       7.0\n", false, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stats s;
        struct buf b = BUF_INIT(1 << 20);
        struct jsonw w;
        struct json *j;
        uint64_t samples, needs;
        stats_init(&s);
        for (int k = 0; k < rows[i].n; k++)
            record(&s, OP_SAVE, OUT_OK, 7);
        char *text = text_of(table, &s);
        if (!strstr(text, rows[i].line))
            fail_msg("%d samples: %s", rows[i].n, text);
        assert_int_equal(strstr(text, "\n" HIST_FEW "\n") != NULL, rows[i].p99);
        free(text);
        jsonw_init(&w, &b);
        jsonw_object(&w, NULL);
        stats_write_json(&s, &w);
        jsonw_end_object(&w);
        assert_int_equal(json_parse(b.data, b.len, &j, NULL), ERR_OK);
        const struct json *save = json_get(json_get(j, "operations"), "save");
        assert_int_equal(few_read(save, "p50_ms", &samples, &needs), rows[i].p50);
        assert_int_equal(few_read(json_get(save, "from_due"), "p95_ms", &samples, &needs), rows[i].p95);
        assert_int_equal(few_read(save, "p99_ms", &samples, &needs), rows[i].p99);
        if (rows[i].p99)
            assert_true(samples == (uint64_t)rows[i].n && needs == 100);
        assert_false(few_read(save, "max_ms", &samples, &needs));
        json_free(&j);
        buf_done(&b);
        stats_done(&s);
    }
}

/* Both latencies stand in the text, and how late the latest was, whatever became of it. */
static void both_latencies_are_told(void **state)
{
    (void)state;
    struct stats s, total;
    struct api_result r = ended(OUT_OK, 1000, 1010), failed = ended(OUT_TIMEOUT, 2000, 2010);
    stats_init(&s);
    stats_init(&total);
    for (int i = 0; i < 100; i++) {
        stats_record(&s, OP_SAVE, &r, (struct mono){700 * MS});
        stats_record(&s, OP_LIST, &r, (struct mono){0});
        stats_record(&s, OP_UPLOAD, &r, r.sent);
    }
    stats_record(&s, OP_TRASH, &failed, (struct mono){500 * MS});
    stats_merge(&total, &s);
    stats_merge(&total, &s);
    char *text = text_of(table, &total);
    assert_non_null(strstr(text, "\nsave                   200       0      10.0      10.0      10.0      10.0\n"
                                 "  since due                            310.0     310.0     310.0     310.0\n"));
    assert_non_null(strstr(text, "\nlist                   200       0      10.0      10.0      10.0      10.0\nsave"));
    assert_null(strstr(strstr(text, "\nupload"), "since due")); /* each was sent when it was due */
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
    assert_non_null(strstr(text, "\nlate      at most 1.5 s after it was due (trash)\n"));
    free(text);
    assert_int_equal(total.op[OP_SAVE].scheduled, 200);
    stats_done(&s);
    stats_done(&total);
}

static void json_has_the_keys(void **state)
{
    (void)state;
    struct stats s;
    struct buf b = BUF_INIT(1 << 20);
    struct jsonw w;
    struct json *j;
    double d;
    int64_t i;
    stats_init(&s);
    record(&s, OP_LIST, OUT_TRANSPORT, 1);
    record(&s, OP_SAVE, OUT_OK, 7);
    jsonw_init(&w, &b);
    jsonw_object(&w, NULL);
    stats_write_json(&s, &w);
    jsonw_end_object(&w);
    assert_int_equal(w.err, ERR_OK);
    assert_null(strstr(b.data, "nan"));
    assert_null(strstr(b.data, "inf"));
    assert_int_equal(json_parse(b.data, b.len, &j, NULL), ERR_OK);
    const struct json *save = json_get(json_get(j, "operations"), "save"),
                      *list = json_get(json_get(j, "operations"), "list");
    static const char *const latencies[] = {"p50_ms", "p95_ms", "p99_ms", "max_ms"};
    for (size_t k = 0; k < ARRAY_LEN(latencies); k++) {
        assert_true(json_f64(json_get(save, latencies[k]), &d) && d == 7);
        assert_true(json_f64(json_get(json_get(save, "from_due"), latencies[k]), &d) && d == 7);
        assert_non_null(json_get(list, latencies[k]));
        assert_true(json_is_null(json_get(list, latencies[k])));
    }
    assert_true(json_i64(json_get(json_get(list, "outcomes"), "transport"), &i) && i == 1);
    assert_true(json_i64(json_get(j, "failed"), &i) && i == 1);
    assert_int_equal(json_count(json_get(j, "causes")), CAUSE_COUNT);
    assert_string_equal(json_str(json_get(json_first(json_get(j, "failures")), "reason")), "list: transport");
    json_free(&j);
    buf_done(&b);
    stats_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes_add_up),
        cmocka_unit_test(latency_is_kept_twice),
        cmocka_unit_test(merging),
        cmocka_unit_test(reasons_are_folded),
        cmocka_unit_test(reasons_are_bounded),
        cmocka_unit_test(table_of_few),
        cmocka_unit_test(json_has_the_keys),
        cmocka_unit_test(few_samples_are_marked),
        cmocka_unit_test(both_latencies_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
