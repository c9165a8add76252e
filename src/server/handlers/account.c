/* Signing up, in and out; profile, sessions, storage use and limit, heartbeats. */
#include "server/access/account.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/access/budget.h"
#include "server/access/password.h"
#include "server/access/session.h"
#include "server/http/fields.h"
#include "server/http/route.h"
#include "server/server.h"
#include <string.h>

static MAY_YIELD bool login_budget(struct request *r, const char *email)
{
    const struct budget_use use = {BUDGET_LOGINS, arena_printf(r->mem, "%s:%s", r->client_ip, email)};
    return budget_take(r, &use, 1);
}

/* Sets the cookie and answers with the user. */
static MAY_YIELD void sign_in(struct request *r, const struct account_user *u)
{
    struct errinfo ei;
    if (session_open(r, u->id, &ei) != ERR_OK)
        reply_error(r, &ei);
    else
        account_reply(r, 200, "user", u);
}

static MAY_YIELD void post_signup(struct request *r)
{
    struct account_fields f;
    struct errinfo ei;
    char hash[PASSWORD_HASH_MAX];
    struct pg_result *res = NULL;
    bool in = false;

    if (!account_read(r, FIELD_EMAIL | FIELD_PASSWORD, FIELD_NAME, &f) || !login_budget(r, f.email) ||
        !session_admit(r))
        return;
    if (password_hash(r->server->work, f.password, (unsigned)r->server->conf->bcrypt_cost, hash, &ei) != ERR_OK) {
        session_turn_away(r);
        reply_error(r, &ei);
        return;
    }
    const char *params[] = {f.email, hash, f.name ? f.name : "", r->client_ip};
    if (pg_run(r->server->pg, "SELECT refused, id, drive_iso(created_at) FROM drive_sign_up($1, $2, $3, $4)", 4, params,
               &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
    } else if (strcmp(pg_str(res, 0, 0), "DISABLED") == 0) {
        reply_message(r, 403, NULL, "Signup is currently disabled");
    } else if (!pg_is_null(res, 0, 0)) {
        reply_message(r, 409, NULL, "Email already in use");
    } else {
        const struct account_user u = {.id = pg_str(res, 0, 1),
                                       .email = f.email,
                                       .name = params[2],
                                       .permissions = "",
                                       .created_at = pg_str(res, 0, 2),
                                       .owner = true};
        in = true;
        sign_in(r, &u);
    }
    if (!in)
        session_turn_away(r);
    pg_result_free(&res);
}

static MAY_YIELD void note_failed_login(struct request *r, const char *user_id)
{
    const char *params[] = {user_id};
    struct errinfo ei;
    if (pg_run(r->server->pg, "SELECT drive_audit($1, 'auth.login.failure', 'user', $1, 'failure', NULL)", 1, params,
               NULL, &ei) != ERR_OK)
        LOGW("account", "a failed login was not noted: %s", err_message(&ei));
}

static MAY_YIELD void post_login(struct request *r)
{
    static const char sql[] = "SELECT" ACCOUNT_COLUMNS ", password FROM users WHERE lower(email) = $1";
    struct account_fields f;
    struct errinfo ei;
    struct pg_result *res = NULL;
    bool in = false;

    if (!account_read(r, FIELD_LOGIN | FIELD_SECRET, 0, &f) || !session_admit(r))
        return;
    if (!login_budget(r, f.email)) {
        session_turn_away(r);
        return;
    }
    const char *params[] = {f.email};
    if (pg_run(r->server->pg, sql, 1, params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
    } else if (pg_rows(res) == 0) {
        reply_message(r, 401, NULL, "Invalid credentials");
    } else if (!password_fits(r->server->work, f.password, pg_str(res, 0, ACCOUNT_COLUMN_COUNT))) {
        reply_message(r, 401, NULL, "Invalid credentials");
        note_failed_login(r, pg_str(res, 0, 0));
    } else {
        const struct account_user u = account_user_of(res, 0);
        in = true;
        sign_in(r, &u);
    }
    if (!in)
        session_turn_away(r);
    pg_result_free(&res);
}

static MAY_YIELD void post_logout(struct request *r)
{
    const char *params[] = {r->login.user_id, r->login.session_id};
    struct errinfo ei;
    if (pg_run(r->server->pg, "SELECT drive_session_close($1, $2)", 2, params, NULL, &ei) != ERR_OK) {
        reply_error(r, &ei);
        return;
    }
    session_forget(r->server, r->login.session_id);
    session_clear_cookie(r);
    reply_message(r, 200, NULL, "Logged out");
}

static MAY_YIELD void get_profile(struct request *r)
{
    static const char sql[] = "SELECT" ACCOUNT_COLUMNS " FROM users WHERE id = $1";
    const char *params[] = {r->login.user_id};
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(r->server->pg, sql, 1, params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
    } else if (pg_rows(res) == 0) {
        reply_message(r, 404, NULL, "User not found");
    } else {
        const struct account_user u = account_user_of(res, 0);
        account_reply(r, 200, NULL, &u);
    }
    pg_result_free(&res);
}

static MAY_YIELD void get_sessions(struct request *r)
{
    static const char sql[] = "SELECT id, ip, user_agent, drive_iso(created_at), drive_iso(last_seen_at) FROM sessions "
                              "WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > now() "
                              "ORDER BY created_at DESC, id LIMIT 1000";
    const char *params[] = {r->login.user_id};
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(r->server->pg, sql, 1, params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
        return;
    }
    struct buf json = BUF_INIT(1024 * 1024);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "sessions");
    for (int i = 0; i < pg_rows(res); i++) {
        jsonw_object(&w, NULL);
        jsonw_str(&w, "id", pg_str(res, i, 0));
        jsonw_str(&w, "user_id", r->login.user_id);
        jsonw_str(&w, "ip_address", pg_str_or_null(res, i, 1));
        jsonw_str(&w, "user_agent", pg_str_or_null(res, i, 2));
        jsonw_str(&w, "created_at", pg_str(res, i, 3));
        jsonw_str(&w, "last_activity", pg_str(res, i, 4));
        jsonw_bool(&w, "isCurrent", strcmp(pg_str(res, i, 0), r->login.session_id) == 0);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    reply_json(r, 200, &json);
    buf_done(&json);
    pg_result_free(&res);
}

static MAY_YIELD void reply_signup(struct request *r, bool enabled)
{
    reply_text(r, 200, "application/json; charset=utf-8",
               enabled ? SV("{\"signupEnabled\":true}") : SV("{\"signupEnabled\":false}"));
}

static MAY_YIELD void get_signup_status(struct request *r)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(r->server->pg, "SELECT signup_enabled FROM app_settings", 0, NULL, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
        return;
    }
    reply_signup(r, pg_bool(res, 0, 0));
    pg_result_free(&res);
}

static MAY_YIELD void post_signup_toggle(struct request *r)
{
    struct json *body;
    struct errinfo ei;
    if (req_json(r, &body) != ERR_OK)
        return;
    const struct json *v = json_get(body, "enabled");
    bool enabled = json_bool(v, false);
    if (enabled != json_bool(v, true)) { /* neither true nor false */
        reply_validation(r, "enabled", "enabled is true or false");
        return;
    }
    const char *params[] = {r->login.user_id, enabled ? "true" : "false"};
    if (pg_run(r->server->pg, "SELECT drive_signup_toggle($1, $2)", 2, params, NULL, &ei) != ERR_OK)
        reply_error(r, &ei);
    else
        reply_signup(r, enabled);
}

static MAY_YIELD void get_storage(struct request *r)
{
    const char *params[] = {r->login.account_id};
    struct pg_result *res = NULL;
    struct errinfo ei = {.code = ERR_NOTFOUND};
    if (pg_run(r->server->pg, "SELECT storage_used, storage_limit, storage_reserved FROM users WHERE id = $1", 1,
               params, &res, &ei) != ERR_OK ||
        pg_rows(res) == 0) {
        reply_error(r, &ei);
        pg_result_free(&res);
        return;
    }
    int64_t used = pg_i64(res, 0, 0), total = pg_i64(res, 0, 1), left = total - used - pg_i64(res, 0, 2);
    bool limited = !pg_is_null(res, 0, 1);
    pg_result_free(&res);
    struct buf json = BUF_INIT(256);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "used", used);
    if (limited) {
        jsonw_i64(&w, "total", total);
        jsonw_i64(&w, "free", left > 0 ? left : 0);
    } else {
        jsonw_null(&w, "total");
        jsonw_null(&w, "free");
    }
    jsonw_end_object(&w);
    reply_json(r, 200, &json);
    buf_done(&json);
}

static MAY_YIELD void put_storage_limit(struct request *r)
{
    struct json *body;
    struct pg_result *res = NULL;
    struct errinfo ei;
    int64_t limit = 0;
    if (req_json(r, &body) != ERR_OK)
        return;
    const char *target = json_str(json_get(body, "targetUserId"));
    const struct json *v = json_get(body, "storageLimit");
    if (!target) {
        reply_validation(r, "targetUserId", "the id of an account's owner is needed");
        return;
    }
    if (!json_is_null(v) && (!json_i64(v, &limit) || limit <= 0)) {
        reply_validation(r, "storageLimit", "storageLimit is a number of bytes above 0, or null for no limit");
        return;
    }
    const char *params[] = {r->login.user_id, target,
                            json_is_null(v) ? NULL : arena_printf(r->mem, "%lld", (long long)limit)};
    if (pg_run(r->server->pg, "SELECT drive_storage_limit($1, $2, $3)", 3, params, &res, &ei) != ERR_OK)
        reply_error(r, &ei);
    else if (!pg_bool(res, 0, 0))
        reply_message(r, 404, NULL, "No account's owner has this id");
    else
        reply_message(r, 200, NULL, "Storage limit updated");
    pg_result_free(&res);
}

static MAY_YIELD void post_heartbeat(struct request *r)
{
    struct json *body;
    struct errinfo ei;
    if (req_json(r, &body) != ERR_OK)
        return;
    const char *version = json_str(json_get(body, "appVersion")), *platform = json_str(json_get(body, "platform"));
    if (!version || !*version || strlen(version) > 100 || (platform && strlen(platform) > 100)) {
        reply_message(r, 400, NULL, "appVersion is needed");
        return;
    }
    const char *params[] = {r->login.user_id, r->login.session_id, version, platform};
    if (pg_run(r->server->pg, "SELECT drive_heartbeat($1, $2, $3, $4)", 4, params, NULL, &ei) != ERR_OK)
        reply_error(r, &ei);
    else
        reply_text(r, 200, "application/json; charset=utf-8", SV("{\"ok\":true}"));
}

const struct route routes_account[] = {
    {"POST", "/api/signup", 0, ROUTE_PUBLIC, post_signup},
    {"POST", "/api/login", 0, ROUTE_PUBLIC, post_login},
    {"POST", "/api/logout", 0, 0, post_logout},
    {"GET", "/api/profile", 0, 0, get_profile},
    {"GET", "/api/sessions", 0, 0, get_sessions},
    {"GET", "/api/signup-status", 0, ROUTE_PUBLIC, get_signup_status},
    {"POST", "/api/user/signup-toggle", 0, ROUTE_ADMIN, post_signup_toggle},
    {"GET", "/api/user/storage", 0, 0, get_storage},
    {"PUT", "/api/user/storage-limit", 0, ROUTE_ADMIN, put_storage_limit},
    {"POST", "/api/user/client-heartbeat", 0, 0, post_heartbeat},
    {0},
};
