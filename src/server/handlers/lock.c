/* Edit locks: leases of a session on a file. They take no change number and wait for no other write of the account. */
#include "server/http/fields.h"
#include "server/http/route.h"
#include "server/meta/meta.h"
#include "server/server.h"
#include <inttypes.h>

#define TTL_DEFAULT_S 120
#define TTL_MAX_S     600

static MAY_YIELD void reply_lock(struct request *r, const struct pg_result *res)
{
    struct buf out = BUF_INIT(4096);
    struct jsonw w;
    char text[32];
    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "lockId", pg_str(res, 0, 2));
    jsonw_str(&w, "fileId", r->params[0]);
    jsonw_str(&w, "version", pg_str(res, 0, 3));
    jsonw_str(&w, "expiresAt", wall_format(text, sizeof text, (struct wall){pg_i64(res, 0, 4)}));
    jsonw_end_object(&w);
    reply_json(r, 200, &out);
    buf_done(&out);
}

static MAY_YIELD void post_lock(struct request *r)
{
    static const char sql[] =
        "SELECT refused, detail, lock_id, version, expires_at FROM drive_lock($1, $2, $3, $4, $5, $6, $7)";
    struct json *body = NULL;
    struct pg_result *res = NULL;
    struct errinfo ei;
    int64_t ttl, least = r->server->conf->lock_min_us / US_PER_S;
    if ((r->chunked || r->content_length > 0) && req_json(r, &body) != ERR_OK)
        return;
    if (!field_int(r, body, "ttlSeconds", least, TTL_MAX_S, TTL_DEFAULT_S, &ttl))
        return;
    const struct login *l = &r->login;
    struct sv lock = req_header(r, "X-Lock-Id");
    const char *params[] = {l->account_id,
                            l->user_id,
                            l->session_id,
                            l->name,
                            r->params[0],
                            lock.n ? arena_strndup(r->mem, lock.p, lock.n) : NULL,
                            arena_printf(r->mem, "%" PRId64, ttl)};
    if (pg_run(r->server->pg, sql, 7, params, &res, &ei)) {
        reply_error(r, &ei);
        return;
    }
    if (pg_is_null(res, 0, 0))
        reply_lock(r, res);
    else
        meta_reply_refusal(r, pg_str(res, 0, 0), pg_str_or_null(res, 0, 1));
    pg_result_free(&res);
}

static MAY_YIELD void delete_lock(struct request *r)
{
    static const char sql[] = "SELECT drive_unlock($1, $2, $3, $4)";
    struct sv lock = req_header(r, "X-Lock-Id");
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (lock.n == 0) {
        reply_message(r, 400, "BAD_REQUEST", "X-Lock-Id must say which lock to let go");
        return;
    }
    const char *params[] = {r->login.account_id, r->login.session_id, r->params[0],
                            arena_strndup(r->mem, lock.p, lock.n)};
    if (pg_run(r->server->pg, sql, 4, params, &res, &ei)) {
        reply_error(r, &ei);
        return;
    }
    if (pg_is_null(res, 0, 0))
        reply_empty(r, 204);
    else
        meta_reply_refusal(r, pg_str(res, 0, 0), NULL);
    pg_result_free(&res);
}

const struct route routes_lock[] = {
    {"POST", "/api/files/:id/lock", PERM(EDIT), 0, post_lock},
    {"DELETE", "/api/files/:id/lock", PERM(EDIT), 0, delete_lock},
    {0},
};
