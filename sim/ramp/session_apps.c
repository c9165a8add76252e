/* A step of desktop apps: a run of its own with so many of them, whose window is the hold. */
#include "base/mem.h"
#include "sim/app/fleet.h"
#include "sim/app/logins.h"
#include "sim/app/open_files.h"
#include "sim/ramp/session.h"
#include "sim/run/phase.h"

#include <stdio.h>

#define GRACE_US  (15 * US_PER_S)
#define CUT_US    (1500 * US_PER_MS)
#define AT_ONCE_S 100000 /* "all at once" as a rate */

struct step_apps {
    struct ramp *r;
    struct ramp_step *s;
    struct worker *w;           /* of this step alone */
    struct stats before, after; /* of arrival and the part that is not measured; of the end */
    struct report report;
    struct done begun;
    struct timer cut;
};

/* One signal ends the step and the ramp. */
static void on_interrupt(void *arg)
{
    struct step_apps *f = arg;
    enum phase phase = *f->w->ctx->interrupts < 2 ? PHASE_DRAIN : PHASE_CUT;
    worker_set_phase(f->w, phase);
    worker_set_phase(f->r->w, phase);
}

/* From here on it is measured. */
static void after_settling(void *arg)
{
    struct step_apps *f = arg;
    const struct ramp_conf *conf = f->r->conf;
    done_wait(f->w->loop, &f->begun);
    if (f->w->schedule.phase == PHASE_MEASURE && worker_sleep(f->w, conf->settle_us, PHASE_SETTLE)) {
        report_gather(&f->report);
        f->w->meter.total = &f->s->stats;
        f->s->measure_from = mono_now();
        watch_lap(f->r->w->watch, WATCH_LAP_REPORT, &f->s->server);
        worker_sleep(f->w, conf->hold_us - conf->settle_us, PHASE_SETTLE);
        watch_lap(f->r->w->watch, WATCH_LAP_REPORT, &f->s->server);
        report_gather(&f->report);
        f->w->meter.total = &f->after;
        f->s->measure_to = mono_now();
        f->s->measured_us = mono_diff(f->s->measure_to, f->s->measure_from);
        f->s->requests = stats_requests(&f->s->stats);
    }
    worker_lane_ended(f->w);
}

static uint64_t with_outcome(const struct step_apps *f, enum outcome o)
{
    uint64_t n = 0;
    for (unsigned op = 0; op < OP_COUNT; op++)
        n += f->before.op[op].by_outcome[o] + f->s->stats.op[op].by_outcome[o] + f->after.op[op].by_outcome[o];
    return n;
}

/* An app that lists its folders and meets no failure is ok; which app met which is not kept, so that operations are
 * counted: refused, timed out, failed. */
static void refresh(void *arg)
{
    struct step_apps *f = arg;
    struct ramp_step *s = f->s;
    report_gather(&f->report);
    uint64_t failed = stats_failed_all(&s->stats) + stats_failed_all(&f->before) + stats_failed_all(&f->after);
    s->ok = s->peak = f->w->fleet.listed;
    s->refused = (unsigned)(with_outcome(f, OUT_REFUSED) + with_outcome(f, OUT_THROTTLED));
    s->timed_out = (unsigned)with_outcome(f, OUT_TIMEOUT);
    s->unfinished = (unsigned)(with_outcome(f, OUT_UNFINISHED) + with_outcome(f, OUT_LOCAL));
    uint64_t told = with_outcome(f, OUT_REFUSED) + s->timed_out + s->unfinished;
    s->failed = (unsigned)(failed > told ? failed - told : 0);
}

static void on_cut(struct timer *t)
{
    worker_set_phase(container_of(t, struct step_apps, cut)->w, PHASE_CUT);
}

/* At once: what runs gets a moment to end by itself and let go of its locks. */
static void halt(void *arg)
{
    struct step_apps *f = arg;
    worker_set_phase(f->w, PHASE_DRAIN);
    loop_timer_set(f->w->loop, &f->cut, mono_add(mono_now(), CUT_US));
}

static MAY_YIELD enum err prepare(struct step_apps *f, uint32_t *actions, struct errinfo *ei)
{
    struct worker *w = f->w;
    enum err e = open_files_for_apps(f->s->asked, f->s->asked, NULL, ei);
    if (e == ERR_OK)
        e = fleet_find(w, ei);
    if (e == ERR_OK)
        e = fleet_make(w, ei);
    pace_split(w->conf.seed, pace_total(w->conf.seed, f->s->asked, w->conf.per_minute, w->conf.window_us), f->s->asked,
               actions);
    return e;
}

static MAY_YIELD void carry_out(struct step_apps *f, const uint32_t *actions)
{
    struct worker *w = f->w;
    double per_s = f->r->conf->arrive_per_s;
    struct phases c = {.w = w,
                       .report = &f->report,
                       .actions = actions,
                       .arrive_per_s = per_s > 0 ? per_s : AT_ONCE_S,
                       .report_us = w->conf.window_us + GRACE_US,
                       .grace_us = GRACE_US,
                       .begun = &f->begun};
    logins_keep(w);
    worker_lane(w, after_settling, f);
    phases_run(&c);
    f->s->desktop = true;
}

static void sum_up(struct step_apps *f)
{
    struct ramp_step *s = f->s;
    refresh(f);
    ramp_generator(s, &f->report.verdict);
    if (s->measured_us > 0)
        s->last_in = s->measure_from;
    s->stats.op[OP_SIGN_IN] = f->before.op[OP_SIGN_IN];
    f->before.op[OP_SIGN_IN] = (struct stats_op){.from_send = NULL};
}

/* The command counts all of it, the set-up and the end of the step too. */
static void add_all(struct step_apps *f)
{
    const struct stats *parts[] = {&f->before, &f->s->stats, &f->after};
    report_tick(&f->report); /* the last line of its course */
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        stats_merge(f->r->w->meter.total, parts[i]);
}

/* A step's sessions must not take up the places of the next one's. */
static MAY_YIELD void sign_out_all(struct step_apps *f)
{
    struct api_result r;
    for (uint32_t i = 0; i < f->w->roster.n_logins && !worker_draining(f->r->w); i++)
        (void)!api_sign_out(f->w->roster.logins[i].api, &r);
}

enum err session_apps_run(struct ramp *r, struct ramp_step *s, struct errinfo *ei)
{
    struct cmd_ctx *ctx = r->w->ctx;
    struct step_apps *f = mem_alloc(sizeof(*f));
    *f = (struct step_apps){.r = r, .s = s, .w = mem_zalloc(sizeof(*f->w)), .cut.fn = on_cut};
    const struct worker_conf wc = {.apps = s->asked,
                                   .open_folders = r->conf->open_folders,
                                   .per_minute = r->conf->per_minute,
                                   .window_us = r->conf->hold_us,
                                   .timeout_us = r->conf->timeout_us,
                                   .own_sessions = true,
                                   .seed = (uint64_t)ctx->common->seed};
    void (*outer)(void *) = ctx->on_interrupt;
    void *outer_arg = ctx->on_interrupt_arg;
    uint32_t *actions = mem_zalloc(s->asked * sizeof(*actions));
    stats_init(&f->before);
    stats_init(&f->after);
    worker_init(f->w, ctx, &wc);
    f->w->meter.total = &f->before;
    report_init(&f->report, f->w, NULL, false);
    ctx->on_interrupt_arg = f;
    ctx->on_interrupt = on_interrupt;
    s->arg = f;
    s->refresh = refresh;
    s->halt = halt;
    s->began = mono_now();
    enum err e = prepare(f, actions, ei);
    if (e == ERR_OK) {
        carry_out(f, actions);
        report_gather(&f->report);
        sum_up(f);
    }
    s->took_us = mono_diff(mono_now(), s->began);
    s->refresh = s->halt = NULL;
    loop_timer_stop(&f->cut);
    sign_out_all(f);
    add_all(f);
    ctx->on_interrupt = outer;
    ctx->on_interrupt_arg = outer_arg;
    fleet_free(f->w);
    report_done(&f->report);
    worker_done(f->w);
    mem_free(f->w);
    mem_free(actions);
    stats_done(&f->before);
    stats_done(&f->after);
    mem_free(f);
    return e;
}
