/* One thing at a time, the most urgent first; at most one pass over the folders is ever running, and what comes
 * meanwhile is gathered for the next (shared case E14). A heartbeat that falls due in a long pass is sent between two
 * of its listings. */
#include "sim/app/sync.h"

#include "sim/app/call.h"

#include <string.h>

#define GATHER_US       (2 * US_PER_S) /* from the first event to the question */
#define GATHER_SPREAD   500000         /* and up to so much more */
#define RETRY_FIRST_US  (1 * US_PER_S)
#define RETRY_MOST_US   (30 * US_PER_S)
#define LISTING_BLOCK   (8u << 10)
#define STALE_TRIES_MAX 3

static MAY_YIELD void heartbeat(struct app *a)
{
    struct call c = CALL(a, CAUSE_HEARTBEAT);
    struct api_result r;
    struct mono was_due = a->background.heartbeat_due;
    a->background.heartbeat_due = mono_add(mono_now(), DRIVE_HEARTBEAT_US);
    do
        api_heartbeat(a->api, &r);
    while (call_again(&c, &r));
    if (strcmp(r.code, API_CODE_ABSENT) == 0) {
        a->w->server.no_heartbeat = true;
        a->background.heartbeat_due = MONO_NEVER;
        return;
    }
    call_record(&c, OP_HEARTBEAT, &r, was_due);
}

static MAY_YIELD void heartbeat_if_due(struct app *a)
{
    if (!worker_draining(a->w) && mono_passed(a->background.heartbeat_due))
        heartbeat(a);
}

/* Failures hold the background back for a while, so that a server in trouble is not asked in a tight loop. */
static void failed(struct app *a)
{
    int64_t wait = backoff_next_us(&a->background.backoff, &a->rng, RETRY_FIRST_US, RETRY_MOST_US);
    a->background.retry_due = mono_add(mono_now(), wait);
}

static void succeeded(struct app *a)
{
    backoff_reset(&a->background.backoff);
    a->background.retry_due.us = 0;
}

/* What became of a listing. STALE: a write of the app's own overtook it. */
enum listing { LISTING_FAILED, LISTING_STALE, LISTING_SHOWN };

static MAY_YIELD enum listing list_once(struct app *a, uint32_t at, enum drive_op op, enum cause cause)
{
    struct call c = CALL(a, cause);
    struct api_result r;
    struct drive_listing l = {0};
    struct view_folder *o = &a->view.open[at];
    struct arena *mem = arena_new(LISTING_BLOCK);
    uint32_t changes = o->changes;
    struct mono asked;
    enum listing became = LISTING_FAILED;
    do {
        asked = mono_now();
        o->dirty = false; /* what changes from here on is news */
        changes = o->changes;
        arena_reset(mem);
        api_list(a->api, view_id(&a->view, at), mem, &l, &r);
    } while (call_again(&c, &r));
    if (r.outcome == OUT_OK) {
        became = o->changes == changes ? LISTING_SHOWN : LISTING_STALE;
        if (became == LISTING_SHOWN)
            view_list(&a->view, at, &l);
    } else if (r.status == 404) {
        r.outcome = OUT_CONFLICT; /* somebody trashed it meanwhile */
        view_gone(&a->view, at);
        became = LISTING_SHOWN;
    }
    o->dirty |= became != LISTING_SHOWN && !o->gone;
    if (became == LISTING_SHOWN)
        delivery_shown(a, at, asked);
    call_record(&c, op, &r, (struct mono){0});
    arena_free(&mem);
    return became;
}

bool sync_list(struct app *a, uint32_t at, enum drive_op op, enum cause cause)
{
    enum listing became = LISTING_STALE;
    for (int i = 0; i < STALE_TRIES_MAX && became == LISTING_STALE && a->w->schedule.phase < PHASE_CUT; i++)
        became = list_once(a, at, op, cause);
    return became == LISTING_SHOWN;
}

/* Lists those that are dirty, or all. True when none failed. */
static MAY_YIELD bool list_folders(struct app *a, bool all, enum cause cause)
{
    bool ok = true;
    for (uint32_t at = 0; at < a->view.n && !worker_draining(a->w); at++) {
        const struct view_folder *o = &a->view.open[at];
        if (o->gone || !(all || o->dirty))
            continue;
        ok &= sync_list(a, at, OP_LIST, cause);
        heartbeat_if_due(a);
    }
    return ok;
}

/* ---- the change feed ---- */

static void mark(struct app *a, const struct api_changes *ch)
{
    for (size_t i = 0; i < ch->n; i++) {
        uint32_t at = ch->folders[i] ? view_find(&a->view, ch->folders[i]) : VIEW_NONE;
        if (at != VIEW_NONE)
            a->view.open[at].dirty = true;
    }
}

/* Asks from the cursor on to the end. False when it could not. */
static MAY_YIELD bool ask_changes(struct app *a, enum cause cause)
{
    struct arena *mem = arena_new(LISTING_BLOCK);
    struct api_changes ch = {0};
    struct api_result r = {0};
    struct mono asked = mono_now();
    do {
        struct call c = CALL(a, cause);
        do {
            arena_reset(mem);
            api_changes(a->api, a->background.cursor, mem, &ch, &r);
        } while (call_again(&c, &r));
        if (strcmp(r.code, API_CODE_ABSENT) == 0) {
            r.outcome = OUT_OK; /* known from now on: worker.server.caps */
            ch.has_more = false;
            break;
        }
        call_record(&c, OP_CHANGES, &r, (struct mono){0});
        if (r.outcome != OUT_OK)
            break;
        mark(a, &ch);
        a->background.resync |= ch.resync;
        memcpy(a->background.cursor, ch.cursor, sizeof(a->background.cursor));
    } while (ch.has_more && !worker_draining(a->w));
    if (r.outcome == OUT_OK && a->w->server.caps & API_CAP_FEED && !a->background.resync && !ch.has_more)
        delivery_shown(a, VIEW_NONE, asked);
    arena_free(&mem);
    return r.outcome == OUT_OK;
}

static bool has_feed(const struct app *a)
{
    return a->w->server.caps & API_CAP_FEED;
}

/* The question after events, or the minute's. */
static MAY_YIELD void check(struct app *a, bool minute)
{
    enum cause cause = minute ? CAUSE_MINUTE_CHECK : CAUSE_RELIST, asks = minute ? cause : a->background.gather_cause;
    a->background.gather_due.us = 0; /* events from here on ask again */
    a->background.gather_cause = CAUSE_RELIST;
    if (minute)
        a->background.minute_due = mono_add(mono_now(), worker_poll_us(a->w));
    bool had_feed = has_feed(a), ok = !had_feed || ask_changes(a, asks);
    if (ok && !a->background.resync)
        ok = list_folders(a, (minute || had_feed) && !has_feed(a), cause); /* had_feed: it was lost just now */
    if (ok) {
        succeeded(a);
        return;
    }
    failed(a);
    a->background.gather_due = a->background.retry_due;
}

static MAY_YIELD void resync(struct app *a)
{
    a->background.resync = false;
    a->background.gather_due.us = 0;
    if (list_folders(a, true, CAUSE_RELIST)) {
        succeeded(a);
        return;
    }
    failed(a);
    a->background.gather_due = a->background.retry_due; /* those that failed are dirty: listed again then */
}

/* ---- the first full pass ---- */

static MAY_YIELD bool first_listings(struct app *a)
{
    bool ok = true;
    for (uint32_t at = 0; at < a->view.n && !worker_draining(a->w); at++) {
        struct view_folder *o = &a->view.open[at];
        if (o->snap || o->gone)
            continue;
        bool listed = sync_list(a, at, OP_FIRST_LIST, CAUSE_FIRST_PASS);
        ok &= listed;
        if (listed)
            a->w->fleet.moved = mono_now();
        if (listed && a->view.files > 0)
            app_kick_foreground(a); /* in a window that could not wait for the pass */
        heartbeat_if_due(a);
    }
    return ok;
}

/* The cursor first: what changes while the pass runs is then asked for after it. */
static MAY_YIELD void first_pass(struct app *a)
{
    if (a->background.pass_from.us == 0)
        a->background.pass_from = mono_now();
    bool ok = !has_feed(a) || a->background.cursor[0];
    if (!ok) {
        ok = ask_changes(a, CAUSE_SETUP);
        a->background.resync = false; /* nothing is listed yet; from here on it counts */
    }
    if (ok)
        ok = first_listings(a);
    if (worker_draining(a->w))
        return;
    if (!ok) {
        failed(a);
        return;
    }
    succeeded(a);
    struct api_result r = {.outcome = OUT_OK, .sent = a->background.pass_from, .done = mono_now()};
    meter_record(&a->w->meter, OP_FULL_PASS, &r, a->arrived);
    a->background.listed = true;
    a->w->fleet.moved = r.done;
    app_kick_foreground(a);
    if (++a->w->fleet.listed == a->w->fleet.n)
        done_set(&a->w->schedule.wake);
}

/* ---- what is due ---- */

void sync_soon(struct app *a, uint32_t at)
{
    a->view.open[at].dirty = true;
    a->background.gather_due = mono_now();
    app_kick_background(a);
}

/* Without a feed the event is all there is. One that names an item but not where it was: where the app has it. One that
 * names nothing at all leaves no folder certain. */
static void mark_named(struct app *a, const struct api_event *ev)
{
    const char *named[] = {ev->parent_id, ev->old_parent_id};
    for (int i = 0; i < 2; i++) {
        uint32_t at = named[i] ? view_find(&a->view, named[i]) : VIEW_NONE;
        if (at != VIEW_NONE)
            a->view.open[at].dirty = true;
    }
    if (ev->names_folders)
        return;
    for (uint32_t at = 0; at < a->view.n; at++) {
        struct view_folder *o = &a->view.open[at];
        o->dirty = o->dirty || (o->snap && (!ev->file_id || view_has(&a->view, at, ev->file_id, NULL)));
    }
}

void sync_event(struct app *a, const struct api_event *ev)
{
    if (ev->resync)
        a->background.resync = true;
    else if (!has_feed(a))
        mark_named(a, ev);
    if (a->background.gather_due.us == 0 && !ev->resync)
        a->background.gather_due = mono_add(mono_now(), GATHER_US + (int64_t)(rng_unit(&a->rng) * GATHER_SPREAD));
    app_kick_background(a);
}

/* Without a feed all that was listed before is asked for again, unless the stream goes on where it ended. What is not
 * listed yet is no longer dirty once it is. */
void sync_stream_open(struct app *a, bool resumed, bool certain)
{
    struct mono due = certain ? mono_now() : mono_add(mono_now(), GATHER_US);
    if (!has_feed(a) && resumed)
        return;
    for (uint32_t at = 0; at < a->view.n && !has_feed(a); at++)
        a->view.open[at].dirty |= !a->view.open[at].gone;
    if (a->background.gather_due.us == 0 || mono_before(due, a->background.gather_due))
        a->background.gather_due = due;
    a->background.gather_cause = a->stream.cause;
    app_kick_background(a);
}

struct mono sync_next_due(const struct app *a)
{
    const struct app_background *b = &a->background;
    struct mono held = b->retry_due, at = MONO_NEVER;
    if (!b->listed || b->resync)
        at = held; /* at once when nothing failed */
    if (b->listed && b->gather_due.us)
        at = mono_earlier(at, b->gather_due);
    if (b->listed)
        at = mono_earlier(at, b->minute_due);
    if (mono_before(at, held))
        at = held;
    return mono_earlier(at, b->heartbeat_due);
}

bool sync_step(struct app *a)
{
    const struct app_background *b = &a->background;
    if (mono_passed(b->heartbeat_due))
        heartbeat(a);
    else if (!mono_passed(b->retry_due))
        return false;
    else if (!b->listed)
        first_pass(a);
    else if (b->resync)
        resync(a);
    else if (b->gather_due.us && mono_passed(b->gather_due))
        check(a, false);
    else if (mono_passed(b->minute_due))
        check(a, true);
    else
        return false;
    return true;
}
