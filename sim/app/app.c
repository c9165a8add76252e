/* The app's life cycle and its two lanes, which make all its requests; stream.c has its event stream. */
#include "sim/app/app.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/app/actions.h"
#include "sim/app/call.h"
#include "sim/app/logins.h"
#include "sim/app/stream.h"
#include "sim/app/sync.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STREAM_JITTER 17 /* random streams: pace.c has the even ones from 16 on */
#define LATE_US       US_PER_S

/* ---- the lanes ---- */

void app_take_session(struct app *a)
{
    if (a->session == a->login->generation)
        return;
    if (a->api != a->login->api)
        api_share_session(a->api, a->login->api);
    api_set_caps(a->api, a->w->server.caps);
    a->session = a->login->generation;
}

/* After a 401 on the stream. */
static MAY_YIELD void renew_for_stream(struct app *a)
{
    a->stream.session_stale = false;
    bool renewed = a->session != a->login->generation;
    if (!renewed) {
        stats_reason_add(&a->w->meter.interval, OP_SIGN_IN, "401 expired: signed in again");
        renewed = login_renew(a->w, a->login, a->session);
    }
    app_take_session(a);
    stream_renewed(a, renewed);
}

static void arm_background(struct app *a)
{
    if (a->started && !worker_draining(a->w))
        loop_timer_set(a->w->loop, &a->background.timer, sync_next_due(a));
}

static void background(void *arg)
{
    struct app *a = arg;
    do {
        app_take_session(a);
        api_set_caps(a->api, a->w->server.caps);
        if (a->stream.session_stale)
            renew_for_stream(a);
    } while (!worker_draining(a->w) && sync_step(a));
    a->background.busy = false;
    arm_background(a);
    worker_lane_ended(a->w);
}

void app_kick_background(struct app *a)
{
    if (a->background.busy || !a->started || worker_draining(a->w))
        return;
    if (!a->stream.session_stale && !mono_passed(sync_next_due(a))) {
        arm_background(a);
        return;
    }
    a->background.busy = true;
    worker_lane(a->w, background, a);
}

static void on_background_timer(struct timer *t)
{
    app_kick_background(container_of(t, struct app, background.timer));
}

static struct mono action_due(const struct app *a)
{
    return mono_add(a->w->schedule.window, a->foreground.next.at_us);
}

static void foreground(void *arg)
{
    struct app *a = arg;
    struct app_foreground *f = &a->foreground;
    struct worker *w = a->w;
    while (f->has_next && w->schedule.phase <= PHASE_MEASURE && mono_passed(action_due(a))) {
        struct planned p = f->next;
        struct mono due = mono_later(action_due(a), f->waited_until);
        f->has_next = pace_next(&f->pace, &w->mix, &f->next);
        w->meter.actions.late += mono_diff(mono_now(), due) > LATE_US;
        app_take_session(a);
        api_set_caps(a->api, w->server.caps);
        action_run(a, &p, due);
    }
    f->busy = false;
    app_kick_foreground(a);
    worker_lane_ended(w);
}

void app_kick_foreground(struct app *a)
{
    struct app_foreground *f = &a->foreground;
    struct worker *w = a->w;
    if (f->busy || !f->has_next || w->schedule.phase != PHASE_MEASURE)
        return;
    if (!a->background.listed && a->view.files == 0)
        return; /* nothing to act on yet: the first listing with files comes back here */
    if (!mono_passed(action_due(a))) {
        loop_timer_set(w->loop, &f->timer, action_due(a));
        return;
    }
    f->busy = true;
    worker_lane(w, foreground, a);
}

static void on_foreground_timer(struct timer *t)
{
    app_kick_foreground(container_of(t, struct app, foreground.timer));
}

void app_look_again(struct app *a)
{
    if (a->background.listed && a->w->server.caps & API_CAP_FEED)
        a->background.gather_due = mono_now();
    else
        a->background.resync |= a->background.listed;
    app_kick_background(a);
}

bool app_deaf(const struct app *a)
{
    return !a->stream.up && (a->stream.handle || a->stream.timer.heap_index != 0 || a->stream.session_stale);
}

bool app_quiet(const struct app *a)
{
    return !a->background.busy && !a->foreground.busy && !a->background.resync && a->background.gather_due.us == 0;
}

/* ---- life ---- */

static void choose_folders(struct app *a)
{
    struct folders *f = a->login->account->folders;
    uint32_t total = folders_count(f), n = a->w->conf.open_folders < total ? a->w->conf.open_folders : total;
    uint32_t *chosen = mem_realloc_array(NULL, n + 1, sizeof(*chosen));
    struct rng r;
    rng_init(&r, a->w->conf.seed ^ UINT64_C(0xf01de5), STREAM_JITTER + 2 * (uint64_t)a->index);
    folders_choose(&r, total, n, chosen);
    view_init(&a->view, f, chosen, n);
    mem_free(chosen);
}

enum err app_init_bare(struct app *a, struct worker *w, uint32_t index, int64_t timeout_us, struct errinfo *ei)
{
    char address[32];
    *a = (struct app){.w = w, .index = index, .login = &w->roster.logins[index % w->roster.n_logins]};
    /* Spread evenly over the apps, so that each login has its share of them. */
    if (floor((index + 1) * w->conf.slow_readers) > floor(index * w->conf.slow_readers) && index < w->conf.apps)
        a->stream.bytes_per_s = SLOW_BYTES_PER_S;
    /* 127.1.0.1 and up: 250 a block, so that no byte is 0 or 255. */
    snprintf(address, sizeof(address), "127.%u.%u.%u", 1 + index / 62500, 1 + index / 250 % 250, 1 + index % 250);
    struct api_conf conf = api_conf_of(w->ctx);
    conf.source_addr = w->conf.spread_addresses ? address : NULL;
    conf.keep = 1;
    conf.timeout_us = timeout_us ? timeout_us : w->conf.timeout_us;
    conf.stream_idle_us = w->conf.stream_idle_us;
    conf.stream_bytes_per_s = a->stream.bytes_per_s;
    enum err e = api_new(&a->api, &conf, ei);
    if (e != ERR_OK)
        return e;
    rng_init(&a->rng, w->conf.seed, STREAM_JITTER + 2 * (uint64_t)index);
    return ERR_OK;
}

void app_init_shared(struct app *a, struct worker *w, struct login *l)
{
    *a = (struct app){.w = w, .index = l->index, .login = l, .api = l->api};
    rng_init(&a->rng, w->conf.seed, STREAM_JITTER + 2 * (uint64_t)l->index);
}

enum err app_init(struct app *a, struct worker *w, uint32_t index, struct errinfo *ei)
{
    enum err e = app_init_bare(a, w, index, 0, ei);
    if (e != ERR_OK)
        return e;
    stream_init(a);
    a->background.timer.fn = on_background_timer;
    a->background.gather_cause = CAUSE_RELIST;
    a->foreground.timer.fn = on_foreground_timer;
    choose_folders(a);
    return ERR_OK;
}

void app_start(struct app *a, struct mono due)
{
    a->started = true;
    a->arrived = due;
    a->background.heartbeat_due = a->w->server.no_heartbeat ? MONO_NEVER : due;
    a->background.minute_due = mono_add(due, (int64_t)(rng_unit(&a->rng) * (double)worker_poll_us(a->w)));
    app_take_session(a);
    stream_open(a);
    app_kick_background(a);
}

void app_begin(struct app *a, uint32_t actions)
{
    pace_init(&a->foreground.pace, a->w->conf.seed, a->index, actions, a->w->conf.window_us);
    a->foreground.has_next = pace_next(&a->foreground.pace, &a->w->mix, &a->foreground.next);
    app_kick_foreground(a);
}

void app_stop(struct app *a)
{
    loop_timer_stop(&a->stream.timer);
    loop_timer_stop(&a->background.timer);
    loop_timer_stop(&a->foreground.timer);
}

uint64_t app_not_started(const struct app *a)
{
    return a->foreground.has_next + a->foreground.pace.left;
}

void app_close(struct app *a)
{
    stream_close(a, a->w->schedule.settled ? LEDGER_STREAM_END : LEDGER_STREAM_DOWN);
}

void app_done(struct app *a)
{
    if (a->api)
        api_free(&a->api);
    mem_free(a->stream.memory.last_event_id);
    deliveries_done(a);
    view_done(&a->view);
}
