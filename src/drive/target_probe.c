/* Asks the target what it is before anything is done to it. Every way of being the wrong target gets one sentence that
 * says what to do; all of them end the program with the status for the environment, whatever the transport called it.
 */
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/api/dialect.h"
#include "drive/cmd.h"
#include "store/pg.h"
#include <string.h>

#define PROBE_TIMEOUT_US (10 * US_PER_S)
#define PROBE_BODY_MAX   (64 * 1024)

struct probe {
    const struct cmd_ctx *ctx;
    const struct target *t;
    struct httpc_peer *peer;
    struct http_url url;
    struct json *health;
};

static MAY_YIELD enum err get(struct httpc_peer *peer, const char *path, struct http_resp *resp, struct errinfo *ei)
{
    struct http_req req = {.method = "GET", .path = path, .timeout_us = PROBE_TIMEOUT_US, .max_body = PROBE_BODY_MAX};
    return httpc_perform(peer, &req, resp, ei);
}

static enum err no_answer(const struct probe *p, enum err err, const struct errinfo *why, struct errinfo *ei)
{
    const char *url = p->t->url;
    switch (err) {
    case ERR_CONNECT:
        return err_set(ei, ERR_ENV, "nothing is listening at %s: start the server, or a whole stack with sim stack up",
                       url);
    case ERR_RESOLVE:
        return err_set(ei, ERR_ENV, "the host of TMA_URL=%s has no address: check the name", url);
    case ERR_TLS:
        return err_set(ei, ERR_ENV, "no trusted TLS connection to %s (%s): give --cafile FILE, or --insecure", url,
                       err_message(why));
    case ERR_TIMEOUT:
        return err_set(ei, ERR_ENV, "%s accepts connections but did not answer GET /health within 10 s", url);
    case ERR_LIMIT:
        return err_set(ei, ERR_ENV, "another kind of server answers at %s: its GET /health is larger than 64 KiB", url);
    case ERR_CANCELLED:
        return err_set(ei, ERR_INTERRUPTED, "interrupted");
    case ERR_LOCAL:
        return err_set(ei, ERR_ENV, "%s", err_message(why));
    default:
        return err_set(ei, ERR_ENV, "another kind of server answers at %s: GET /health ended with \"%s\"", url,
                       err_message(why));
    }
}

/* The URL to set instead: the redirect's place without the path that was asked for. */
static enum err redirected(const struct probe *p, const char *path, const struct http_resp *resp, struct errinfo *ei)
{
    struct buf origin = BUF_INIT(512);
    char shown[164];
    struct sv to = http_resp_header(resp, "Location");
    if (to.n && to.p[0] == '/' && !buf_appendf(&origin, "%s://%s:%d", p->url.scheme, p->url.host, p->url.port)) {
        if (buf_append(&origin, to.p, to.n) == ERR_OK)
            to = (struct sv){origin.data, origin.len};
    }
    if (sv_ends(to, sv_of(path)))
        to.n -= strlen(path);
    enum err err;
    if (to.n == 0)
        err = err_set(ei, ERR_ENV, "%s redirects without saying where to: set TMA_URL to the server itself", p->t->url);
    else
        err = err_set(ei, ERR_ENV, "the server redirects: set TMA_URL=%s", str_shown(shown, sizeof shown, to));
    buf_done(&origin);
    return err;
}

static bool is_redirect(int status)
{
    return status >= 300 && status < 400 && status != 304;
}

static bool health_ok(const struct http_resp *resp, struct json **out)
{
    struct json *j = NULL;
    if (resp->status != 200 || json_parse(buf_cstr(&resp->body), resp->body.len, &j, NULL))
        return false;
    const char *status = json_str(json_get(j, "status"));
    if (!status || strcmp(status, "ok") != 0) {
        json_free(&j);
        return false;
    }
    *out = j;
    return true;
}

/* With a prefix in the URL: does the server answer without it? */
static MAY_YIELD bool answers_at_root(const struct probe *p, struct buf *origin)
{
    struct httpc_peer *peer = NULL;
    struct http_resp resp;
    struct json *health = NULL;
    if (!*p->url.path || buf_appendf(origin, "%s://%s:%d", p->url.scheme, p->url.host, p->url.port) ||
        httpc_peer_new(&peer, p->ctx->http, origin->data, NULL, NULL))
        return false;
    httpc_peer_count(peer, cmd_counters(p->ctx, CAUSE_SETUP));
    bool ok = get(peer, "/health", &resp, NULL) == ERR_OK && health_ok(&resp, &health);
    json_free(&health);
    http_resp_done(&resp);
    httpc_peer_free(&peer);
    return ok;
}

static MAY_YIELD enum err probe_health(struct probe *p, struct errinfo *ei)
{
    struct http_resp resp;
    struct errinfo why = {0};
    struct buf origin = BUF_INIT(512);
    enum err err = get(p->peer, "/health", &resp, &why);
    if (err)
        err = no_answer(p, err, &why, ei);
    else if (is_redirect(resp.status))
        err = redirected(p, "/health", &resp, ei);
    else if (health_ok(&resp, &p->health))
        err = ERR_OK;
    else if (answers_at_root(p, &origin))
        err = err_set(ei, ERR_ENV, "no drive server answers under %s: it is at TMA_URL=%s", p->url.path,
                      buf_cstr(&origin));
    else if (resp.status == 503)
        err = err_set(ei, ERR_ENV, "the server at %s says that it is not ready (GET /health: 503)", p->t->url);
    else
        err = err_set(ei, ERR_ENV,
                      "another kind of server answers at %s: GET /health gave %d without {\"status\":\"ok\"}",
                      p->t->url, resp.status);
    buf_done(&origin);
    http_resp_done(&resp);
    return err;
}

static enum err judge_health(const struct probe *p, struct errinfo *ei)
{
    static const char *const keys[] = {"environment", "env",     "appEnv", "app_env", "nodeEnv",
                                       "NODE_ENV",    "APP_ENV", "mode",   "stage"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct sv says = sv_of(json_str(json_get(p->health, keys[i])));
        if (sv_ieq(says, SV("production")) || sv_ieq(says, SV("prod")) || sv_ieq(says, SV("live")))
            return err_set(ei, ERR_SAFETY,
                           "the server at %s says that it is production: drivesim never runs against it", p->t->url);
    }
    return ERR_OK;
}

/* The right kind, perhaps, but a part of it is away: what it says itself tells which. */
static enum err not_ready(const struct probe *p, const char *path, const struct http_resp *resp, struct errinfo *ei)
{
    char shown[204] = "";
    struct json *j = NULL;
    if (json_parse(buf_cstr(&resp->body), resp->body.len, &j, NULL) == ERR_OK)
        str_shown(shown, sizeof shown, sv_of(json_str(json_get(j, "message"))));
    enum err err = err_set(ei, ERR_ENV, "the server at %s is not ready: GET %s gave %d%s%s", p->t->url, path,
                           resp->status, shown[0] ? ": " : "", shown);
    json_free(&j);
    return err;
}

static MAY_YIELD enum err probe_api(const struct probe *p, struct errinfo *ei)
{
    struct http_resp resp;
    struct errinfo why = {0};
    struct json *j = NULL;
    enum err err = get(p->peer, "/api/signup-status", &resp, &why);
    if (err)
        err = no_answer(p, err, &why, ei);
    else if (is_redirect(resp.status))
        err = redirected(p, "/api/signup-status", &resp, ei);
    else if (resp.status == 429) /* the budget of this address is spent: it is the right kind all the same */
        err = ERR_OK;
    else if (resp.status >= 500)
        err = not_ready(p, "/api/signup-status", &resp, ei);
    else if (resp.status != 200 || json_parse(buf_cstr(&resp.body), resp.body.len, &j, NULL) ||
             !json_get(j, "signupEnabled"))
        err = err_set(ei, ERR_ENV,
                      "another kind of server answers at %s: GET /api/signup-status gave %d without signupEnabled",
                      p->t->url, resp.status);
    json_free(&j);
    http_resp_done(&resp);
    return err;
}

/* A database that cannot be asked is no reason to refuse: the checks that need it say so themselves. */
static MAY_YIELD enum err probe_users(const struct target *t, struct loop *l, struct errinfo *ei)
{
    struct pg_pool *pool = NULL;
    struct pg_result *r = NULL;
    struct errinfo why = {0};
    static const char sql[] = "SELECT count(*) FROM users WHERE lower(email) NOT LIKE '%" DRIVE_EMAIL_DOMAIN "'";
    enum err err = pg_pool_new(&pool, l, t->database_url, 1, &why);
    if (!err)
        err = pg_run(pool, sql, 0, NULL, &r, &why);
    if (err) {
        LOGW("target", "the users in DATABASE_URL could not be read: %s", err_message(&why));
        err = ERR_OK;
    } else if (pg_i64(r, 0, 0) > 0) {
        err = err_set(ei, ERR_SAFETY,
                      "the database of %s holds %lld other user%s, outside " DRIVE_EMAIL_DOMAIN
                      ": it is no throwaway server",
                      t->url, (long long)pg_i64(r, 0, 0), pg_i64(r, 0, 0) == 1 ? "" : "s");
    }
    pg_result_free(&r);
    pg_pool_free(&pool);
    return err;
}

/* A server of another dialect is asked in its own way. */
static MAY_YIELD enum err greet(const struct cmd_ctx *ctx, bool *done, struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(ctx);
    struct api *a = NULL;
    enum err err = api_new(&a, &conf, ei);
    *done = err || a->dialect->greet;
    if (!err && a->dialect->greet)
        err = a->dialect->greet(a, ei);
    if (!err && a->dialect->greet) {
        ctx->target->logins_made = api_caps(a) & API_CAP_SIGN_UP;
        ctx->target->name_max = a->name_max;
    }
    api_free(&a);
    return err;
}

enum err target_probe(const struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct target *t = ctx->target;
    struct probe p = {.ctx = ctx, .t = t};
    bool done = false;
    enum err err = target_require_url(t, ei);
    if (!err)
        err = greet(ctx, &done, ei);
    if (err || done || (err = http_url_parse(t->url, &p.url, ei)))
        return err;
    err = httpc_peer_new(&p.peer, ctx->http, t->url, NULL, ei);
    if (!err)
        httpc_peer_count(p.peer, cmd_counters(ctx, CAUSE_SETUP));
    if (!err)
        err = probe_health(&p, ei);
    if (!err)
        err = judge_health(&p, ei);
    if (!err)
        err = probe_api(&p, ei);
    if (!err && t->database_url)
        err = probe_users(t, ctx->loop, ei);
    json_free(&p.health);
    if (p.peer)
        httpc_peer_free(&p.peer);
    http_url_done(&p.url);
    return err;
}
