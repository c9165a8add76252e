#include "sim/app/solo.h"
#include "base/mem.h"
#include "drive/api/caps.h"
#include "drive/health.h"
#include "sim/app/logins.h"
#include "sim/app/open_files.h"
#include "sim/app/recorder.h"
#include "sim/app/timeline.h"
#include "sim/watch/watch.h"

#include <stdio.h>
#include <string.h>

static void on_interrupt(void *arg)
{
    struct worker *w = arg;
    worker_set_phase(w, *w->ctx->interrupts < 2 ? PHASE_DRAIN : PHASE_CUT);
    meter_next_interval(&w->meter);
}

static void add_outages(struct result *r, unsigned count, int64_t us)
{
    result_figure(r, "outages", "count", (double)count, 0);
    result_figure(r, "outages", "seconds", (double)us / 1e6, 1);
}

void solo_sample(struct result *r)
{
    add_outages(r, 0, 0);
}

static void tell_outages(struct worker *w)
{
    struct meter *m = &w->meter;
    add_outages(w->ctx->result, m->n_outages, timeline_outage_us(m));
    timeline_tell(m, w->ctx->out);
}

static MAY_YIELD enum err sign_in(struct worker *w, const struct solo *s, struct errinfo *ei)
{
    enum err e = open_files_for_apps(s->apps, s->apps, NULL, ei);
    if (e == ERR_OK)
        e = logins_discover(w, ei);
    if (e == ERR_OK) {
        logins_keep(w);
        caps_tell(w->ctx, w->server.caps);
    }
    return e;
}

/* From when the body began. */
static void tell_generator(const struct worker *w, const struct health *began, bool judged)
{
    struct generator_summary *g = &w->ctx->result->generator, said = *g;
    const struct health_span span = health_since(began);
    struct health_verdict v = {0};
    if (!judged)
        (void)health_judge(&v, &span, hist_percentile(loop_lag(w->loop), 99));
    *g = health_summary(loop_lag(w->loop), &v);
    if (!judged)
        return;
    g->limited = said.limited;
    g->late = said.late;
    g->cause = said.cause;
    memcpy(g->why, said.why, sizeof(g->why));
}

enum err solo_run(const struct solo *s, struct cmd_ctx *ctx, struct errinfo *ei)
{
    struct worker *w = mem_zalloc(sizeof(*w));
    struct server_watch *watch = NULL;
    struct recorder recorder = {0};
    struct mono began = mono_now();
    struct health work;
    const struct worker_conf wc = {.apps = s->apps, .timeout_us = s->timeout_us, .seed = (uint64_t)ctx->common->seed};
    worker_init(w, ctx, &wc);
    ctx->on_interrupt_arg = w;
    ctx->on_interrupt = on_interrupt;
    enum err e = server_watch_new(&watch, ctx, s->server_pid, ei);
    if (e == ERR_OK && s->watched)
        e = watch_new(&w->watch, ctx, s->watch, ei);
    if (e == ERR_OK)
        e = sign_in(w, s, ei);
    health_begin(&work);
    hist_reset(loop_lag(w->loop));
    if (e == ERR_OK && s->recorded)
        recorder_start(&recorder, ctx, &w->meter.interval, began);
    if (e == ERR_OK)
        cmd_phase(ctx, "work");
    if (e == ERR_OK)
        e = s->body(w, watch, s->arg, ei);
    worker_finish(w);
    if (recorder.ctx)
        recorder_stop(&recorder);
    ctx->on_interrupt = NULL;
    tell_outages(w);
    meter_next_interval(&w->meter);
    server_watch_free(&watch);
    watch_free(&w->watch);
    tell_generator(w, &work, s->judges_generator);
    worker_done(w);
    mem_free(w);
    return e;
}
