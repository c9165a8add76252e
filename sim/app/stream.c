#include "sim/app/stream.h"
#include "base/log.h"
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
#define RETRY_MOST_US      (60 * US_PER_S) /* what "retry:" may ask for */
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

/* Of what the server's "retry:" asks, which holds for all reconnects. */
static int64_t asked_wait(struct app *a)
{
    int64_t asked = a->stream.memory.retry_us;
    char text[32];
    if (asked > RETRY_MOST_US && !a->w->streams.retry_capped) {
        a->w->streams.retry_capped = true;
        LOGW("run", "the server asks event streams to wait %s before they come back (retry:): 1 min at most is waited",
             str_duration(text, sizeof(text), asked));
    }
    asked = asked < RETRY_MOST_US ? asked : RETRY_MOST_US;
    return asked ? pace_throttle_wait_us(asked, 0, &a->rng) : 0;
}

static int64_t next_wait(struct app *a)
{
    int64_t wait = backoff_next_us(&a->stream.backoff, &a->rng, RECONNECT_FIRST_US, RECONNECT_MOST_US),
            asked = asked_wait(a);
    return wait > asked ? wait : asked;
}

/* ---- what comes ---- */

static void on_open(void *arg)
{
    struct app *a = arg;
    struct api_result r = {.outcome = OUT_OK, .status = 200, .sent = a->stream.sent, .done = mono_now()};
    meter_reach(&a->w->meter, &r);
    meter_record(&a->w->meter, OP_STREAM, &r, (struct mono){0});
    meter_stream_up(&a->w->meter);
    a->w->meter.interval.reconnects += a->stream.was_up;
    bool gap = a->stream.was_up && !a->stream.resumed; /* which the stream does not fill */
    a->stream.up = a->stream.was_up = true;
    a->stream.heard = false;
    a->stream.connected_at = wall_now();
    witness_stream(a, LEDGER_STREAM_UP, NULL);
    if (gap)
        witness_stream(a, LEDGER_RESYNC, NULL);
    sync_stream_open(a, a->stream.resumed, false);
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
    if (ev->connected) {
        sync_stream_open(a, a->stream.resumed, true);
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
        int64_t told = pace_throttle_wait_us(r->retry_after_us, a->stream.backoff.failures++, &a->rng),
                asked = asked_wait(a);
        return told > asked ? told : asked;
    }
    if (strcmp(r->code, API_CODE_NO_MORE) == 0)
        return -1;
    if (r->status == 401) {
        a->stream.session_stale = true;
        a->stream.backoff.failures++;
        app_kick_background(a);
        return -1; /* opened again with the new session */
    }
    int64_t wait = next_wait(a),
            told = r->retry_after_us < 0 ? 0 : pace_throttle_wait_us(r->retry_after_us, 0, &a->rng);
    return wait > told ? wait : told;
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
    MEM_FREE(a->stream.memory.last_event_id);
    a->background.resync = true;
    app_kick_background(a);
}

static void ended_at_once(struct app *a, const struct api_result *r)
{
    struct api_result failed = *r;
    str_format(failed.reason, sizeof(failed.reason), "it ended before anything came on it: %s", r->reason);
    meter_record(&a->w->meter, OP_STREAM, &failed, (struct mono){0});
}

static void on_close(void *arg, const struct api_result *r)
{
    struct app *a = arg;
    bool was_up = a->stream.up, deaf = was_up && !a->stream.heard && !a->stream.bytes_per_s;
    went_down(a, LEDGER_STREAM_DOWN);
    if (worker_draining(a->w))
        return;
    a->w->streams.slow_ended += was_up && a->stream.bytes_per_s;
    meter_reach(&a->w->meter, r);
    a->ran_short |= r->outcome == OUT_LOCAL;
    int64_t wait = refused(a, r);
    if (r->err == ERR_LIMIT)
        give_up_event(a, r);
    else if (deaf)
        ended_at_once(a, r);
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
    a->stream.resumed = a->stream.memory.last_event_id;
    a->stream.cause = a->stream.was_up ? CAUSE_RECONNECT : CAUSE_SETUP;
    call_because(a, a->stream.cause);
    if (api_stream_open(&a->stream.handle, a->api, &a->stream.memory, &ops, a, &ei) != ERR_OK) {
        struct api_result r = {.outcome = ei.code == ERR_LOCAL ? OUT_LOCAL : OUT_TRANSPORT, .err = ei.code};
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
