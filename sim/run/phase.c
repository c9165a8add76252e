/* The window begins when every app has listed its folders, so that neither arrivals nor cold listings enter its
 * figures; at the latest two minutes after the last arrival. What does not come on is not waited for: after a few
 * seconds without any progress of the first passes the window begins, and where not one app has listed its folders, it
 * counts from the last progress on, so that a run of 5 s against a dead server ends after 5 s and the grace. */
#include "sim/run/phase.h"
#include "sim/app/stream.h"
#include "sim/app/witness.h"

#include <stdio.h>

#define STALL_US   (5 * US_PER_S)
#define CUT_US     US_PER_S
#define RECOVER_US (45 * US_PER_S) /* instead, after outages: the last streams come back after half a minute */
#define QUIET_US   (250 * US_PER_MS)
#define WARM_UP_US (120 * US_PER_S) /* at most, after the last arrival */

static bool stopping(const struct phases *c)
{
    return worker_draining(c->w);
}

static void part(const struct phases *c, const char *name)
{
    if (c->tells)
        cmd_phase(c->w->ctx, name);
}

static int64_t whole_seconds(int64_t us)
{
    return (us + US_PER_S / 2) / US_PER_S;
}

/* ---- arrival and first full pass ---- */

static void report_arrival(struct phases *c, uint32_t started)
{
    char head[120];
    if (!mono_passed(c->next_report))
        return;
    snprintf(head, sizeof(head), "arriving: %u of %u apps started, %u have listed all their folders", started,
             c->w->fleet.n, c->w->fleet.listed);
    report_interval(c->report, head);
    c->next_report = mono_add(c->next_report, c->report_us);
}

static MAY_YIELD void arrive(struct phases *c)
{
    struct worker *w = c->w;
    struct mono began = mono_now();
    worker_set_phase(w, PHASE_ARRIVE);
    for (uint32_t i = 0; i < w->fleet.n && !stopping(c); i++) {
        struct mono due = mono_add(began, (int64_t)(i / c->arrive_per_s * 1e6));
        while (!mono_passed(due) && !stopping(c)) {
            done_wait_until(w->loop, &w->schedule.wake, mono_earlier(due, c->next_report));
            report_arrival(c, i);
        }
        if (!stopping(c))
            app_start(&w->fleet.apps[i], due);
    }
    w->fleet.moved = mono_now();
}

static MAY_YIELD void warm_up(struct phases *c)
{
    struct worker *w = c->w;
    struct mono limit = mono_add(mono_now(), WARM_UP_US);
    while (w->fleet.listed < w->fleet.n && !stopping(c) && !mono_passed(limit)) {
        struct mono stalled = mono_add(w->fleet.moved, STALL_US);
        if (mono_passed(stalled))
            break;
        done_wait_until(w->loop, &w->schedule.wake, mono_earlier(mono_earlier(stalled, limit), c->next_report));
        report_arrival(c, w->fleet.n);
    }
    bool waited = w->fleet.listed > 0 || mono_passed(limit);
    w->schedule.window = waited ? mono_now() : w->fleet.moved;
}

/* ---- the window ---- */

static void begin_window(struct phases *c)
{
    struct worker *w = c->w;
    char head[120];
    snprintf(head, sizeof(head), "arrived: %u of %u apps have listed all their folders; the measured window begins",
             w->fleet.listed, w->fleet.n);
    report_interval(c->report, head);
    report_window_begin(c->report);
    worker_set_phase(w, PHASE_MEASURE);
    part(c, "window");
    if (w->watch)
        watch_lap(w->watch, WATCH_LAP_WINDOW, &c->watched); /* what was before is dropped */
    if (c->inject)
        inject_begin(c->inject);
    if (c->chaos)
        chaos_begin(c->chaos, c->chaos_log);
    for (uint32_t i = 0; i < w->fleet.n; i++)
        app_begin(&w->fleet.apps[i], c->actions[i]);
}

static void count_writes(struct phases *c)
{
    const struct roster *all = &c->w->roster;
    for (uint32_t i = 0; i < all->n_accounts; i++) {
        uint64_t n = all->accounts[i].writes;
        c->window_writes += n;
        c->busiest_writes = n > c->busiest_writes ? n : c->busiest_writes;
    }
}

/* What is counted at its end is of the window alone: nothing is written before it. */
static MAY_YIELD void measure(struct phases *c)
{
    struct worker *w = c->w;
    struct mono end = mono_add(w->schedule.window, w->conf.window_us);
    uint64_t requests_before = meter_requests(&w->meter);
    c->next_report = mono_add(w->schedule.window, c->report_us);
    while (!mono_passed(end) && !stopping(c)) {
        done_wait_until(w->loop, &w->schedule.wake, mono_earlier(end, c->next_report));
        if (!mono_passed(c->next_report) || !mono_before(c->next_report, end) || stopping(c))
            continue;
        char head[80];
        snprintf(head, sizeof(head), "%lld s of %lld s",
                 (long long)whole_seconds(mono_diff(c->next_report, w->schedule.window)),
                 (long long)whole_seconds(w->conf.window_us));
        report_interval(c->report, head);
        while (mono_passed(c->next_report))
            c->next_report = mono_add(c->next_report, c->report_us);
    }
    report_window_over(c->report);
    c->measured_us = mono_diff(mono_earlier(mono_now(), end), w->schedule.window);
    c->window_requests = meter_requests(&w->meter) - requests_before;
    count_writes(c);
    if (w->watch)
        watch_lap(w->watch, WATCH_LAP_WINDOW, &c->watched);
    report_tick(c->report);
    part(c, "drain");
}

static const char *awaited(const struct phases *c)
{
    if (c->inject && c->inject->running > 0)
        return "the window is over: waiting for the big files and the bulk copy";
    return c->chaos && c->chaos->running > 0 ? "the window is over: waiting until what was taken away is back" : NULL;
}

/* Gigabytes under way have time limits of their own, and parts of the stack come back: the window is over, the run is
 * not. */
static MAY_YIELD void outlast_injected(struct phases *c)
{
    struct worker *w = c->w;
    const char *why;
    while ((why = awaited(c)) && !stopping(c)) {
        done_wait_until(w->loop, &w->schedule.wake, c->next_report);
        if (!mono_passed(c->next_report))
            continue;
        report_interval(c->report, why);
        while (mono_passed(c->next_report))
            c->next_report = mono_add(c->next_report, c->report_us);
    }
}

/* ---- the end ---- */

/* After outages that were ordered all apps are waited for, else one without its event stream is left out. */
static bool all_quiet(const struct worker *w)
{
    for (uint32_t i = 0; i < w->fleet.n; i++)
        if (!app_quiet(&w->fleet.apps[i]) || (w->meter.n_ordered > 0 && app_deaf(&w->fleet.apps[i])))
            return false;
    return true;
}

static bool any_acts(const struct worker *w)
{
    for (uint32_t i = 0; i < w->fleet.n; i++)
        if (w->fleet.apps[i].foreground.busy)
            return true;
    return false;
}

/* So that every event has come and every view is what its app believes for good: for the checks alone, outside of the
 * window. Given up after the grace; then there is no view to judge. */
static MAY_YIELD void settle(struct phases *c)
{
    struct worker *w = c->w;
    int64_t longest = w->meter.n_ordered > 0 ? RECOVER_US : c->grace_us;
    struct mono limit = mono_add(mono_now(), longest), quiet_from = mono_now();
    if (!w->ledger.file || stopping(c))
        return;
    worker_set_phase(w, PHASE_SETTLE);
    if (!(w->server.caps & API_CAP_FEED) ||
        !(w->server.caps & API_CAP_EVENTS)) { /* what others did last may not be known: once more */
        limit = mono_add(mono_now(), c->grace_us);
        while (!stopping(c) && !mono_passed(limit) && any_acts(w))
            done_wait_until(w->loop, &w->schedule.wake, mono_add(mono_now(), QUIET_US / 5));
        for (uint32_t i = 0; i < w->fleet.n; i++)
            app_look_again(&w->fleet.apps[i]);
        quiet_from = mono_now();
    }
    while (!stopping(c) && !mono_passed(limit) && !mono_passed(mono_add(quiet_from, QUIET_US))) {
        done_wait_until(w->loop, &w->schedule.wake, mono_add(mono_now(), QUIET_US / 5));
        if (!all_quiet(w))
            quiet_from = mono_now();
    }
    w->schedule.settled = !stopping(c) && all_quiet(w);
    if (w->schedule.settled)
        witness_views(w);
}

static MAY_YIELD void wait_for_lanes(struct phases *c, struct mono until, enum phase but)
{
    while (c->w->schedule.lanes > 0 && c->w->schedule.phase < but && !mono_passed(until))
        done_wait_until(c->w->loop, &c->w->schedule.wake, until);
}

/* A first full pass that never ended is a failure of its own, beside the listing that was cut. */
static void note_unlisted(struct worker *w)
{
    for (uint32_t i = 0; i < w->fleet.n; i++) {
        if (w->fleet.apps[i].background.listed || !w->fleet.apps[i].started)
            continue;
        struct api_result r = {.outcome = w->fleet.apps[i].ran_short ? OUT_LOCAL : OUT_UNFINISHED,
                               .reason = "not finished when the run ended"};
        meter_record(&w->meter, OP_FULL_PASS, &r, (struct mono){0});
    }
}

/* An app that hears nothing works with what was: no healthy one, although nothing failed (shared case E09). */
static void note_silent(struct worker *w)
{
    struct mono now = mono_now();
    for (uint32_t i = 0; i < w->fleet.n; i++) {
        if (!stream_is_silent(&w->fleet.apps[i], now))
            continue;
        struct api_result r = {.outcome = OUT_TIMEOUT, .reason = "it is open, but nothing ever came on it"};
        meter_record(&w->meter, OP_STREAM, &r, (struct mono){0});
    }
}

static MAY_YIELD void drain(struct phases *c)
{
    struct worker *w = c->w;
    if (!c->interrupted)
        note_silent(w);
    worker_set_phase(w, PHASE_DRAIN);
    if (c->inject)
        inject_stop(c->inject);
    if (c->chaos)
        chaos_stop(c->chaos);
    for (uint32_t i = 0; i < w->fleet.n; i++)
        app_stop(&w->fleet.apps[i]);
    wait_for_lanes(c, mono_add(mono_now(), c->grace_us), PHASE_CUT);
    worker_set_phase(w, PHASE_CUT);
    while (w->schedule.lanes > 0) { /* what is cut may have a lock to let go: it gets a moment for that */
        api_cancel(NULL);
        httpc_cancel(w->ctx->http, NULL);
        wait_for_lanes(c, mono_add(mono_now(), CUT_US), PHASE_CUT + 1);
    }
    if (!c->interrupted)
        note_unlisted(w);
}

void phases_run(struct phases *c)
{
    struct worker *w = c->w;
    char head[120], measured[32];
    report_begin(c->report);
    part(c, "arrival");
    c->next_report = mono_add(mono_now(), c->report_us);
    arrive(c);
    warm_up(c);
    bool runs = !stopping(c);
    if (runs)
        begin_window(c);
    if (c->begun)
        done_set(c->begun);
    if (runs) {
        measure(c);
        outlast_injected(c);
        settle(c);
    }
    c->interrupted = stopping(c);
    drain(c);
    str_duration(measured, sizeof(measured), c->measured_us);
    if (c->interrupted)
        snprintf(head, sizeof(head), "interrupted after %s, drained", measured);
    else
        snprintf(head, sizeof(head), "%lld s of %lld s, drained", (long long)whole_seconds(w->conf.window_us),
                 (long long)whole_seconds(w->conf.window_us));
    report_interval(c->report, head);
    for (uint32_t i = 0; i < w->fleet.n; i++)
        app_close(&w->fleet.apps[i]);
}
