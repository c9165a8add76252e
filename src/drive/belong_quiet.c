/* What proves a part without a trace in trees, feeds or logs, on servers that have it: the version that a heartbeat
 * names, the login that a limiter counts, the bucket that the settings name. What does not show there may show by the
 * marker: nothing here calls a part another server's. */
#include "base/digest.h"
#include "base/json.h"
#include "base/mem.h"
#include "drive/belong_impl.h"
#include "drive/limits.h"
#include "drive/wire.h"
#include "net/guard.h"
#include "net/http_url.h"
#include <string.h>

#define CALL_US (10 * US_PER_S)

/* One call by hand, as only this wire has it. Returns its status; 0: no answer. */
static MAY_YIELD int call(struct httpc_peer *peer, const char *method, const char *path, const char *body,
                          struct json **answer)
{
    const struct http_req req = {.method = method, .path = path, .body = sv_of(body), .timeout_us = CALL_US};
    struct http_resp resp;
    int status = httpc_perform(peer, &req, &resp, NULL) == ERR_OK ? resp.status : 0;
    if (answer && json_parse(buf_cstr(&resp.body), resp.body.len, answer, NULL) != ERR_OK)
        *answer = NULL;
    http_resp_done(&resp);
    return status;
}

/* ---- the database: a heartbeat's row ---- */

static MAY_YIELD bool heartbeat_is_there(struct proof *p)
{
    static const char sql[] = "SELECT 1 FROM client_heartbeats h WHERE position($1 IN h::text) > 0";
    char body[MARKER_MAX + 60];
    const char *params[] = {p->name};
    struct pg_result *res = NULL;
    str_format(body, sizeof body, "{\"appVersion\":\"%s\",\"platform\":\"linux\"}", p->name);
    bool there = call(api_peer(p->api), "POST", "/api/user/client-heartbeat", body, NULL) == 200 &&
                 pg_run(p->pg, sql, 1, params, &res, NULL) == ERR_OK && pg_rows(res) > 0;
    pg_result_free(&res);
    return there;
}

/* ---- Redis: a limiter's counter of a login that nobody has ---- */

static MAY_YIELD void forget_key(struct proof *p, const char *key)
{
    const struct sv ask[] = {SV("DEL"), sv_of(key)};
    (void)!kv_command(p->kv, 2, ask, NULL, NULL);
}

static MAY_YIELD bool counter_is_there(struct proof *p)
{
    char body[MARKER_MAX + 80], pattern[MARKER_MAX + 4], cursor[32] = "0";
    struct httpc_peer *stranger = NULL;
    bool there = false;
    str_format(body, sizeof body, "{\"email\":\"%s" DRIVE_EMAIL_DOMAIN "\",\"password\":\"%s\"}", p->name, p->name);
    str_format(pattern, sizeof pattern, "*%s*", p->name);
    if (httpc_peer_new(&stranger, p->ctx->http, p->ctx->target->url, NULL, NULL) != ERR_OK)
        return false;
    httpc_peer_count(stranger, cmd_counters(p->ctx, CAUSE_SETUP));
    httpc_peer_header(stranger, WIRE_CSRF_HEADER, WIRE_CSRF_VALUE);
    httpc_peer_header(stranger, WIRE_DESKTOP_HEADER, WIRE_DESKTOP_VALUE);
    bool asked = call(stranger, "POST", "/api/login", body, NULL) == 401;
    httpc_peer_free(&stranger);
    while (asked && !there) {
        const struct sv ask[] = {SV("SCAN"), sv_of(cursor), SV("MATCH"), sv_of(pattern), SV("COUNT"), SV("1000")};
        struct kv_reply r = {0};
        asked = kv_command(p->kv, ARRAY_LEN(ask), ask, &r, NULL) == ERR_OK && r.n_items == 2 && r.items[0].s;
        there = asked && r.items[1].n_items > 0;
        if (there)
            forget_key(p, r.items[1].items[0].s);
        str_format(cursor, sizeof cursor, "%s", asked ? r.items[0].s : "0");
        kv_reply_done(&r);
        asked = asked && strcmp(cursor, "0") != 0;
    }
    return there;
}

/* ---- the bucket: what the administrator is told ---- */

static bool says(const struct json *j, const char *key, const char *what)
{
    const char *text = json_str(json_get(j, key));
    return text && strcmp(text, what) == 0;
}

/* The same words name the same place from here and from there: another machine's loopback is none of ours. */
static bool names_one_place(const struct target *t)
{
    struct http_url u;
    if (target_is_local(t) || http_url_parse(t->s3_endpoint, &u, NULL))
        return target_is_local(t);
    bool ours = guard_is_loopback(u.host);
    http_url_done(&u);
    return !ours;
}

static MAY_YIELD bool bucket_is_named(struct proof *p)
{
    const struct target *t = p->ctx->target;
    struct json *j = NULL;
    bool named = names_one_place(t) && call(api_peer(p->api), "GET", "/api/user/storage-config", NULL, &j) == 200 &&
                 says(j, "endpoint", t->s3_endpoint) && says(j, "bucket", t->s3_bucket);
    json_free(&j);
    return named;
}

void belong_ask_quietly(struct proof *p, bool deletes)
{
    belong_new_name(p);
    if (p->open[BELONG_DATABASE])
        p->open[BELONG_DATABASE] = !heartbeat_is_there(p);
    if (p->open[BELONG_REDIS])
        p->open[BELONG_REDIS] = !counter_is_there(p);
    if (p->open[BELONG_STORE] && !deletes)
        p->open[BELONG_STORE] = !bucket_is_named(p);
}
