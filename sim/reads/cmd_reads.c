/* `sim reads`: every read of the table, many times one after another, alone and then beside apps at work; and whether
 * what came is true. The truth is compared in the quiet part, where nothing changes between answer and look. */
#include "base/log.h"
#include "base/mem.h"
#include "drive/cmd.h"
#include "drive/health.h"
#include "sim/reads/read.h"
#include "sim/run/background.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OPEN_FOLDERS 20

struct reads_conf {
    int64_t times, background, p95_us;
    double per_minute;
};
enum part { ALONE, LOADED, PARTS };
static const char *const part_keys[PARTS] = {"alone", "load"};

struct timing {
    struct hist *took;
    uint64_t failed;
    char why[200]; /* of the first failure */
};
struct read_result {
    struct timing part[PARTS];
    int64_t rows;
    bool asked, checked;
    char untried[120], untrue[240]; /* "": it was; it is */
};
struct command_reads {
    const struct reads_conf *conf;
    struct cmd_ctx *ctx;
    struct reads_stage stage;
    struct background *background;
    struct read_result *results;
    struct health began; /* with the reading */
    bool stop;
};

static const struct opt opts[] = {
    {"times", 'n', "N", OPT_INT, offsetof(struct reads_conf, times), 1, 100000,
     "how often each read is made (default 100)"},
    {"background", 0, "N", OPT_INT, offsetof(struct reads_conf, background), 0, 10000,
     "apps at work in the second part (default 20, 0: no second\npart)"},
    {"rate", 0, "N", OPT_NUM, offsetof(struct reads_conf, per_minute), 0.1, 6000,
     "actions a minute of each of them (default 30)"},
    {"p95", 0, "TIME", OPT_DURATION, offsetof(struct reads_conf, p95_us), 1, 3.6e9,
     "fail when the p95 of a read alone is above it; needs\n--times 20 or more"},
    {0},
};
static enum err verify(void *arg, struct errinfo *ei)
{
    const struct reads_conf *c = arg;
    if (c->p95_us && (uint64_t)c->times < hist_needs(95))
        return err_set(ei, ERR_USAGE, "--p95 with --times %" PRId64 ": a p95 needs %d samples", c->times,
                       (int)hist_needs(95));
    return ERR_OK;
}

static const struct reads_conf defaults = {.times = 100, .background = 20, .per_minute = 30};

static void on_interrupt(void *arg)
{
    struct command_reads *c = arg;
    c->stop = true;
    if (c->background)
        background_stop(c->background);
}

/* ---- one row ---- */

/* The first and the last answer are compared: a cache must not be the only one to be right. */
static MAY_YIELD void compare(struct command_reads *c, const struct read *row, const struct reading *got,
                              struct read_result *res)
{
    char text[200];
    bool checked;
    const char *problem = read_compare(&c->stage, row, got, &checked, text, sizeof(text));
    res->checked = res->checked || checked;
    if (problem && !res->untrue[0])
        str_format(res->untrue, sizeof(res->untrue), "%s", problem);
}

/* No such path: a page instead of a sentence, or no such method. What is not there is no failure. */
static bool is_absent(const struct reading *got)
{
    return (got->status == 404 && !got->reason[0]) || got->status == 405 || got->status == 501;
}

/* Why the row is not asked; NULL: it is. */
static const char *unfit(const struct command_reads *c, const struct read *row)
{
    struct buf path = BUF_INIT(4096);
    bool there = read_path(&c->stage, row, &path);
    const char *why = read_unfit(&c->stage, row);
    buf_done(&path);
    return why || there ? why : "neither the server nor DATABASE_URL gives anything to ask with";
}

/* Answers are held against the database the first and the last time, alone: under load the rows change meanwhile.
 * False: the row is not to be asked again. */
static MAY_YIELD bool ask_once(struct command_reads *c, const struct read *row, struct read_result *res, enum part part,
                               int64_t nth, struct arena *mem)
{
    struct timing *t = &res->part[part];
    struct reading got;
    bool compared = part == ALONE && (nth == 0 || nth == c->conf->times - 1);
    bool ok = read_ask(&c->stage, row, compared, mem, &got), absent = nth == 0 && is_absent(&got);
    reads_heard(&c->stage, ok || got.status != 0);
    if (absent && !c->stop)
        str_format(res->untried, sizeof(res->untried), "the server has no such call");
    if (absent || (c->stop && !ok)) {
        reading_done(&got);
        return false;
    }
    if (ok)
        hist_record(t->took, got.us);
    else if (t->failed++ == 0)
        str_format(t->why, sizeof(t->why), "%d %s", got.status, got.reason);
    if (ok && part == ALONE) {
        res->rows = got.rows;
        res->asked = true;
        if (compared)
            compare(c, row, &got, res);
    }
    reading_done(&got);
    return !reads_silent(&c->stage);
}

static MAY_YIELD void run_row(struct command_reads *c, const struct read *row, struct read_result *res, enum part part)
{
    const char *why = reads_silent(&c->stage) ? READS_SILENT : unfit(c, row);
    if (!res->part[part].took)
        res->part[part].took = hist_new();
    if (why) {
        if (part == ALONE) /* else it was read, and what was found holds */
            str_format(res->untried, sizeof(res->untried), "%s", why);
        return;
    }
    struct arena *mem = arena_new(64 << 10);
    for (int64_t i = 0; i < c->conf->times && !c->stop && ask_once(c, row, res, part, i, mem); i++)
        arena_reset(mem);
    arena_free(&mem);
}

/* ---- the result ---- */

/* Left out for a reason, or never come to: the command was interrupted before. */
static bool untried_row(const struct read_result *res)
{
    return res->untried[0] || (!res->asked && !res->part[ALONE].failed);
}

static const char *truth_word(const struct read_result *res, const struct read *row)
{
    if (res->untrue[0])
        return "WRONG";
    return res->checked ? "as the rows say" : row->truth == TRUTH_NONE ? "-" : "not compared";
}

static void print_row(const struct command_reads *c, const struct read *row, const struct read_result *res)
{
    static const double pcts[] = {50, 95, 99, 100};
    struct buf line = BUF_INIT(1024);
    char cell[32], rows[32] = "-";
    if (res->asked)
        str_format(rows, sizeof(rows), "%" PRId64, res->rows);
    enum err e = buf_appendf(&line, "%-44s %6s", row->what, rows);
    for (int p = 0; p < PARTS && e == ERR_OK; p++)
        for (size_t i = 0; i < ARRAY_LEN(pcts) && e == ERR_OK; i++)
            e = buf_appendf(&line, "%s%8s", i == 0 ? " " : "",
                            hist_cell(res->part[p].took, pcts[i], US_PER_MS, 1, cell, sizeof(cell)));
    fprintf(c->ctx->out, "%s  %s\n", buf_cstr(&line), truth_word(res, row));
    buf_done(&line);
}

static void print_table(const struct command_reads *c)
{
    size_t untried = 0;
    fprintf(c->ctx->out, "%-44s %6s %32s %32s\n", "", "", "alone, ms --------------------",
            "beside apps at work, ms ------");
    fprintf(c->ctx->out, "%-44s %6s %8s%8s%8s%8s %8s%8s%8s%8s  answer\n", "read", "rows", "p50", "p95", "p99",
            "slowest", "p50", "p95", "p99", "slowest");
    for (size_t i = 0; i < n_reads; i++) {
        if (untried_row(&c->results[i]))
            untried++;
        else
            print_row(c, &reads[i], &c->results[i]);
    }
    if ((uint64_t)c->conf->times < hist_needs(99))
        fprintf(c->ctx->out, "%s\n", HIST_FEW);
    if (untried)
        fprintf(c->ctx->out, "not tried: %s:\n", COUNTED(untried, "read"));
    for (size_t i = 0; i < n_reads; i++)
        if (untried_row(&c->results[i]))
            fprintf(c->ctx->out, "  %-44s %s\n", reads[i].what,
                    c->results[i].untried[0] ? c->results[i].untried : "it ended before");
}

static void write_timing(struct jsonw *w, const char *key, const struct timing *t)
{
    static const struct percentile columns[] = {{"p50_ms", 50}, {"p95_ms", 95}, {"p99_ms", 99}, {"max_ms", 100}};
    jsonw_object(w, key);
    jsonw_i64(w, "ok", t->took ? (int64_t)hist_count(t->took) : 0);
    jsonw_i64(w, "failed", (int64_t)t->failed);
    percentiles_write(w, t->took, columns, ARRAY_LEN(columns));
    jsonw_end_object(w);
}

static void write_rows(const struct command_reads *c)
{
    struct buf json = BUF_INIT(4 << 20);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    for (size_t i = 0; i < n_reads; i++) {
        const struct read_result *res = &c->results[i];
        jsonw_object(&w, reads[i].key);
        jsonw_str(&w, "what", reads[i].what);
        jsonw_i64(&w, "rows", res->rows);
        jsonw_str(&w, "answer",
                  untried_row(res) ? "not_tried"
                  : res->untrue[0] ? "wrong"
                  : res->checked   ? "true"
                                   : "not_compared");
        jsonw_str(&w, "why", res->untried[0] ? res->untried : res->untrue);
        for (int p = 0; p < PARTS; p++)
            write_timing(&w, part_keys[p], &res->part[p]);
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
    result_part(c->ctx->result, "reads", &w);
}

static void tell_generator(const struct command_reads *c)
{
    const struct health_span span = health_since(&c->began);
    struct hist *lag = loop_lag(c->ctx->loop);
    struct health_verdict v = {0};
    (void)health_judge(&v, &span, hist_percentile(lag, 99));
    c->ctx->result->generator = health_summary(lag, &v);
}

/* --p95 as a threshold of its own, which nobody can judge where the generator was the limit. */
static void leave_open(const struct command_reads *c, const struct read *row)
{
    char text[120];
    struct errinfo ei;
    str_format(text, sizeof(text), "%s.p95<=%" PRId64 "us", row->key, c->conf->p95_us);
    if (result_threshold(c->ctx->result, text, &ei) != ERR_OK)
        LOGW("reads", "%s", err_message(&ei));
}

static void judge(const struct command_reads *c)
{
    bool limited = c->ctx->result->generator.limited;
    struct check_result *r = result_check(c->ctx->result, "truth");
    uint64_t checked = 0, untried = 0, slow = 0;
    char limit[32] = "", slower[80] = "";
    for (size_t i = 0; i < n_reads; i++) {
        const struct read *row = &reads[i];
        const struct read_result *res = &c->results[i];
        const struct timing *alone = &res->part[ALONE];
        checked += res->checked;
        untried += untried_row(res);
        if (res->untrue[0])
            result_check_add(r, "%s: %s: %s", row->key, row->what, res->untrue);
        for (int p = 0; p < PARTS; p++)
            if (res->part[p].failed)
                result_check_add(r, "%s: %s: %" PRIu64 " failed: %s", row->key, row->what, res->part[p].failed,
                                 res->part[p].why);
        if (c->conf->p95_us && limited && hist_carries(alone->took, 95)) {
            leave_open(c, row);
        } else if (c->conf->p95_us && hist_carries(alone->took, 95) &&
                   hist_percentile(alone->took, 95) > c->conf->p95_us) {
            slow++;
            result_check_add(r, "%s: %s: p95 %.1f ms alone, above %s", row->key, row->what,
                             hist_percentile_ms(alone->took, 95), str_duration(limit, sizeof(limit), c->conf->p95_us));
        }
        for (int p = 0; p < PARTS; p++)
            r->examined += res->part[p].took ? hist_count(res->part[p].took) + res->part[p].failed : 0;
    }
    if (c->conf->p95_us && !limited)
        str_format(slower, sizeof(slower), ", %" PRIu64 " slower than %s at the p95", slow,
                   str_duration(limit, sizeof(limit), c->conf->p95_us));
    str_format(r->summary, sizeof(r->summary),
               "%s, %" PRIu64 " compared with the database%s%s, %" PRIu64 " not tried, %" PRIu64 " wrong%s",
               COUNTED(n_reads, "read"), checked, c->stage.pg ? "" : ": ",
               c->stage.pg ? "" : err_message(&c->stage.pg_why), untried, r->wrong - slow, slower);
}

/* ---- the course ---- */

static MAY_YIELD void run_part(struct command_reads *c, enum part part)
{
    FILE *out = c->ctx->common->quiet ? NULL : c->ctx->out;
    if (out)
        fprintf(out, "reading: %s, %s each, %s\n", COUNTED(n_reads, "read"), COUNTED((uint64_t)c->conf->times, "time"),
                part == ALONE ? "alone" : "beside apps at work");
    struct progress *p = progress_new(out, c->ctx->tty, "reads", n_reads);
    for (size_t i = 0; i < n_reads && !c->stop; i++) {
        progress_set(p, i, reads[i].what);
        run_row(c, &reads[i], &c->results[i], part);
    }
    progress_drop(&p);
}

static MAY_YIELD enum err carry_out(struct command_reads *c, struct errinfo *ei)
{
    const struct background_conf conf = {(unsigned)c->conf->background, OPEN_FOLDERS, c->conf->per_minute};
    enum err e = reads_stage_build(&c->stage, ei);
    if (e != ERR_OK)
        return e;
    cmd_phase(c->ctx, "work");
    health_begin(&c->began);
    hist_reset(loop_lag(c->ctx->loop));
    run_part(c, ALONE);
    if (c->conf->background == 0 || c->stop || reads_silent(&c->stage))
        return ERR_OK;
    e = background_start(&c->background, c->ctx, &conf, ei);
    if (e == ERR_OK)
        run_part(c, LOADED);
    background_end(&c->background);
    return e;
}

static MAY_YIELD enum err run_main(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    struct command_reads *c = mem_zalloc(sizeof(*c));
    struct stats *s = &ctx->result->stats;
    char left[300];
    ctx->cause = CAUSE_ACTION;
    *c = (struct command_reads){.conf = arg, .ctx = ctx, .results = mem_zalloc(n_reads * sizeof(*c->results))};
    c->stage = (struct reads_stage){.ctx = ctx, .stop = &c->stop, .budget = {.loop = ctx->loop, .stop = &c->stop}};
    ctx->on_interrupt_arg = c;
    ctx->on_interrupt = on_interrupt;
    enum err e = carry_out(c, ei);
    reads_stage_clear(&c->stage, left, sizeof(left));
    if (left[0])
        fprintf(ctx->out, "not removed: %s\n", left);
    if (e == ERR_OK) {
        print_table(c);
        write_rows(c);
        tell_generator(c);
        judge(c);
    }
    s->waited_us += c->stage.budget.waited_us;
    ctx->on_interrupt = NULL;
    reads_stage_free(&c->stage);
    for (size_t i = 0; i < n_reads; i++)
        for (int p = 0; p < PARTS; p++)
            hist_free(&c->results[i].part[p].took);
    mem_free(c->results);
    mem_free(c);
    return e;
}

static void sample(struct result *r)
{
    struct cmd_ctx ctx = {.result = r};
    struct command_reads c = {.ctx = &ctx, .results = mem_zalloc(n_reads * sizeof(*c.results))};
    write_rows(&c);
    mem_free(c.results);
}

const struct command cmd_reads = {
    .name = "reads",
    .summary = "time every kind of read, alone and under load, and check the answers",
    .usage = "sim reads [options]",
    .examples = "sim reads\n"
                "sim reads --times 30 --background 0 --p95 50ms\n"
                "sim reads --background 50 --json reads.json\n"
                "sim reads --fail-on 'list_hot.p95<20ms' --fail-on 'search_many.load.p95<200ms'",
    .opts = opts,
    .conf_size = sizeof(struct reads_conf),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_FAILURES_MATTER,
    .verify = verify,
    .run = run_main,
    .sample = sample,
};
