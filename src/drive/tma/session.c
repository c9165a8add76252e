/* Accounts, sign-in and storage of the tma dialect. The token is in Set-Cookie alone; tma.c takes it from every answer.
 */
#include "drive/tma/session.h"
#include "base/mem.h"
#include "base/version.h"
#include "store/blob.h"
#include <string.h>

static void body_begin(struct buf *body, struct jsonw *w)
{
    buf_init(body, TMA_JSON_MAX);
    jsonw_init(w, body);
    jsonw_object(w, NULL);
}

static void body_end(struct jsonw *w)
{
    jsonw_end_object(w);
}

/* For calls whose answer's body does not matter. */
static MAY_YIELD enum err call_plain(struct api *a, const struct tma_call *c, struct api_result *r)
{
    struct http_resp resp;
    enum err err = tma_call(a, c, &resp, r);
    http_resp_done(&resp);
    return err;
}

static MAY_YIELD enum err post_credentials(struct api *a, const char *path, const char *email, const char *password,
                                           const char *name, struct api_result *r)
{
    struct buf p, body;
    struct jsonw w;
    api_set_token(a, sv_of(NULL)); /* a stale cookie would win over the new one */
    tma_path(&p, path, NULL, NULL);
    body_begin(&body, &w);
    jsonw_str(&w, "email", email);
    jsonw_str(&w, "password", password);
    if (name)
        jsonw_str(&w, "name", name);
    body_end(&w);
    enum err err =
        call_plain(a, &(struct tma_call){.method = "POST", .path = &p, .json = &body, .write = name != NULL}, r);
    if (!err && r->outcome == OUT_OK && !a->token)
        return api_wrong(r, "signed in, but the answer set no token cookie");
    return err;
}

enum err tma_sign_up(struct api *a, const char *email, const char *password, const char *name, struct api_result *r)
{
    return post_credentials(a, "/api/signup", email, password, name ? name : email, r);
}

enum err tma_sign_in(struct api *a, const char *email, const char *password, struct api_result *r)
{
    return post_credentials(a, "/api/login", email, password, NULL, r);
}

enum err tma_sign_out(struct api *a, struct api_result *r)
{
    struct buf p;
    tma_path(&p, "/api/logout", NULL, NULL);
    enum err err = call_plain(a, &(struct tma_call){.method = "POST", .path = &p}, r);
    api_set_token(a, sv_of(NULL));
    return err;
}

enum err tma_prove_session(struct api *a, const char *email, struct api_result *r)
{
    struct buf p;
    struct json *j;
    tma_path(&p, "/api/profile", NULL, NULL);
    enum err err = tma_call_json(a, &(struct tma_call){.method = "GET", .path = &p}, &j, r);
    const char *whose = json_str(json_get(j, "email"));
    if (!whose)
        whose = json_str(json_get(json_get(j, "user"), "email"));
    if (j && !(whose && sv_ieq(sv_of(whose), sv_of(email))))
        err = api_wrong(r, "the session is another login's");
    json_free(&j);
    return err;
}

enum err tma_signup_status(struct api *a, bool *enabled, struct api_result *r)
{
    struct buf p;
    struct json *j;
    tma_path(&p, "/api/signup-status", NULL, NULL);
    enum err err = tma_call_json(a, &(struct tma_call){.method = "GET", .path = &p}, &j, r);
    *enabled = json_bool(json_get(j, "signupEnabled"), false);
    json_free(&j);
    return err;
}

enum err tma_signup_toggle(struct api *a, bool enabled, struct api_result *r)
{
    struct buf p, body;
    struct jsonw w;
    tma_path(&p, "/api/user/signup-toggle", NULL, NULL);
    body_begin(&body, &w);
    jsonw_bool(&w, "enabled", enabled);
    body_end(&w);
    return call_plain(a, &(struct tma_call){.method = "POST", .path = &p, .json = &body, .bare = true}, r);
}

enum err tma_sub_user_create(struct api *a, const char *email, const char *password, const char *name, unsigned perms,
                             struct api_result *r)
{
    struct buf p, body;
    struct jsonw w;
    tma_path(&p, "/api/user/sub-users", NULL, NULL);
    body_begin(&body, &w);
    jsonw_str(&w, "email", email);
    jsonw_str(&w, "password", password);
    jsonw_str(&w, "name", name);
    jsonw_array(&w, "permissions");
    for (unsigned i = 0; i < PERM_COUNT; i++) {
        if (perms & 1u << i)
            jsonw_str(&w, NULL, perm_name((enum perm_bit)i));
    }
    jsonw_end_array(&w);
    body_end(&w);
    const struct tma_call c = {
        .method = "POST", .path = &p, .json = &body, .write = true, .cap = API_CAP_SUB_USERS, .bare = true};
    return call_plain(a, &c, r);
}

static bool read_user(const struct json *j, struct arena *mem, struct api_user *out)
{
    const char *id = json_str(json_get(j, "id")), *email = json_str(json_get(j, "email"));
    const char *name = json_str(json_get(j, "name"));
    if (!id || !email)
        return false;
    *out = (struct api_user){.id = arena_strdup(mem, id), .email = arena_strdup(mem, email)};
    out->name = arena_strdup(mem, name ? name : email);
    const struct json *perms = json_get(j, "permissions");
    for (const struct json *p = json_first(perms); p; p = json_next(p)) {
        if (json_str(p))
            perm_parse(json_str(p), &out->perms); /* one that is not known here changes nothing */
    }
    return true;
}

enum err tma_sub_users(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r)
{
    struct buf p;
    struct json *j;
    *out = (struct api_users){0};
    tma_path(&p, "/api/user/sub-users", NULL, NULL);
    const struct tma_call c = {.method = "GET", .path = &p, .cap = API_CAP_SUB_USERS, .bare = true};
    enum err err = tma_call_json(a, &c, &j, r);
    const struct json *list = json_is_array(j) ? j : json_get(j, "subUsers");
    if (j && !json_is_array(list))
        err = api_wrong(r, "the answer lists no sub-users");
    out->items = arena_alloc(mem, (json_count(list) + 1) * sizeof *out->items);
    for (const struct json *it = json_first(list); it && !err; it = json_next(it)) {
        if (!read_user(it, mem, &out->items[out->n++]))
            err = api_wrong(r, "the answer lists a sub-user without id or e-mail");
    }
    json_free(&j);
    return err;
}

enum err tma_heartbeat(struct api *a, struct api_result *r)
{
    struct buf p, body;
    struct jsonw w;
    tma_path(&p, "/api/user/client-heartbeat", NULL, NULL);
    body_begin(&body, &w);
    jsonw_str(&w, "appVersion", a->app_version ? a->app_version : drivesim_version);
    jsonw_str(&w, "platform", "linux");
    body_end(&w);
    return call_plain(a, &(struct tma_call){.method = "POST", .path = &p, .json = &body}, r);
}

static int64_t limit_of(const struct json *j, const char *key)
{
    int64_t v;
    return json_i64(json_get(j, key), &v) && v >= 0 ? v : -1;
}

enum err tma_storage(struct api *a, struct api_storage *out, struct api_result *r)
{
    struct buf p;
    struct json *j;
    tma_path(&p, "/api/user/storage", NULL, NULL);
    enum err err = tma_call_json(a, &(struct tma_call){.method = "GET", .path = &p}, &j, r);
    *out = (struct api_storage){.used = -1, .total = limit_of(j, "total"), .free = limit_of(j, "free")};
    if (j && !json_i64(json_get(j, "used"), &out->used))
        err = api_wrong(r, "the answer holds no storage use");
    json_free(&j);
    return err;
}

static bool has_text(const struct json *j, const char *key)
{
    const char *s = json_str(json_get(j, key));
    return s && *s;
}

static MAY_YIELD enum err put_storage(struct api *a, const struct blob_conf *conf, const struct json *current,
                                      struct api_result *r)
{
    struct buf p, body;
    struct jsonw w;
    int64_t version = 0;
    const struct json *v = json_get(current, "version");
    tma_path(&p, "/api/user/storage-config", NULL, NULL);
    body_begin(&body, &w);
    jsonw_str(&w, "provider", "s3");
    jsonw_str(&w, "endpoint", conf->endpoint);
    if (conf->region)
        jsonw_str(&w, "region", conf->region);
    jsonw_str(&w, "bucket", conf->bucket);
    jsonw_bool(&w, "forcePathStyle", conf->path_style);
    jsonw_str(&w, "accessKeyId", conf->access_key);
    jsonw_str(&w, "secretAccessKey", conf->secret_key);
    if (json_is_string(v))
        jsonw_str(&w, "version", json_str(v));
    else if (json_i64(v, &version) || !v)
        jsonw_i64(&w, "version", version);
    else
        jsonw_null(&w, "version");
    body_end(&w);
    const struct tma_call c = {
        .method = "PUT", .path = &p, .json = &body, .write = true, .cap = API_CAP_STORAGE_CONFIG, .bare = true};
    return call_plain(a, &c, r);
}

enum err tma_storage_config(struct api *a, const struct blob_conf *conf, struct api_result *r)
{
    struct buf p;
    struct json *j;
    tma_path(&p, "/api/user/storage-config", NULL, NULL);
    enum err err = tma_call_json(a, &(struct tma_call){.method = "GET", .path = &p}, &j, r);
    /* Another one would leave it without its objects: whether it is this one has to be seen otherwise. */
    bool connected = has_text(j, "endpoint") && has_text(j, "bucket");
    /* A server without the reading call may still have the writing one. */
    if (!connected && (!err || err == ERR_PARSE) && (j || r->status == 404 || r->status == 405))
        err = put_storage(a, conf, j, r);
    json_free(&j);
    return err;
}

/* A server with pages keeps to the smallest one; one without sends all there is. */
static MAY_YIELD enum err probe_paging(struct api *a, struct api_result *r)
{
    struct buf p;
    struct http_resp resp;
    struct json *j = NULL;
    tma_path(&p, "/api/files?limit=1", NULL, NULL);
    enum err err = tma_call(a, &(struct tma_call){.method = "GET", .path = &p}, &resp, r);
    if (!err && r->outcome == OUT_OK && !json_parse(buf_cstr(&resp.body), resp.body.len, &j, NULL) &&
        json_count(j) > 1 && !http_resp_header(&resp, WIRE_CURSOR_HEADER).n)
        a->caps &= ~(unsigned)API_CAP_PAGING;
    json_free(&j);
    http_resp_done(&resp);
    return err;
}

#define NOWHERE "zzzzzzzzzzzzzzzz" /* the id of nothing */

struct probe_row {
    const char *method, *path;
    enum api_cap cap;
    bool bare;
};

static MAY_YIELD enum err probe_row(struct api *a, const struct probe_row *row, struct api_result *r)
{
    struct buf p, body;
    struct jsonw w;
    bool post = strcmp(row->method, "POST") == 0;
    tma_path(&p, row->path, NULL, NULL);
    body_begin(&body, &w);
    body_end(&w);
    const struct tma_call c = {
        .method = row->method, .path = &p, .json = post ? &body : NULL, .cap = row->cap, .bare = row->bare};
    enum err err = call_plain(a, &c, r);
    buf_done(&body);
    return err;
}

/* One cheap call that makes nothing for each capability that has one. Those about a thing name one that is not there: a
 * server that has the call says so in a sentence, one that has not knows no such path. Each may be asked once more, as
 * a kept connection may break under any of them. */
enum err tma_probe(struct api *a, struct api_result *r)
{
    static const struct probe_row rows[] = {
        {"GET", "/api/files/changes", API_CAP_FEED, true},
        {"GET", "/api/files/recent?limit=1", API_CAP_RECENT, true},
        {"GET", "/api/files/trash?limit=1", API_CAP_TRASH, true},
        {"GET", "/api/user/sub-users", API_CAP_SUB_USERS, true},
        {"GET", "/api/user/storage-config", API_CAP_STORAGE_CONFIG, true},
        {"POST", "/api/files/upload/bulk", API_CAP_BULK, true},
        {"POST", "/api/files/" NOWHERE "/lock", API_CAP_LOCKS, false},
        {"GET", "/api/files/jobs/00000000-0000-4000-8000-000000000000", API_CAP_JOBS, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum err err = probe_row(a, &rows[i], r);
        if (err && r->outcome == OUT_TRANSPORT)
            err = probe_row(a, &rows[i], r);
        if (err)
            return err;
    }
    return probe_paging(a, r);
}
