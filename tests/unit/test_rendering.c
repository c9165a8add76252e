/* Every form of a result, of a full one, of an empty one, and of text that would be markup. */
#include "base/digest.h"
#include "base/version.h"
#include "drive/result/markup.h"
#include "drive/result/rendering.h"
#include "drive/result/series.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define HOSTILE "</td><script>alert(1)</script>\x1b[31m \"q\" & \xff]]>"

static void record(struct stats *s, enum drive_op op, enum outcome outcome, int64_t us)
{
    struct api_result r = {.outcome = outcome, .sent = {1000}, .done = {1000 + us}};
    snprintf(r.reason, sizeof(r.reason), "%s", outcome == OUT_OK ? "" : HOSTILE);
    stats_record(s, op, &r, (struct mono){0});
}

/* Saves of 10 ms, one failure, a check of each kind, a threshold that is missed. Samples are few: 3. */
static void fill(struct result *r)
{
    result_init(r, "run");
    r->failures_matter = true;
    r->seconds_us = 20 * US_PER_S;
    r->stats.by_cause[CAUSE_ACTION] = 30;
    snprintf(r->target, sizeof(r->target), "http://127.0.0.1:1/?a=\"<b>\"");
    for (int i = 0; i < 3; i++)
        record(&r->stats, OP_SAVE, OUT_OK, 10000);
    record(&r->stats, OP_DOWNLOAD, OUT_SERVER, 0);
    result_check(r, "aggregates")->examined = 12;
    result_check_add(result_check(r, "storage"), "account 7: %s", HOSTILE);
    struct check_result *c = result_check(r, "objects");
    c->status = CHECK_NOT_RUN;
    snprintf(c->summary, sizeof(c->summary), "no store is named");
    assert_int_equal(result_threshold(r, "save.p50<5ms", NULL), ERR_OK);
    result_judge(r);
}

static char *made(const struct result *r, enum rendering which)
{
    struct doc *d = NULL;
    struct buf out = BUF_INIT(8u << 20);
    assert_int_equal(doc_of_result(r, &d, NULL), ERR_OK);
    assert_int_equal(rendering_make(which, d, &out), ERR_OK);
    doc_free(&d);
    return buf_take(&out, NULL);
}

static bool holds(const char *text, const char *part)
{
    if (strstr(text, part))
        return true;
    print_message("not there: %s\nin: %s\n", part, text);
    return false;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* ---- markup ---- */

static void text_is_no_markup(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"plain é 漢", "plain é 漢"},
        {"<a href='x'>&amp;", "&lt;a href=&#39;x&#39;&gt;&amp;amp;"},
        {"\"q\"", "&quot;q&quot;"},
        {"a\x01\x1b[0m\n", "a\\x01\\x1b[0m\\x0a"},
        {"\xff\xc3", "\\xff\\xc3"},
        {"\xef\xbf\xbe|\xef\xbf\xbf", "\\xef\\xbf\\xbe|\\xef\\xbf\\xbf"},
        {NULL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf b = BUF_INIT(1 << 16);
        struct markup m;
        markup_init(&m, &b);
        markup_text(&m, rows[i].text);
        assert_int_equal(m.err, ERR_OK);
        assert_string_equal(buf_cstr(&b), rows[i].want);
        buf_done(&b);
    }
}

static void what_does_not_fit_is_said(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(20);
    struct markup m;
    markup_init(&m, &b);
    markup_element(&m, "p", "a text that is longer than twenty bytes");
    markup_put(&m, "x");
    assert_int_equal(m.err, ERR_LIMIT);
    buf_done(&b);
}

/* ---- forms ---- */

static void csv_is_a_table(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    char *text = made(&r, RENDERING_CSV);
    struct sv rest = sv_of(text), line, cell;
    size_t columns = 0, lines = 0;
    while (sv_split(&rest, '\n', &line) && line.n) {
        size_t n = 0;
        while (sv_split(&line, ',', &cell))
            n++;
        assert_true(!columns || n == columns);
        columns = n;
        lines++;
    }
    assert_int_equal(lines, 3);
    assert_int_equal(columns, 3 + (OUT_COUNT - 1) + 9);
    assert_true(holds(text, "save,3,0,"));
    assert_true(
        holds(text, ",10.000,10.000,10.000,10.000,10.000,10.000,10.000,10.000,p95_ms p99_ms due_p95_ms due_p99_ms\n"));
    assert_true(holds(text, ",,,,,,,,\n")); /* the failed download has no times */
    mem_free(text);
    result_done(&r);
}

static void junit_has_a_case_each(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    char *text = made(&r, RENDERING_JUNIT);
    assert_true(holds(text, "<testsuite name=\"sim run\" tests=\"6\" failures=\"3\" errors=\"0\" skipped=\"1\""));
    assert_int_equal(count(text, "<testcase "), 6);
    assert_int_equal(count(text, "<failure "), 3);
    assert_int_equal(count(text, "<skipped "), 1);
    assert_true(holds(text, "name=\"storage\" time=\"0\">\n      <failure message=\"1 wrong\""));
    assert_true(holds(text, "<skipped message=\"no store is named\">"));
    assert_true(holds(text, "name=\"save.p50&lt;5ms\" time=\"0\">\n      <failure message=\"it is 10\""));
    assert_null(strstr(text, "<script"));
    assert_null(strchr(text, '\x1b'));
    mem_free(text);
    r.interrupted = true;
    text = made(&r, RENDERING_JUNIT);
    assert_true(holds(text, "<error message=\"interrupted\""));
    mem_free(text);
    result_done(&r);
}

/* Each line is a comment or NAME{LABELS} NUMBER, each family is announced once. */
static void prometheus_is_well_formed(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    char *text = made(&r, RENDERING_PROMETHEUS);
    struct sv rest = sv_of(text), line;
    while (sv_split(&rest, '\n', &line) && line.n) {
        const char *end = line.p + line.n, *space = end;
        double v;
        if (sv_starts(line, SV("# ")))
            continue;
        assert_true(sv_starts(line, SV("drivesim_")));
        while (space > line.p && space[-1] != ' ')
            space--;
        assert_true(sv_to_f64((struct sv){space, (size_t)(end - space)}, &v));
    }
    assert_int_equal(count(text, "# TYPE drivesim_operations_total counter\n"), 1);
    assert_true(holds(text, "drivesim_operations_total{operation=\"save\",outcome=\"ok\"} 3\n"));
    assert_true(
        holds(text, "drivesim_operation_duration_seconds{operation=\"save\",since=\"sent\",quantile=\"0.99\"} 0.01\n"));
    assert_true(holds(text,
                      "drivesim_operation_duration_needs_samples{operation=\"save\",since=\"due\",quantile=\"0.99\"} "
                      "100\n"));
    assert_null(strstr(text, "needs_samples{operation=\"save\",since=\"sent\",quantile=\"0.5\""));
    assert_true(holds(text, "drivesim_operation_duration_seconds_count{operation=\"save\",since=\"due\"} 3\n"));
    assert_true(holds(text, "drivesim_check_status{check=\"storage\",status=\"violated\"} 1\n"));
    assert_true(holds(text, "drivesim_threshold_met{condition=\"save.p50<5ms\"} 0\n"));
    assert_true(holds(text, "target=\"http://127.0.0.1:1/?a=\\\"<b>\\\"\""));
    mem_free(text);
    result_done(&r);
}

/* The counts as HdrHistogramJS 3.0 encodes 2 x 0, 3 x 1 us, 1 x 1,250 us and 300 x 9 s, in nanoseconds. */
static void hdr_is_what_others_write(void **state)
{
    (void)state;
    static const unsigned char want[] = {0x04, 0xcd, 0x0f, 0x06, 0xb5, 0xa3, 0x01, 0x02, 0xd5, 0xcd, 0x01, 0xd8, 0x04};
    static const unsigned char header[] = {0x1c, 0x84, 0x93, 0x13, 0, 0, 0, sizeof(want), 0, 0, 0, 0, 0, 0, 0, 3};
    static const struct {
        int64_t us;
        int n;
    } rows[] = {{0, 2}, {1, 3}, {1250, 1}, {9 * US_PER_S, 300}};
    struct result r;
    result_init(&r, "run");
    r.seconds_us = 20 * US_PER_S;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int k = 0; k < rows[i].n; k++)
            record(&r.stats, OP_SAVE, OUT_OK, rows[i].us);
    char *text = made(&r, RENDERING_HDR);
    assert_true(holds(text, "#[Histogram log format version 1.3]\n"));
    assert_int_equal(count(text, "Tag="), 1); /* due is not told apart where it is not apart */
    const char *line = strstr(text, "Tag=save,0.000,20.000,9000.000,");
    assert_non_null(line);
    struct sv packed = {strrchr(line, ',') + 1, strcspn(strrchr(line, ',') + 1, "\n")};
    struct buf b = BUF_INIT(1 << 16);
    assert_int_equal(digest_unbase64(&b, packed), ERR_OK);
    assert_memory_equal(b.data, "\x1c\x84\x93\x14\0\0", 6);
    unsigned char plain[200];
    uLongf n = sizeof(plain);
    assert_int_equal(uncompress(plain, &n, (const Bytef *)b.data + 8, b.len - 8), Z_OK);
    assert_int_equal(n, 40 + sizeof(want));
    assert_memory_equal(plain, header, sizeof(header));
    assert_memory_equal(plain + 40, want, sizeof(want));
    buf_done(&b);
    mem_free(text);
    result_done(&r);
}

/* Shared case X11: what a server wrote is text, never markup. */
static void page_is_whole_and_harmless(void **state)
{
    (void)state;
    static const char *const pairs[] = {"section", "table", "tbody", "ul", "div", "dl", "figure", "svg", "details"};
    struct result r;
    char open[20], close[20];
    fill(&r);
    char *text = made(&r, RENDERING_HTML);
    assert_true(holds(text, "<h1>sim run: <b>not healthy: 1 operation failed (download), 1 check violated (storage), "
                            "1 threshold missed (save.p50&lt;5ms)</b></h1>"));
    assert_true(holds(text, "http://127.0.0.1:1/?a=&quot;&lt;b&gt;&quot;"));
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        snprintf(open, sizeof(open), "<%s", pairs[i]);
        snprintf(close, sizeof(close), "</%s>", pairs[i]);
        assert_int_equal(count(text, open), count(text, close));
    }
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "src="));
    assert_null(strstr(text, "href="));
    assert_null(strchr(text, '\x1b'));
    assert_null(strchr(text, '\xff'));
    mem_free(text);
    result_done(&r);
}

static void add_part(struct result *r, const char *key, const char *text)
{
    struct buf json = BUF_INIT(4096);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_raw(&w, NULL, sv_of(text));
    result_part(r, key, &w);
}

/* What a command tells row by row is a table of the page; checks that are not run for one reason share a row. */
static void rows_are_tables(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    add_part(&r, "reads", "{\"list_hot\":{\"what\":\"a <page>\",\"rows\":200,\"alone\":{\"p95_ms\":7.25}}}");
    add_part(&r, "http", "{\"complete\":9,\"failures\":{\"connect\":0},\"from_due_ms\":{\"min\":0.5,\"p100\":3}}");
    result_figure(&r, "uploads", "mb_per_s", 5.5, 1);
    struct check_result *c = result_check(&r, "ledger");
    c->status = CHECK_NOT_RUN;
    snprintf(c->summary, sizeof(c->summary), "no store is named");
    char *text = made(&r, RENDERING_HTML);
    assert_true(holds(text, "<tr><td>a &lt;page&gt;</td><td></td><td class=\"n\">200</td><td class=\"n\">–</td>"
                            "<td class=\"n\">7.2</td>"));
    assert_true(holds(text, "<tr><td>from due</td><td class=\"n\">0.500</td>"));
    assert_true(holds(text, "<tr><td>uploads</td><td>mb per s</td><td class=\"n\">5.5</td></tr>"));
    assert_int_equal(count(text, "Stages of a request"), 1);
    assert_int_equal(count(text, "<h2>Refusals"), 0);
    assert_true(holds(text, "likewise ledger"));
    assert_int_equal(count(text, "<td>ledger</td>"), 0);
    mem_free(text);
    result_done(&r);
}

/* Shared case L08: nothing happened, and one thing did. */
static void empty_and_single(void **state)
{
    (void)state;
    for (int samples = 0; samples < 2; samples++)
        for (unsigned which = 0; which < RENDERING_COUNT; which++) {
            struct result r;
            result_init(&r, "run");
            if (samples)
                record(&r.stats, OP_SAVE, OUT_OK, 7000);
            char *text = made(&r, (enum rendering)which);
            assert_true(strlen(text) > 0);
            assert_null(strstr(text, "nan"));
            assert_null(strstr(text, "inf\""));
            mem_free(text);
            result_done(&r);
        }
}

/* ---- the course ---- */

static const struct series_owner owner = {.command = "run", .target = "http://127.0.0.1:1", .arguments = "", .seed = 3};

static void add_span(struct series *s, int64_t from_s, const char *phase, int64_t us)
{
    struct stats stats;
    const struct series_span span = {.from = {from_s * US_PER_S}, .to = {(from_s + 1) * US_PER_S}, .phase = phase};
    stats_init(&stats);
    record(&stats, OP_SAVE, OUT_OK, us);
    record(&stats, OP_LIST, OUT_TIMEOUT, 0);
    stats.by_cause[CAUSE_ACTION] = 5;
    jsonw_i64(series_begin(s, &span, &stats), "apps", 4);
    series_end(s);
    stats_done(&stats);
}

static void a_killed_run_can_be_told(void **state)
{
    (void)state;
    char dir[] = "/tmp/drivesim-series-XXXXXX", file[80];
    struct series *s = NULL;
    struct doc *d = NULL;
    struct errinfo ei = {0};
    assert_non_null(mkdtemp(dir));
    assert_int_equal(doc_load(dir, &d, &ei), ERR_USAGE);
    assert_true(holds(ei.msg, "it is no folder of a run"));
    assert_int_equal(series_new(&s, dir, &owner, (struct mono){10 * US_PER_S}, NULL), ERR_OK);
    assert_true(series_empty(s));
    add_span(s, 10, "arrival", 1000);
    add_span(s, 12, "window", 2000);
    add_span(s, 13, "window", 4000);
    series_free(&s);
    snprintf(file, sizeof(file), "%s/" SERIES_FILE, dir);
    FILE *f = fopen(file, "ae");
    fputs("{\"at_seconds\":4,\"seco", f); /* the line that it was killed in */
    fclose(f);
    assert_int_equal(doc_load(dir, &d, &ei), ERR_OK);
    assert_int_equal(d->n_spans, 3);
    assert_true(d->spans[0].at < -1.99 && d->spans[0].at > -2.01);
    assert_true(d->spans[1].at > -0.01 && d->spans[1].at < 0.01);
    assert_int_equal((int)doc_number(d, "exit", -1), 130);
    assert_int_equal((int)doc_number(d, "operations.save.ok", -1), 3);
    assert_int_equal((int)doc_number(d, "operations.save.max_ms", -1), 4);
    assert_int_equal((int)doc_number(d, "operations.list.outcomes.timeout", -1), 3);
    assert_int_equal((int)doc_number(d, "requests", -1), 15);
    assert_int_equal((int)doc_number(d, "seed", -1), 3);
    assert_true(holds(buf_cstr(&d->summary), "it did not come to its end"));
    doc_free(&d);
    unlink(file);
    rmdir(dir);
}

static void a_course_in_memory(void **state)
{
    (void)state;
    struct result r;
    fill(&r);
    assert_int_equal(series_new(&r.series, NULL, &owner, (struct mono){0}, NULL), ERR_OK);
    add_span(r.series, 0, "window", 1000);
    add_span(r.series, 1, "window", 3000);
    char *text = made(&r, RENDERING_HDR);
    assert_int_equal(count(text, "Tag=save,"), 2);
    assert_true(holds(text, "Tag=save,1.000,1.000,3.000,"));
    mem_free(text);
    for (int i = 2; i < 500; i++)
        add_span(r.series, i, "window", 1000 + i);
    text = made(&r, RENDERING_HTML);
    assert_true(holds(text, "<title>Latency of save</title>"));
    assert_true(strlen(text) < 60000); /* more points than a plot shows are joined */
    mem_free(text);
    result_done(&r);
}

static void what_is_no_result(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "[]", "{\"command\":3}", "42"};
    char file[] = "/tmp/drivesim-result-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct doc *d = NULL;
        struct errinfo ei = {0};
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
        assert_int_equal(doc_load(file, &d, &ei), ERR_USAGE);
        assert_non_null(strstr(ei.msg, file));
        assert_null(d);
    }
    close(fd);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_no_markup),
        cmocka_unit_test(what_does_not_fit_is_said),
        cmocka_unit_test(csv_is_a_table),
        cmocka_unit_test(junit_has_a_case_each),
        cmocka_unit_test(prometheus_is_well_formed),
        cmocka_unit_test(hdr_is_what_others_write),
        cmocka_unit_test(page_is_whole_and_harmless),
        cmocka_unit_test(rows_are_tables),
        cmocka_unit_test(empty_and_single),
        cmocka_unit_test(a_killed_run_can_be_told),
        cmocka_unit_test(a_course_in_memory),
        cmocka_unit_test(what_is_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
