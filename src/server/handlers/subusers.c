/* An owner's sub-users. Their files, quota, events and changes are the owner's. */
#include "base/mem.h"
#include "server/access/account.h"
#include "server/access/password.h"
#include "server/access/session.h"
#include "server/http/route.h"
#include "server/server.h"
#include "store/pg.h"

static MAY_YIELD void list_sub_users(struct request *r)
{
    const char *params[] = {r->login.user_id};
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(r->server->pg,
               "SELECT" ACCOUNT_COLUMNS " FROM users WHERE parent_user_id = $1 ORDER BY users.created_at, id", 1,
               params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
        return;
    }
    struct buf json = BUF_INIT(64 * 1024 * 1024);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "subUsers");
    for (int i = 0; i < pg_rows(res); i++) {
        const struct account_user u = account_user_of(res, i);
        account_user_json(&w, NULL, &u);
    }
    jsonw_end_array(&w);
    jsonw_array(&w, "availablePermissions");
    for (unsigned bit = 0; bit < PERM_COUNT; bit++)
        jsonw_str(&w, NULL, perm_name((enum perm_bit)bit));
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    reply_json(r, 200, &json);
    buf_done(&json);
    pg_result_free(&res);
}

static MAY_YIELD void create_sub_user(struct request *r)
{
    static const char sql[] =
        "SELECT refused, id, drive_iso(created_at) FROM drive_sub_user_create($1, $2, $3, $4, $5)";
    struct account_fields f;
    struct errinfo ei;
    char hash[PASSWORD_HASH_MAX];
    struct pg_result *res = NULL;

    if (!account_read(r, FIELD_EMAIL | FIELD_PASSWORD | FIELD_PERMISSIONS, FIELD_NAME, &f))
        return;
    if (password_hash(r->server->work, f.password, (unsigned)r->server->conf->bcrypt_cost, hash, &ei) != ERR_OK) {
        reply_error(r, &ei);
        return;
    }
    const char *params[] = {r->login.user_id, f.email, hash, f.name ? f.name : "", f.permissions};
    if (pg_run(r->server->pg, sql, 5, params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
    } else if (!pg_is_null(res, 0, 0)) {
        reply_message(r, 409, NULL, "Email already in use");
    } else {
        const struct account_user u = {.id = pg_str(res, 0, 1),
                                       .email = f.email,
                                       .name = params[3],
                                       .permissions = f.permission_names,
                                       .created_at = pg_str(res, 0, 2)};
        account_reply(r, 201, "subUser", &u);
    }
    pg_result_free(&res);
}

static MAY_YIELD void update_sub_user(struct request *r)
{
    static const char sql[] = "SELECT" ACCOUNT_COLUMNS " FROM drive_sub_user_update($1, $2, $3, $4, $5)";
    struct account_fields f;
    struct errinfo ei;
    char hash[PASSWORD_HASH_MAX];
    struct pg_result *res = NULL;

    if (!account_read(r, 0, FIELD_PASSWORD | FIELD_NAME | FIELD_PERMISSIONS, &f))
        return;
    if (f.password &&
        password_hash(r->server->work, f.password, (unsigned)r->server->conf->bcrypt_cost, hash, &ei) != ERR_OK) {
        reply_error(r, &ei);
        return;
    }
    const char *params[] = {r->login.user_id, r->params[0], f.permissions, f.name, f.password ? hash : NULL};
    if (pg_run(r->server->pg, sql, 5, params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
    } else if (pg_rows(res) == 0) {
        reply_message(r, 404, NULL, "Sub-user not found");
    } else {
        const struct account_user u = account_user_of(res, 0);
        session_forget_user(r->server, u.id, false);
        account_reply(r, 200, "subUser", &u);
    }
    pg_result_free(&res);
}

static MAY_YIELD void delete_sub_user(struct request *r)
{
    const char *params[] = {r->login.user_id, r->params[0]};
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(r->server->pg, "SELECT drive_sub_user_delete($1, $2)", 2, params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
    } else if (!pg_bool(res, 0, 0)) {
        reply_message(r, 404, NULL, "Sub-user not found");
    } else {
        session_forget_user(r->server, r->params[0], true);
        reply_message(r, 200, NULL, "Sub-user deleted");
    }
    pg_result_free(&res);
}

const struct route routes_subusers[] = {
    {"GET", "/api/user/sub-users", 0, ROUTE_OWNER, list_sub_users},
    {"POST", "/api/user/sub-users", 0, ROUTE_OWNER, create_sub_user},
    {"PUT", "/api/user/sub-users/:id", 0, ROUTE_OWNER, update_sub_user},
    {"DELETE", "/api/user/sub-users/:id", 0, ROUTE_OWNER, delete_sub_user},
    {0},
};
