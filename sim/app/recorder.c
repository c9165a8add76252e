#include "sim/app/recorder.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/result/series.h"

#define TICK_US     (100 * US_PER_MS)
#define LINES_PER_E 100 /* so many lines until the command has gone on e times as long */

bool recorder_wanted(const struct cmd_common *c)
{
    for (unsigned i = 0; i < RENDERING_COUNT; i++)
        if (c->files[i] && rendering_shows_course((enum rendering)i))
            return true;
    return false;
}

static void again(struct recorder *r)
{
    int64_t gone = mono_diff(r->from, r->began) / LINES_PER_E;
    loop_timer_set(r->ctx->loop, &r->tick, mono_add(r->from, gone > TICK_US ? gone : TICK_US));
}

static void write_line(struct recorder *r, const char *phase, const struct stats *stats)
{
    struct series *course = r->ctx->result->series;
    const struct series_span span = {.from = r->from, .to = mono_now(), .phase = phase};
    if (course) {
        series_begin(course, &span, stats);
        series_end(course);
    }
    r->from = span.to;
}

static void take(struct recorder *r)
{
    stats_merge(&r->ctx->result->stats, r->interval);
    stats_reset(r->interval);
}

void recorder_add(struct recorder *r)
{
    write_line(r, "window", r->interval);
    take(r);
}

static void on_tick(struct timer *t)
{
    struct recorder *r = container_of(t, struct recorder, tick);
    recorder_add(r);
    again(r);
}

void recorder_start(struct recorder *r, struct cmd_ctx *ctx, struct stats *interval, struct mono began)
{
    struct result *of = ctx->result;
    const struct series_owner owner = {
        .command = of->command, .target = of->target, .arguments = of->arguments, .seed = of->seed};
    struct errinfo ei;
    *r = (struct recorder){.ctx = ctx, .interval = interval, .tick.fn = on_tick, .began = mono_now()};
    r->from = began;
    bool wanted = recorder_wanted(ctx->common);
    if (wanted && series_new(&of->series, NULL, &owner, r->began, &ei) != ERR_OK)
        LOGW("result", "no course is kept: %s", err_message(&ei));
    take(r);
    if (stats_requests(&of->stats) > 0)
        write_line(r, "set-up", &of->stats);
    r->from = r->began;
    if (of->series)
        again(r);
}

void recorder_stop(struct recorder *r)
{
    loop_timer_stop(&r->tick);
    recorder_add(r);
}
