#include "sim/run/background.h"
#include "base/mem.h"
#include "sim/app/fleet.h"
#include "sim/app/logins.h"
#include "sim/run/phase.h"

#include <math.h>

#define WINDOW_US    (3600 * US_PER_S) /* the plan's length: it ends when the command does */
#define GRACE_US     (15 * US_PER_S)
#define REPORT_US    (15 * US_PER_S)
#define ARRIVE_PER_S 25
#define SAMPLES_MIN  200
#define IDLE_LEAST   0.05
#define Z_99         2.5758 /* two-sided 99 % of the normal distribution */

struct background {
    struct cmd_ctx *command, ctx; /* ctx: the command's, with a result of its own */
    struct result result;
    struct worker worker;
    struct report report;
    struct phases phases;
    uint32_t *actions;
    struct stats before; /* of earlier windows */
    struct done begun;
    struct group conductor;
    struct health marked;
};

static void conduct(void *arg)
{
    struct background *b = arg;
    phases_run(&b->phases);
}

static void background_free(struct background **b)
{
    struct worker *w = &(*b)->worker;
    fleet_free(w);
    report_done(&(*b)->report);
    worker_done(w);
    stats_done(&(*b)->before);
    result_done(&(*b)->result);
    mem_free((*b)->actions);
    MEM_FREE(*b);
}

enum err background_start(struct background **out, struct cmd_ctx *ctx, const struct background_conf *conf,
                          struct errinfo *ei)
{
    struct background *b = mem_zalloc(sizeof(*b));
    struct worker *w = &b->worker;
    const struct worker_conf wc = {.apps = conf->apps,
                                   .open_folders = conf->open_folders,
                                   .per_minute = conf->per_minute,
                                   .window_us = WINDOW_US,
                                   .timeout_us = 60 * US_PER_S,
                                   .seed = (uint64_t)ctx->common->seed};
    b->command = ctx;
    b->ctx = *ctx;
    b->ctx.result = &b->result;
    result_init(&b->result, ctx->result->command);
    stats_init(&b->before);
    worker_init(w, &b->ctx, &wc);
    report_init(&b->report, w, NULL, false);
    *out = b;
    enum err e = fleet_find(w, ei);
    if (e == ERR_OK)
        e = fleet_make(w, ei);
    if (e != ERR_OK) {
        background_free(out);
        return e;
    }
    b->actions = mem_zalloc(conf->apps * sizeof(*b->actions));
    pace_split(w->conf.seed, pace_total(w->conf.seed, conf->apps, conf->per_minute, WINDOW_US), conf->apps, b->actions);
    logins_keep(w);
    b->phases = (struct phases){.w = w,
                                .report = &b->report,
                                .actions = b->actions,
                                .arrive_per_s = ARRIVE_PER_S,
                                .report_us = REPORT_US,
                                .grace_us = GRACE_US,
                                .begun = &b->begun};
    group_spawn(ctx->loop, &b->conductor, conduct, b);
    done_wait(ctx->loop, &b->begun);
    background_mark(b);
    return ERR_OK;
}

/* What was counted since the last mark is in the worker's total, once the running interval is added. */
void background_mark(struct background *b)
{
    meter_next_interval(&b->worker.meter);
    stats_merge(&b->before, &b->result.stats);
    stats_reset(&b->result.stats);
    health_begin(&b->marked);
}

static bool counts(enum drive_op op)
{
    return op != OP_SIGN_IN && op != OP_FULL_PASS && op != OP_FIRST_LIST && op != OP_STREAM && op != OP_EVENT &&
           op != OP_EVENT_VISIBLE;
}

/* The percentile at a rank; ranks beyond the samples are the ends. */
static int64_t at_rank(const struct hist *h, double rank)
{
    double pct = 100 * rank / (double)hist_count(h);
    return hist_percentile(h, pct < 0 ? 0 : pct > 100 ? 100 : pct);
}

void background_look(struct background *b, struct background_window *out)
{
    struct hist *all = hist_new();
    const struct health_span span = health_since(&b->marked);
    meter_next_interval(&b->worker.meter);
    *out = (struct background_window){.p95_us = -1,
                                      .p95_low_us = -1,
                                      .p95_high_us = -1,
                                      .us = span.us,
                                      .idle = span.machine >= 0 ? 1 - span.machine : -1};
    for (int op = 0; op < OP_COUNT; op++) {
        const struct stats_op *o = &b->result.stats.op[op];
        out->failed += stats_failed(&b->result.stats, (enum drive_op)op);
        if (counts((enum drive_op)op) && o->from_send)
            hist_merge(all, o->from_send);
    }
    double n = (double)hist_count(all);
    out->ok = hist_count(all);
    if (out->ok > 0) { /* ranks of an order statistic are binomial */
        double half = Z_99 * sqrt(n * 0.95 * 0.05);
        out->p95_us = hist_percentile(all, 95);
        out->p95_low_us = at_rank(all, n * 0.95 - half);
        out->p95_high_us = at_rank(all, n * 0.95 + half + 1);
    }
    hist_free(&all);
}

void background_stop(struct background *b)
{
    worker_set_phase(&b->worker, *b->ctx.interrupts < 2 ? PHASE_DRAIN : PHASE_CUT);
}

void background_end(struct background **b)
{
    struct background *x = *b;
    if (!x)
        return;
    worker_set_phase(&x->worker, PHASE_DRAIN);
    group_wait(x->ctx.loop, &x->conductor);
    background_mark(x);
    stats_merge(&x->command->result->stats, &x->before);
    x->command->result->apps = x->result.apps;
    background_free(b);
}

enum background_verdict background_compare(const struct background_window *before, const struct background_window *now,
                                           double share)
{
    if (before->ok < SAMPLES_MIN || now->ok < SAMPLES_MIN)
        return BACKGROUND_UNSETTLED;
    if ((double)now->p95_us <= (1 + share) * (double)before->p95_us)
        return BACKGROUND_HELD;
    bool proven = (double)now->p95_low_us > (1 + share) * (double)before->p95_high_us;
    bool crowded = (before->idle >= 0 && before->idle < IDLE_LEAST) || (now->idle >= 0 && now->idle < IDLE_LEAST);
    return !proven ? BACKGROUND_UNSETTLED : crowded ? BACKGROUND_CROWDED : BACKGROUND_WORSE;
}
