/* Changes of an account reach its streams in the order of their numbers, which is the order of their commits. With one
 * process that wrote them, messages come in that order anyway and this is one comparison. Several processes publish
 * side by side: a message that runs ahead of others only tells how far the account is, and what lies between is read
 * from the changes themselves; so is what was published while Redis was away. A number is given to a stream once. */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/coro.h"
#include "server/events/hub.h"
#include "store/pg.h"
#include <stdio.h>
#include <string.h>

#define FRAME_MAX     (1024 * 1024)
#define EVENT_LATE_US (8 * US_PER_S)

struct catch_up {
    struct server *server;
    struct hub *hub;
    struct circle *circle; /* NULL: its last stream has left */
};

/* FAULT_EVENT_LATE: what is given to the streams 8 s later. */
struct late_event {
    struct server *server;
    int64_t seq;
    char account_id[DRIVE_ID_MAX + 1];
    size_t n;
    char frame[];
};

static void deliver_late(void *arg)
{
    struct late_event *late = arg;
    coro_sleep_until(late->server->loop, mono_add(mono_now(), EVENT_LATE_US));
    struct hub *h = late->server->hub;
    const struct circle *c = h ? map_get(h->accounts, sv_of(late->account_id)) : NULL;
    if (c)
        circle_deliver(c, late->seq, (struct sv){late->frame, late->n});
    mem_free(late);
}

static void hold_back(struct server *s, const struct circle *c, int64_t seq, struct sv frame)
{
    struct late_event *late = mem_zalloc(sizeof *late + frame.n);
    late->server = s;
    late->seq = seq;
    late->n = frame.n;
    memcpy(late->account_id, c->id, sizeof c->id);
    memcpy(late->frame, frame.p, frame.n);
    coro_spawn(s->loop, deliver_late, late);
}

static void give(struct server *s, const struct circle *c, int64_t seq, struct sv frame)
{
    if (fault_hit(s, FAULT_EVENT_DROPPED))
        return;
    if (fault_hit(s, FAULT_EVENT_LATE))
        hold_back(s, c, seq, frame);
    else
        circle_deliver(c, seq, frame);
}

/* ---- what messages have run ahead of ---- */

enum err order_read(struct server *s, const char *account_id, int64_t after, struct pg_result **out, struct errinfo *ei)
{
    static const char sql[] = "SELECT seq, type, drive_iso(at), data::text FROM changes "
                              "WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT 1001";
    char from[24];
    const char *params[] = {account_id, from};
    snprintf(from, sizeof from, "%lld", (long long)after);
    return pg_run(s->pg, sql, 2, params, out, ei);
}

enum err order_frame(struct server *s, struct buf *out, const struct pg_result *rows, int row)
{
    return frame_event(s, out, pg_i64(rows, row, 0), pg_str(rows, row, 1), pg_str(rows, row, 2),
                       sv_of(pg_str(rows, row, 3)));
}

/* What was read after number `from`. False when the next change is not among it. */
static bool give_rows(struct server *s, struct circle *c, int64_t from, const struct pg_result *rows)
{
    struct buf frame = BUF_INIT(FRAME_MAX);
    bool gap = false;
    for (int i = 0; i < pg_rows(rows) && !gap; i++) {
        int64_t seq = pg_i64(rows, i, 0);
        if (seq <= c->sent)
            continue;
        buf_reset(&frame);
        gap = seq != c->sent + 1 || order_frame(s, &frame, rows, i) != ERR_OK;
        if (gap)
            break;
        c->sent = seq;
        give(s, c, seq, (struct sv){buf_cstr(&frame), frame.len});
    }
    buf_done(&frame);
    return !gap && c->sent > from;
}

/* What can't be told one by one is told by a resync. */
static void skip(struct server *s, struct circle *c)
{
    c->sent = c->told;
    circle_resync(s, c);
}

static void catch_up(void *arg)
{
    struct catch_up *u = arg;
    struct errinfo ei;
    while (u->circle && u->circle->sent < u->circle->told) {
        struct pg_result *rows = NULL;
        char id[DRIVE_ID_MAX + 1];
        memcpy(id, u->circle->id, sizeof id);
        int64_t from = u->circle->sent;
        bool near = u->circle->told - from <= REPLAY_MAX;
        enum err err = near ? order_read(u->server, id, from, &rows, &ei) : ERR_LIMIT;
        if (err && err != ERR_LIMIT)
            LOGW("events", "changes that others published can't be read: %s", err_message(&ei));
        /* While they were being read their own messages may have come. */
        if (u->circle && u->circle->sent < u->circle->told && (err || !give_rows(u->server, u->circle, from, rows)))
            skip(u->server, u->circle);
        pg_result_free(&rows);
    }
    if (u->circle)
        u->circle->catch_up = NULL;
    if (--u->hub->catching_up == 0)
        done_set(&u->hub->caught_up);
    mem_free(u);
}

static void close_gap(struct server *s, struct circle *c)
{
    if (c->catch_up || c->sent < 0 || c->sent >= c->told)
        return;
    struct catch_up *u = mem_zalloc(sizeof *u);
    u->server = s;
    u->circle = c;
    u->hub = s->hub;
    u->hub->catching_up++;
    c->catch_up = u;
    s->metrics.event_gaps++;
    coro_spawn(s->loop, catch_up, u);
}

/* ---- messages ---- */

void order_message(struct server *s, struct circle *c, int64_t seq, struct sv frame)
{
    if (seq > c->told)
        c->told = seq;
    if (c->sent < 0 && c->blind)
        c->sent = c->base = seq - 1;
    if (c->sent < 0) {
        give(s, c, seq, frame); /* the streams hold it until order_base */
    } else if (seq == c->sent + 1) {
        c->sent = seq;
        give(s, c, seq, frame);
    } else if (seq <= c->base) {
        /* Committed before the account's first stream had read where to begin, and published after that: the stream
         * was there already, and sorts out by itself what it has. */
        give(s, c, seq, frame);
    }
    close_gap(s, c);
}

void order_base(struct server *s, struct circle *c, int64_t last)
{
    if (c->sent >= 0)
        return;
    c->blind = last < 0; /* then the stream is told to list everything */
    if (c->blind)
        return;
    c->sent = c->base = last;
    for (struct stream *st = c->first; st; st = st->next)
        stream_drop_held(st, last); /* they come again, in order */
    close_gap(s, c);
}

void order_done(struct circle *c)
{
    if (c->catch_up)
        c->catch_up->circle = NULL;
}
