#include "sim/app/stream.h"
#include "base/mem.h"
#include "sim/app/call.h"
#include "sim/app/delivery.h"
#include "sim/app/storm.h"
#include "sim/app/sync.h"
#include "sim/app/witness.h"

#include <stdio.h>
#include <string.h>

#define RECONNECT_FIRST_US (1 * US_PER_S)
#define RECONNECT_MOST_US  (30 * US_PER_S)
#define STEADY_US          (5 * US_PER_S)
#define DEAF_US            (5 * US_PER_S)

static void open_later(struct app *a, int64_t wait_us)
{
    loop_timer_set(a->w->loop, &a->stream.timer, mono_add(mono_now(), wait_us));
}

static void on_timer(struct timer *t)
{
    stream_open(container_of(t, struct app, stream.timer));
}

void stream_init(struct app *a)
{
    a->stream.timer.fn = on_timer;
}

static int64_t next_wait(struct app *a)
{
    return backoff_next_us(&a->stream.backoff, &a->rng, RECONNECT_FIRST_US, RECONNECT_MOST_US);
}

/* ---- what comes ---- */

/* What was missed while the stream was down: the feed tells by its cursor, ids make the server replay or say resync;
 * without both everything is listed again. Without an id there is a gap that the stream does not fill. */
static void caught_up(struct app *a)
{
    a->w->meter.interval.reconnects++;
    if (a->w->server.caps & API_CAP_FEED)
        a->background.gather_due = mono_now();
    else if (a->stream.last_event_id[0] == '\0')
        a->background.resync = true;
    if (a->stream.last_event_id[0] == '\0')
        witness_stream(a, LEDGER_RESYNC, NULL);
    app_kick_background(a);
}

static void on_open(void *arg, int status)
{
    struct app *a = arg;
    if (status != 200)
        return; /* on_close follows and tells why */
    struct api_result r = {.outcome = OUT_OK, .status = status, .sent = a->stream.sent, .done = mono_now()};
    meter_reach(&a->w->meter, &r);
    meter_record(&a->w->meter, OP_STREAM, &r, (struct mono){0});
    meter_stream_up(&a->w->meter);
    bool again = a->stream.was_up;
    a->stream.up = a->stream.was_up = true;
    a->stream.heard = false;
    a->stream.connected_at = wall_now();
    witness_stream(a, LEDGER_STREAM_UP, NULL);
    if (again)
        caught_up(a);
    if (a->stream.in_storm)
        storm_back(a->w);
    a->stream.in_storm = false;
}

static void count(struct app *a, const struct api_event *ev)
{
    struct stream_tally *t = &a->w->streams;
    bool replayed = a->stream.replaying && ev->at.us && ev->at.us < a->stream.connected_at.us;
    t->resyncs += ev->resync;
    t->replayed += replayed && !ev->resync;
    a->stream.replaying = replayed; /* what a server repeats comes first */
}

static void on_event(void *arg, const struct api_event *ev)
{
    struct app *a = arg;
    a->stream.heard = true;
    if (ev->cursor[0] && strlen(ev->cursor) < sizeof(a->stream.last_event_id))
        (void)str_fit(a->stream.last_event_id, sizeof(a->stream.last_event_id), ev->cursor);
    if (ev->connected) {
        if (ev->at.us) /* by the server's clock, as the times of events are */
            a->stream.connected_at = ev->at;
        return;
    }
    count(a, ev);
    witness_stream(a, ev->resync ? LEDGER_RESYNC : LEDGER_EVENT, ev);
    if (!ev->resync)
        delivery_event(a, ev);
    sync_event(a, ev);
}

/* ---- the end ---- */

/* Counts the failure, or the wait, and says when to try again; -1: never. */
static int64_t refused(struct app *a, const struct api_result *r)
{
    struct meter *m = &a->w->meter;
    if (strcmp(r->code, API_CODE_ABSENT) == 0) {
        a->w->server.caps &= ~(unsigned)API_CAP_EVENTS;
        return -1;
    }
    if (r->outcome == OUT_THROTTLED) {
        m->streams_refused++;
        m->interval.throttled++;
        a->w->streams.refused_in_storm += a->stream.in_storm;
        return pace_throttle_wait_us(r->retry_after_us, a->stream.backoff.failures++, &a->rng);
    }
    if (r->status == 401) {
        a->stream.session_stale = true;
        a->stream.backoff.failures++;
        app_kick_background(a);
        return -1; /* opened again with the new session */
    }
    int64_t wait = next_wait(a),
            asked = r->retry_after_us < 0 ? 0 : pace_throttle_wait_us(r->retry_after_us, 0, &a->rng);
    return wait > asked ? wait : asked;
}

static void went_down(struct app *a, enum ledger_stream how)
{
    if (a->stream.up) {
        meter_stream_down(&a->w->meter);
        witness_stream(a, how, NULL);
        if (mono_diff(mono_now(), a->stream.sent) >= STEADY_US)
            backoff_reset(&a->stream.backoff);
    }
    a->stream.up = false;
}

/* The event that was too large is not asked for again: it would be as large. Everything is listed instead. */
static void give_up_event(struct app *a, const struct api_result *r)
{
    meter_record(&a->w->meter, OP_STREAM, r, (struct mono){0});
    a->stream.last_event_id[0] = '\0';
    a->background.resync = true;
    app_kick_background(a);
}

static void on_close(void *arg, const struct api_result *r)
{
    struct app *a = arg;
    bool was_up = a->stream.up;
    a->stream.handle = NULL;
    went_down(a, LEDGER_STREAM_DOWN);
    if (worker_draining(a->w))
        return;
    a->w->streams.slow_ended += was_up && a->stream.bytes_per_s;
    meter_reach(&a->w->meter, r);
    int64_t wait = refused(a, r);
    if (r->err == ERR_LIMIT)
        give_up_event(a, r);
    else if (!was_up && r->outcome != OUT_THROTTLED && r->status != 401 && strcmp(r->code, API_CODE_ABSENT) != 0)
        meter_record(&a->w->meter, OP_STREAM, r, (struct mono){0});
    if (wait >= 0)
        open_later(a, wait);
}

/* ---- its life ---- */

void stream_open(struct app *a)
{
    static const struct api_stream_ops ops = {on_open, on_event, on_close};
    struct errinfo ei;
    if (worker_draining(a->w) || a->stream.handle || !(a->w->server.caps & API_CAP_EVENTS))
        return;
    a->stream.sent = mono_now();
    a->stream.replaying = a->stream.was_up;
    meter_requests(&a->w->meter, a->stream.was_up ? CAUSE_RECONNECT : CAUSE_SETUP, 1);
    if (api_stream_open(&a->stream.handle, a->api, a->stream.last_event_id, &ops, a, &ei) != ERR_OK) {
        struct api_result r = {.outcome = OUT_TRANSPORT};
        snprintf(r.reason, sizeof(r.reason), "%s", err_message(&ei));
        meter_record(&a->w->meter, OP_STREAM, &r, (struct mono){0});
        open_later(a, next_wait(a));
    }
}

void stream_renewed(struct app *a, bool renewed)
{
    if (renewed && a->stream.backoff.failures == 1)
        stream_open(a);
    else /* refused again with a fresh session */
        open_later(a, next_wait(a));
}

void stream_close(struct app *a, enum ledger_stream how)
{
    if (a->stream.handle)
        api_stream_close(&a->stream.handle);
    went_down(a, how);
}

bool stream_break(struct app *a)
{
    if (!a->stream.handle)
        return false;
    stream_close(a, LEDGER_STREAM_DOWN);
    a->stream.in_storm = true;
    open_later(a, next_wait(a));
    return true;
}

bool stream_is_silent(const struct app *a, struct mono now)
{
    return a->stream.handle && !a->stream.heard && !a->stream.bytes_per_s && mono_diff(now, a->stream.sent) > DEAF_US;
}
