#include "sim/run/report.h"
#include "base/mem.h"
#include "drive/result/series.h"
#include "drive/stats_told.h"
#include "sim/app/stream.h"
#include "sim/app/timeline.h"
#include "sim/watch/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TICKS 300 /* of a window: as many as a plot can show */

/* ---- the course that is kept ---- */

static void write_generator(const struct report *p, struct jsonw *w)
{
    int64_t lag = hist_percentile(loop_lag(p->w->loop), 99);
    jsonw_object(w, "generator");
    jsonw_f64(w, "cpu_pct", health_since(&p->tick_began).own * 100, 1);
    if (lag >= 0)
        jsonw_f64(w, "lag_p99_ms", (double)lag / 1e3, 3);
    jsonw_end_object(w);
}

static void write_course(struct report *p, struct series *course, struct mono now)
{
    static const char *const phases[] = {
        [PHASE_SETUP] = "set-up",  [PHASE_ARRIVE] = "arrival", [PHASE_MEASURE] = "window",
        [PHASE_SETTLE] = "settle", [PHASE_DRAIN] = "drain",    [PHASE_CUT] = "drain"};
    const struct worker *w = p->w;
    struct watch_values v;
    const struct series_span span = {.from = p->tick_began.at, .to = now, .phase = phases[w->schedule.phase]};
    struct jsonw *j = series_begin(course, &span, &p->course);
    jsonw_i64(j, "apps", w->fleet.n);
    jsonw_i64(j, "streams_up", (int64_t)w->meter.streams_up);
    write_generator(p, j);
    if (w->watch) {
        watch_lap(w->watch, WATCH_LAP_INTERVAL, &v);
        watch_json(&v, "watch", j);
    }
    timeline_course(&p->w->meter, series_zero(course), j);
    series_end(course);
}

static void tick_again(struct report *p)
{
    if (p->w->ctx->result->series)
        loop_timer_set(p->w->loop, &p->tick, mono_add(mono_now(), p->tick_us));
}

void report_gather(struct report *p)
{
    stats_merge(&p->now, &p->w->meter.interval);
    if (p->w->ctx->result->series)
        stats_merge(&p->course, &p->w->meter.interval);
    meter_next_interval(&p->w->meter);
}

void report_tick(struct report *p)
{
    struct mono now = mono_now();
    struct series *course = p->w->ctx->result->series;
    struct hist *lag = loop_lag(p->w->loop);
    report_gather(p);
    if (course)
        write_course(p, course, now);
    stats_reset(&p->course);
    hist_merge(p->lag_now, lag);
    hist_reset(lag);
    health_begin(&p->tick_began);
    tick_again(p);
}

static void on_tick(struct timer *t)
{
    report_tick(container_of(t, struct report, tick));
}

void report_init(struct report *p, struct worker *w, FILE *out, bool color)
{
    *p = (struct report){.w = w, .out = out, .color = color, .lag_p99_us = -1, .last.machine = -1, .tick.fn = on_tick};
    p->lag = hist_new();
    p->lag_now = hist_new();
    stats_init(&p->now);
    stats_merge(&p->now, w->meter.total); /* takes the memory of all histograms now, as meter_init does */
    stats_reset(&p->now);
    stats_init(&p->course);
    stats_merge(&p->course, w->meter.total); /* as it stands: what was asked before the worker is in the first line */
    health_begin(&p->tick_began);
}

void report_done(struct report *p)
{
    loop_timer_stop(&p->tick);
    hist_free(&p->lag);
    hist_free(&p->lag_now);
    stats_done(&p->now);
    stats_done(&p->course);
}

void report_floor(struct report *p)
{
    p->rss_floor = p->rss_peak = health_rss_bytes();
}

void report_begin(struct report *p)
{
    health_begin(&p->interval);
    hist_reset(loop_lag(p->w->loop));
    report_tick(p); /* the set-up */
    p->tick_us = p->w->conf.window_us / TICKS;
    p->tick_us = p->tick_us < US_PER_S ? US_PER_S : p->tick_us;
    tick_again(p);
}

static uint64_t actions_ended(const struct tally *t)
{
    return t->done + t->conflicts + t->failed + t->outage + t->empty + t->unfinished;
}

/* How this process and the machine fared in the interval, which ends. */
static void sample(struct report *p)
{
    int64_t rss = health_rss_bytes();
    struct health_verdict alone = {0};
    p->last = health_lap(&p->interval);
    p->lag_p99_us = hist_percentile(p->lag_now, 99);
    (void)health_judge(p->over ? &alone : &p->verdict, &p->last, p->lag_p99_us);
    if (!p->over)
        hist_merge(p->lag, p->lag_now);
    hist_reset(p->lag_now);
    if (rss > p->rss_peak)
        p->rss_peak = rss;
}

void report_window_begin(struct report *p)
{
    health_forget(&p->verdict);
    hist_reset(p->lag);
}

/* The interval goes on: what follows is told with it, but counts no longer. */
void report_window_over(struct report *p)
{
    struct hist *now = loop_lag(p->w->loop);
    struct health_span s = health_since(&p->interval);
    hist_merge(p->lag, p->lag_now);
    hist_merge(p->lag, now);
    hist_merge(p->lag_now, now);
    (void)health_judge(&p->verdict, &s, hist_percentile(p->lag_now, 99));
    hist_reset(now);
    p->over = true;
}

static void print_head(struct report *p, const char *head, int64_t interval_us)
{
    const struct meter *m = &p->w->meter;
    char now[40];
    double seconds = (double)interval_us / 1e6;
    uint64_t requests = stats_requests(&p->now);
    uint64_t actions = actions_ended(&m->actions) - p->actions_before;
    wall_format_seconds(now, sizeof(now), wall_now());
    fprintf(p->out, "\n%s  %s\n", now, head);
    char line[160], streams[60] = "";
    if (p->w->server.caps & API_CAP_EVENTS)
        str_format(streams, sizeof(streams), ", streams up %" PRIu64 " of %u", m->streams_up, p->w->fleet.n);
    str_format(line, sizeof(line), "interval %.1f s: %s (%.1f/s), %s%s", seconds, COUNTED(requests, "request"),
               seconds > 0 ? (double)requests / seconds : 0.0, COUNTED(actions, "action"), streams);
    fprintf(p->out, "%s\n", line);
}

static void print_generator(struct report *p)
{
    char line[160], lag[32] = "-", idle[32] = "", why[400];
    if (p->lag_p99_us >= 0)
        str_format(lag, sizeof(lag), "%.1f ms", (double)p->lag_p99_us / 1e3);
    if (p->last.machine >= 0)
        str_format(idle, sizeof(idle), ", machine %.0f %% idle", (1 - p->last.machine) * 100);
    str_format(line, sizeof(line), "generator: CPU %.0f %%, loop lag p99 %s%s", p->last.own * 100, lag, idle);
    fprintf(p->out, "%s\n", line);
    struct health_verdict alone = {0};
    if (health_judge(&alone, &p->last, p->lag_p99_us))
        fprintf(p->out, "warning: this interval's figures are not the server's alone: %s\n",
                health_text(&alone, why, sizeof(why)));
}

/* The server's machine and services in this interval. */
static void print_server(struct report *p)
{
    struct watch_values v;
    char line[800];
    if (!p->w->watch)
        return;
    watch_lap(p->w->watch, WATCH_LAP_REPORT, &v);
    if (watch_line(&v, "\n        ", line, sizeof(line))[0])
        fprintf(p->out, "server: %s\n", line);
    if (watch_problem(p->w->watch)[0])
        fprintf(p->out, "warning: the server is no longer watched: %s\n", watch_problem(p->w->watch));
}

/* Open streams on which not even the first frame came: something on the way holds them back, and their apps hear
 * nothing (shared case E09). */
static void print_deaf_streams(struct report *p)
{
    const struct worker *w = p->w;
    struct mono now = mono_now();
    unsigned deaf = 0;
    for (uint32_t i = 0; i < w->fleet.n; i++)
        deaf += stream_is_silent(&w->fleet.apps[i], now);
    if (deaf)
        fprintf(p->out, "warning: %s open, but nothing has come on them yet\n", COUNTED(deaf, "event stream"));
}

void report_interval(struct report *p, const char *head)
{
    struct meter *m = &p->w->meter;
    report_tick(p);
    sample(p);
    if (p->out) {
        print_head(p, head, p->last.us);
        print_generator(p);
        print_server(p);
        if (m->waiting)
            fprintf(p->out, "%" PRIu64 " apps are waiting for a budget (429)\n", m->waiting);
        print_deaf_streams(p);
        timeline_tell(&p->w->meter, p->out);
        stats_print_table(&p->now, p->out, p->color);
        fflush(p->out);
    }
    p->actions_before = actions_ended(&m->actions);
    stats_reset(&p->now);
    report_result(p);
}

void report_result(struct report *p)
{
    struct worker *w = p->w;
    struct result *r = w->ctx->result;
    r->apps = (struct app_summary){.known = true,
                                   .planned = w->conf.apps,
                                   .streams_up = w->meter.streams_up,
                                   .streams_peak = w->meter.streams_peak,
                                   .rss_bytes_per_app = (p->rss_peak - p->rss_floor) / w->conf.apps};
    r->generator = health_summary(p->lag, &p->verdict);
    worker_fallbacks(w, r->note, sizeof(r->note));
    r->caps = w->server.caps;
}
