/* The app's life cycle, its event stream and its two lanes. The stream's callbacks only note what came; all requests
 * are made by the lanes. */
#include "sim/app.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/call.h"
#include "sim/logins.h"
#include "sim/witness.h"

#include <stdio.h>
#include <string.h>

#define RECONNECT_FIRST_US (1 * US_PER_S)
#define RECONNECT_MOST_US  (30 * US_PER_S)
#define STREAM_JITTER      17 /* random streams: pace.c has the even ones from 16 on */
#define LATE_US            US_PER_S

/* ---- the event stream ---- */

static void open_stream(struct app *a);

static void open_stream_later(struct app *a, int64_t wait_us)
{
    loop_timer_set(a->w->loop, &a->stream_timer, mono_add(mono_now(), wait_us));
}

static void on_stream_timer(struct timer *t)
{
    open_stream(container_of(t, struct app, stream_timer));
}

/* What was missed while the stream was down: the feed tells by its cursor, ids make the server replay or say resync;
 * without both everything is listed again. */
static void caught_up(struct app *a)
{
    a->w->meter.interval.reconnects++;
    if (a->w->caps & API_CAP_FEED)
        a->gather_due = mono_now();
    else if (a->last_event_id[0] == '\0')
        a->resync = true;
    app_kick_background(a);
}

static void on_open(void *arg, int status)
{
    struct app *a = arg;
    if (status != 200)
        return; /* on_close follows and tells why */
    struct api_result r = {.outcome = OUT_OK, .status = status, .sent = a->stream_sent, .done = mono_now()};
    meter_reach(&a->w->meter, &r);
    meter_record(&a->w->meter, OP_STREAM, &r, (struct mono){0});
    meter_stream_up(&a->w->meter);
    backoff_reset(&a->stream_backoff);
    bool again = a->stream_was_up;
    a->stream_up = a->stream_was_up = true;
    a->stream_heard = false;
    witness_stream(a, LEDGER_STREAM_UP, NULL);
    if (again)
        caught_up(a);
}

static void on_event(void *arg, const struct api_event *ev)
{
    struct app *a = arg;
    a->stream_heard = true;
    if (ev->cursor[0] && strlen(ev->cursor) < sizeof(a->last_event_id))
        (void)str_fit(a->last_event_id, sizeof(a->last_event_id), ev->cursor);
    if (ev->connected)
        return;
    witness_stream(a, ev->resync ? LEDGER_RESYNC : LEDGER_EVENT, ev);
    sync_event(a, ev);
}

/* Counts the failure, or the wait, and says when to try again; -1: never. */
static int64_t stream_refused(struct app *a, const struct api_result *r)
{
    struct meter *m = &a->w->meter;
    if (strcmp(r->code, API_CODE_ABSENT) == 0) {
        a->w->caps &= ~(unsigned)API_CAP_EVENTS;
        return -1;
    }
    if (r->outcome == OUT_THROTTLED) {
        m->streams_refused++;
        m->interval.throttled++;
        return pace_throttle_wait_us(r->retry_after_us, a->stream_backoff.failures++, &a->rng);
    }
    if (r->status == 401) {
        a->session_stale = true;
        a->stream_backoff.failures++;
        app_kick_background(a);
        return -1; /* opened again with the new session */
    }
    return backoff_next_us(&a->stream_backoff, &a->rng, RECONNECT_FIRST_US, RECONNECT_MOST_US);
}

static void on_close(void *arg, const struct api_result *r)
{
    struct app *a = arg;
    bool was_up = a->stream_up;
    a->stream = NULL;
    a->stream_up = false;
    if (was_up) {
        meter_stream_down(&a->w->meter);
        witness_stream(a, LEDGER_STREAM_DOWN, NULL);
    }
    if (worker_draining(a->w))
        return;
    meter_reach(&a->w->meter, r);
    int64_t wait = stream_refused(a, r);
    if (!was_up && r->outcome != OUT_THROTTLED && r->status != 401 && strcmp(r->code, API_CODE_ABSENT) != 0)
        meter_record(&a->w->meter, OP_STREAM, r, (struct mono){0});
    if (wait >= 0)
        open_stream_later(a, wait);
}

static void open_stream(struct app *a)
{
    static const struct api_stream_ops ops = {on_open, on_event, on_close};
    struct errinfo ei;
    if (worker_draining(a->w) || a->stream || !(a->w->caps & API_CAP_EVENTS))
        return;
    a->stream_sent = mono_now();
    meter_requests(&a->w->meter, a->stream_was_up ? CAUSE_RECONNECT : CAUSE_SETUP, 1);
    if (api_stream_open(&a->stream, a->api, a->last_event_id, &ops, a, &ei) != ERR_OK) {
        struct api_result r = {.outcome = OUT_TRANSPORT};
        snprintf(r.reason, sizeof(r.reason), "%s", err_message(&ei));
        meter_record(&a->w->meter, OP_STREAM, &r, (struct mono){0});
        open_stream_later(a, backoff_next_us(&a->stream_backoff, &a->rng, RECONNECT_FIRST_US, RECONNECT_MOST_US));
    }
}

/* ---- the lanes ---- */

void app_take_session(struct app *a)
{
    if (a->session == a->login->generation)
        return;
    api_share_session(a->api, a->login->api);
    api_set_caps(a->api, a->w->caps);
    a->session = a->login->generation;
}

/* After a 401 on the stream. */
static MAY_YIELD void renew_for_stream(struct app *a)
{
    a->session_stale = false;
    bool renewed = a->session != a->login->generation;
    if (!renewed) {
        stats_reason_add(&a->w->meter.interval, OP_SIGN_IN, "401 expired: signed in again");
        renewed = login_renew(a->w, a->login, a->session);
    }
    app_take_session(a);
    if (renewed && a->stream_backoff.failures == 1)
        open_stream(a);
    else /* refused again with a fresh session */
        open_stream_later(a, backoff_next_us(&a->stream_backoff, &a->rng, RECONNECT_FIRST_US, RECONNECT_MOST_US));
}

static void arm_background(struct app *a)
{
    if (a->started && !worker_draining(a->w))
        loop_timer_set(a->w->loop, &a->background_timer, sync_next_due(a));
}

static void background(void *arg)
{
    struct app *a = arg;
    do {
        app_take_session(a);
        api_set_caps(a->api, a->w->caps);
        if (a->session_stale)
            renew_for_stream(a);
    } while (!worker_draining(a->w) && sync_step(a));
    a->background_busy = false;
    arm_background(a);
    worker_lane_ended(a->w);
}

void app_kick_background(struct app *a)
{
    if (a->background_busy || !a->started || worker_draining(a->w))
        return;
    if (!a->session_stale && mono_before(mono_now(), sync_next_due(a))) {
        arm_background(a);
        return;
    }
    a->background_busy = true;
    worker_lane(a->w, background, a);
}

static void on_background_timer(struct timer *t)
{
    app_kick_background(container_of(t, struct app, background_timer));
}

static struct mono action_due(const struct app *a)
{
    return mono_add(a->w->window, a->next.at_us);
}

static struct mono latest(struct mono a, struct mono b)
{
    return mono_before(a, b) ? b : a;
}

static void foreground(void *arg)
{
    struct app *a = arg;
    struct worker *w = a->w;
    while (a->has_next && w->phase <= PHASE_MEASURE && !mono_before(mono_now(), action_due(a))) {
        struct planned p = a->next;
        struct mono due = latest(action_due(a), a->waited_until);
        a->has_next = pace_next(&a->pace, &w->mix, &a->next);
        w->meter.actions.late += mono_diff(mono_now(), due) > LATE_US;
        app_take_session(a);
        api_set_caps(a->api, w->caps);
        action_run(a, &p, due);
    }
    a->foreground_busy = false;
    app_kick_foreground(a);
    worker_lane_ended(w);
}

void app_kick_foreground(struct app *a)
{
    struct worker *w = a->w;
    if (a->foreground_busy || !a->has_next || w->phase != PHASE_MEASURE)
        return;
    if (!a->listed && a->view.files == 0)
        return; /* nothing to act on yet: the first listing with files comes back here */
    if (mono_before(mono_now(), action_due(a))) {
        loop_timer_set(w->loop, &a->foreground_timer, action_due(a));
        return;
    }
    a->foreground_busy = true;
    worker_lane(w, foreground, a);
}

static void on_foreground_timer(struct timer *t)
{
    app_kick_foreground(container_of(t, struct app, foreground_timer));
}

void app_look_again(struct app *a)
{
    a->resync |= a->listed;
    app_kick_background(a);
}

bool app_deaf(const struct app *a)
{
    return !a->stream_up && (a->stream || a->stream_timer.heap_index != 0 || a->session_stale);
}

bool app_quiet(const struct app *a)
{
    return !a->background_busy && !a->foreground_busy && !a->resync && a->gather_due.us == 0;
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
    *a = (struct app){.w = w, .index = index, .login = &w->logins[index % w->n_logins]};
    /* 127.1.0.1 and up: 250 a block, so that no byte is 0 or 255. */
    snprintf(address, sizeof(address), "127.%u.%u.%u", 1 + index / 62500, 1 + index / 250 % 250, 1 + index % 250);
    struct api_conf conf = api_conf_of(w->ctx);
    conf.source_addr = w->conf.spread_addresses ? address : NULL;
    conf.timeout_us = timeout_us ? timeout_us : w->conf.timeout_us;
    conf.stream_idle_us = w->conf.stream_idle_us;
    enum err e = api_new(&a->api, &conf, ei);
    if (e != ERR_OK)
        return e;
    rng_init(&a->rng, w->conf.seed, STREAM_JITTER + 2 * (uint64_t)index);
    return ERR_OK;
}

enum err app_init(struct app *a, struct worker *w, uint32_t index, struct errinfo *ei)
{
    enum err e = app_init_bare(a, w, index, 0, ei);
    if (e != ERR_OK)
        return e;
    a->stream_timer.fn = on_stream_timer;
    a->background_timer.fn = on_background_timer;
    a->foreground_timer.fn = on_foreground_timer;
    choose_folders(a);
    return ERR_OK;
}

void app_start(struct app *a, struct mono due)
{
    a->started = true;
    a->arrived = due;
    a->heartbeat_due = a->w->no_heartbeat ? MONO_NEVER : due;
    a->minute_due = mono_add(due, (int64_t)(rng_unit(&a->rng) * (double)worker_poll_us(a->w)));
    app_take_session(a);
    open_stream(a);
    app_kick_background(a);
}

void app_begin(struct app *a, uint32_t actions)
{
    pace_init(&a->pace, a->w->conf.seed, a->index, actions, a->w->conf.window_us);
    a->has_next = pace_next(&a->pace, &a->w->mix, &a->next);
    app_kick_foreground(a);
}

void app_stop(struct app *a)
{
    loop_timer_stop(&a->stream_timer);
    loop_timer_stop(&a->background_timer);
    loop_timer_stop(&a->foreground_timer);
}

uint64_t app_not_started(const struct app *a)
{
    return a->has_next + a->pace.left;
}

void app_close(struct app *a)
{
    if (a->stream)
        api_stream_close(&a->stream);
    if (a->stream_up) {
        meter_stream_down(&a->w->meter);
        witness_stream(a, LEDGER_STREAM_DOWN, NULL);
    }
    a->stream_up = false;
}

void app_done(struct app *a)
{
    if (a->api)
        api_free(&a->api);
    view_done(&a->view);
}
