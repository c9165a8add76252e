/* The course of a command without a run folder: kept where a form shows it, and the result complete either way. */
#include "drive/result/doc.h"
#include "sim/app/recorder.h"
#include "unit.h"
#include <string.h>

#define BEATS 5

static void record(struct stats *s)
{
    struct api_result r = {.outcome = OUT_OK, .sent = {1000}, .done = {3000}};
    stats_record(s, OP_REQUEST, &r, (struct mono){0});
}

/* Returns how many stretches of time are told. */
static size_t told(const char *html)
{
    struct cmd_common common = {.files[RENDERING_HTML] = html};
    struct result result;
    struct cmd_ctx ctx = {.common = &common, .result = &result};
    struct stats interval, seen;
    struct recorder recorder;
    struct doc *d = NULL;
    result_init(&result, "http");
    stats_init(&interval);
    stats_init(&seen);
    assert_int_equal(loop_new(&ctx.loop, NULL), ERR_OK);
    record(&interval); /* before it begins: in the result, not in the course */
    recorder_start(&recorder, &ctx, &interval, mono_now());
    for (int i = 0; i < BEATS; i++) {
        record(&interval);
        recorder_add(&recorder);
    }
    recorder_stop(&recorder);
    assert_int_equal(stats_ok(&result.stats, OP_REQUEST), BEATS + 1);
    assert_int_equal(stats_calls(&interval, OP_REQUEST), 0);
    assert_int_equal(doc_of_result(&result, &d, NULL), ERR_OK);
    doc_stats(d, &seen);
    assert_int_equal(stats_ok(&seen, OP_REQUEST), html ? BEATS : BEATS + 1);
    size_t n = d->n_spans;
    doc_free(&d);
    loop_free(&ctx.loop);
    stats_done(&interval);
    stats_done(&seen);
    result_done(&result);
    return n;
}

static void kept_where_it_is_shown(void **state)
{
    (void)state;
    assert_int_equal(told("page.html"), BEATS + 1); /* a line each, and the last one */
}

static void left_out_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(told(NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept_where_it_is_shown), cmocka_unit_test(left_out_elsewhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
