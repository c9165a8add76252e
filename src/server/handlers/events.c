/* GET /api/files/events: a stream joins the hub first and reads the database after that, so that nothing falls in
 * between: what commits meanwhile is in the rows read, or held, or both, and `seen` sorts that out. */
#include "base/log.h"
#include "base/mem.h"
#include "server/events/hub.h"
#include "server/http/route.h"
#include "store/pg.h"
#include <stdio.h>
#include <string.h>

static void on_close(void *arg)
{
    hub_leave(arg);
}

static const struct push_ops ops = {on_close};

static MAY_YIELD bool within_limit(struct request *r)
{
    int64_t limit = r->server->conf->stream_limit;
    if (limit <= 0 || hub_user_streams(r->server->hub, r->login.user_id) < (size_t)limit)
        return true;
    reply_text(r, 429, "application/json; charset=utf-8",
               SV("{\"error\":\"Too many active connections. Please close some tabs and try again.\"}"));
    return false;
}

/* The account's last change number; -1 when it is not to be had. */
static MAY_YIELD int64_t last_seq(struct request *r)
{
    const char *params[] = {r->login.account_id};
    struct pg_result *res = NULL;
    struct errinfo ei;
    int64_t seq = -1;
    if (pg_run(r->server->pg, "SELECT change_seq FROM users WHERE id = $1", 1, params, &res, &ei) != ERR_OK)
        LOGW("events", "a stream starts without a cursor: %s", err_message(&ei));
    else if (pg_rows(res) == 1)
        seq = pg_i64(res, 0, 0);
    pg_result_free(&res);
    return seq;
}

/* Appends the frames after `from` up to the present. False when they are not all to be had. */
static MAY_YIELD bool replay(struct request *r, struct stream *st, int64_t from, int64_t last, struct buf *out)
{
    struct pg_result *res = NULL;
    struct errinfo ei;

    if (from > last || last - from > REPLAY_MAX ||
        order_read(r->server, r->login.account_id, from, &res, &ei) != ERR_OK)
        return false;
    bool complete = pg_rows(res) >= last - from && pg_rows(res) <= REPLAY_MAX;
    st->seen = from;
    for (int i = 0; complete && i < pg_rows(res); i++) {
        int64_t seq = pg_i64(res, i, 0);
        complete = seq == st->seen + 1 && order_frame(r->server, out, res, i) == ERR_OK;
        st->seen = seq;
    }
    pg_result_free(&res);
    return complete;
}

static void frame_connected(struct server *s, struct buf *out, int64_t seq)
{
    char at[32], cursor[CURSOR_MAX];
    struct jsonw w;
    enum err err = ERR_OK;

    cursor_format(s, cursor, seq);
    if (seq >= 0)
        err = buf_appendf(out, "id: %s\n", cursor);
    if (!err)
        err = buf_append_str(out, "data: ");
    jsonw_init(&w, out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "type", "connected");
    jsonw_str(&w, "message", "Connected to file events stream");
    jsonw_str(&w, "timestamp", wall_format(at, sizeof at, wall_now()));
    if (seq >= 0)
        jsonw_str(&w, "cursor", cursor);
    jsonw_end_object(&w);
    if (err || w.err || buf_append_str(out, "\n\n") != ERR_OK)
        LOGE("events", "a first frame did not fit");
}

/* The first frames: connected, then what was missed or a resync. A fresh stream gets every event that was published
 * since it joined, even one that its first cursor covers: its client may have listed everything as soon as it saw the
 * status. */
static MAY_YIELD void first_frames(struct request *r, struct stream *st, struct buf *out)
{
    struct sv last_id = req_header(r, "Last-Event-ID");
    /* No more than a stream may have waiting anyway: a reader that is far behind is told to list instead. */
    struct buf missed = BUF_INIT((size_t)r->server->conf->stream_backlog_bytes);
    int64_t from = -1, last = last_seq(r);
    order_base(r->server, st->account, last);
    bool wanted = last_id.p && last_id.n > 0, known = cursor_parse(r->server, last_id, &from);
    char cursor[CURSOR_MAX];

    frame_connected(r->server, out, wanted && known && last >= from ? from : last);
    if (wanted && known && last >= 0 && replay(r, st, from, last, &missed)) {
        if (buf_append(out, buf_cstr(&missed), missed.len) != ERR_OK)
            st->lost = true;
    } else if (wanted || last < 0) {
        buf_reset(&missed);
        st->seen = last >= 0 ? last : 0;
        frame_resync(r->server, &missed, last >= 0 ? cursor_format(r->server, cursor, last) : NULL);
        if (buf_append(out, buf_cstr(&missed), missed.len) != ERR_OK)
            st->lost = true;
    }
    buf_done(&missed);
}

static MAY_YIELD void get_events(struct request *r)
{
    if (!within_limit(r))
        return;
    struct stream *st = hub_join(r->server->hub, &r->login);
    /* At once, whatever the database does: a proxy must see bytes, and so must the client. */
    st->push = reply_stream(r, SV(": stream open\n\n"), &ops, st);
    if (!st->push) {
        hub_leave(st);
        return;
    }
    struct buf out = BUF_INIT(1024 + 2 * (size_t)r->server->conf->stream_backlog_bytes);
    first_frames(r, st, &out);
    enum err err = reply_stream_write(r, (struct sv){buf_cstr(&out), out.len});
    if (!err && st->lost) {
        frame_resync(r->server, &out, NULL);
        err = reply_stream_write(r, (struct sv){buf_cstr(&out), out.len});
    }
    buf_done(&out);
    if (!err)
        stream_go_live(st);
}

/* GET /api/files/changes. */
struct feed {
    int64_t last, from, upto; /* the account's last number; where the caller is; how far this answer goes */
    bool resync;
};

static MAY_YIELD void reply_feed(struct request *r, const struct feed *f, const struct pg_result *rows)
{
    struct buf out = BUF_INIT(4 * 1024 * 1024);
    struct jsonw w;
    char cursor[CURSOR_MAX];

    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "cursor", cursor_format(r->server, cursor, f->upto));
    jsonw_bool(&w, "resync", f->resync);
    jsonw_array(&w, "folders");
    int gap = rows && fault_hit(r->server, FAULT_FEED_GAP);
    for (int i = gap; rows && i < pg_rows(rows); i++) {
        const char *id = pg_str(rows, i, 3);
        if (!pg_is_null(rows, i, 3))
            jsonw_str(&w, NULL, *id ? id : NULL); /* null is the account's top level */
    }
    jsonw_end_array(&w);
    jsonw_bool(&w, "hasMore", !f->resync && f->upto < f->last);
    jsonw_end_object(&w);
    reply_json(r, 200, &out);
    buf_done(&out);
}

static MAY_YIELD void get_changes(struct request *r)
{
    /* One statement, one snapshot: the account's number and the rows fit together. */
    static const char sql[] =
        "WITH c AS (SELECT seq, folders FROM changes WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT 1000), "
        "f AS (SELECT folder, min(seq) AS first FROM c, unnest(folders) AS folder GROUP BY folder) "
        "SELECT u.change_seq, (SELECT min(seq) FROM c), (SELECT max(seq) FROM c), f.folder "
        "FROM users u LEFT JOIN f ON true WHERE u.id = $1 ORDER BY f.first, f.folder";
    const char *text = req_query(r, "cursor");
    struct feed f = {0};
    bool given = text && *text, known = given && cursor_parse(r->server, sv_of(text), &f.from);
    const char *params[] = {r->login.account_id,
                            known ? arena_printf(r->mem, "%lld", (long long)f.from) : "9223372036854775807"};
    struct pg_result *res = NULL;
    struct errinfo ei = {.code = ERR_NOTFOUND};

    if (pg_run(r->server->pg, sql, 2, params, &res, &ei) != ERR_OK || pg_rows(res) == 0) {
        reply_error(r, &ei);
        pg_result_free(&res);
        return;
    }
    f.last = f.upto = pg_i64(res, 0, 0);
    if (known && f.from < f.last) {
        /* Without gaps from the caller's number on, or what was pruned is told by a resync. */
        f.resync = pg_is_null(res, 0, 1) || pg_i64(res, 0, 1) != f.from + 1;
        if (!f.resync)
            f.upto = pg_i64(res, 0, 2);
    } else if (given) {
        f.resync = !known || f.from > f.last;
    }
    reply_feed(r, &f, f.resync ? NULL : res);
    pg_result_free(&res);
}

const struct route routes_events[] = {
    {"GET", "/api/files/events", 0, 0, get_events},
    {"GET", "/api/files/changes", 0, 0, get_changes},
    {0},
};
