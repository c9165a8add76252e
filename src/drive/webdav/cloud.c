/* What Nextcloud and ownCloud add: another path for each user's files, and calls (OCS) by which an administrator makes
 * accounts. They take Basic sign-in with OCS-APIRequest, so that no request token of a browser's session is needed. */
#include "drive/webdav/cloud.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/mem.h"
#include "drive/target.h"
#include "drive/webdav/session.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ANSWER_MAX (1 << 20)
#define FILES_PATH "/remote.php/dav/files/"
#define SUM_KIND   "SHA1:" /* ownCloud refuses what it does not know; Nextcloud keeps what it is given */
#define TRASH_PATH "/remote.php/dav/trashbin/"
/* They write a file under its name and ".ocTransferId" with a number of up to 10 digits and ".part" first, in a file
 * system that takes 255 bytes; a longer name ends with 500 (seen on Nextcloud 24). */
#define CLOUD_NAME_MAX (255 - 13 - 10 - 5)

static int keep(void *arg, const char *p, size_t n)
{
    return buf_append(arg, p, n) ? 1 : 0;
}

/* A JSON answer of 2xx; NULL else. */
static MAY_YIELD struct json *ask_json(struct api *a, struct buf *path, const char *method, const char *form,
                                       struct api_result *r, enum err *err)
{
    struct buf text = BUF_INIT(ANSWER_MAX);
    struct json *j = NULL;
    const struct dav_call c = {.method = method,
                               .path = path,
                               .headers = {"OCS-APIRequest: true", "Accept: application/json",
                                           form ? "Content-Type: application/x-www-form-urlencoded" : NULL},
                               .xml = form,
                               .write = strcmp(method, "GET") != 0,
                               .sink = keep,
                               .arg = &text};
    *err = dav_perform(a, &c, r);
    if (*err || r->outcome != OUT_OK || json_parse(buf_cstr(&text), text.len, &j, NULL))
        j = NULL;
    buf_done(&text);
    return j;
}

static char *users_path(const char *before, const char *kind, const char *user)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    enum err err = buf_append_str(&path, before);
    if (!err && user)
        err = buf_append_str(&path, kind);
    if (!err && user)
        err = str_url_encode(&path, sv_of(user), "");
    (void)err; /* of a URL, which is shorter */
    return buf_take(&path, NULL);
}

static void set_files(struct api *a, const char *before, const char *user)
{
    struct dav *d = dav_of(a);
    mem_free(d->files);
    mem_free(d->trash);
    d->files = users_path(before, FILES_PATH, user);
    d->trash = user ? users_path(before, TRASH_PATH, user) : NULL;
    d->own_cloud = user != NULL;
    a->name_max = d->own_cloud ? CLOUD_NAME_MAX : 0;
}

/* The server's own path: what stands before /remote.php, or the whole. */
static char *cloud_base(const struct dav *d)
{
    const char *inner = strstr(d->prefix, "/remote.php");
    return inner ? mem_strndup(d->prefix, (size_t)(inner - d->prefix)) : mem_strdup(d->prefix);
}

/* status.php is answered without a sign-in, by both of them and by nobody else. */
static MAY_YIELD enum err is_cloud(struct api *a, const char *base, bool *cloud, struct api_result *r)
{
    struct dav *d = dav_of(a);
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    char *user = d->user;
    enum err err = buf_appendf(&path, "%s/status.php", base);
    d->user = NULL;
    struct json *j = err ? NULL : ask_json(a, &path, "GET", NULL, r, &err);
    d->user = user;
    *cloud = j && json_get(j, "installed") && json_get(j, "versionstring");
    json_free(&j);
    return err;
}

enum err dav_find_files(struct api *a, struct api_result *r)
{
    struct dav *d = dav_of(a);
    char *base = cloud_base(d);
    bool cloud = strstr(d->prefix, "/remote.php") != NULL;
    enum err err = cloud ? ERR_OK : is_cloud(a, base, &cloud, r);
    if (!err && cloud && !d->user) {
        api_result_init(r);
        r->outcome = OUT_CLIENT;
        r->status = 401;
        snprintf(r->reason, sizeof r->reason, "it takes a user and a password");
    }
    if (!err)
        set_files(a, cloud ? base : d->prefix, cloud ? (d->user ? d->user : "") : NULL);
    mem_free(base);
    return err;
}

/* ---- accounts ---- */

/* Becomes the administrator, whose login the target gives, for one call. account NULL: about all of them. */
static MAY_YIELD struct json *as_admin(struct api *a, const char *method, const char *account, const char *form,
                                       struct api_result *r, enum err *err)
{
    struct dav *d = dav_of(a);
    const struct target_login *admin = &d->target->logins[0];
    char *user = d->user, *password = d->password, *base = cloud_base(d);
    struct http_auth auth = d->auth;
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    d->user = mem_strdup(admin->name);
    d->password = mem_strdup(admin->password);
    d->auth = (struct http_auth){.kind = HTTP_AUTH_BASIC};
    *err = buf_appendf(&path, "%s/ocs/v2.php/cloud/users%s", base, account ? "/" : "");
    if (!*err)
        *err = str_url_encode(&path, sv_of(account), "");
    if (!*err)
        *err = buf_append_str(&path, "?format=json");
    struct json *j = *err ? NULL : ask_json(a, &path, method, form, r, err);
    mem_free(d->user);
    mem_free(d->password);
    mem_free(base);
    d->user = user;
    d->password = password;
    d->auth = auth;
    return j;
}

static bool has_admin(const struct api *a)
{
    const struct target *t = dav_of(a)->target;
    return t && t->n_logins && t->logins[0].password;
}

enum err webdav_signup_status(struct api *a, bool *enabled, struct api_result *r)
{
    *enabled = has_admin(a);
    return has_admin(a) ? (api_result_init(r), ERR_OK) : api_absent(r, "sign-up");
}

/* OCS answers 200 to much that did not work out. */
static void judge_ocs(const struct json *j, struct api_result *r)
{
    const struct json *meta = json_get(json_get(j, "ocs"), "meta");
    const char *message = json_str(json_get(meta, "message"));
    int64_t code = 0;
    if (r->outcome != OUT_OK || !json_i64(json_get(meta, "statuscode"), &code) || code == 200 || code == 100)
        return;
    r->status = code == 102 ? 409 : 403;
    r->outcome = outcome_of_status(r->status);
    api_reason(r, message ? message : "the account was not made or removed");
}

enum err webdav_sign_up(struct api *a, const char *email, const char *password, const char *name, struct api_result *r)
{
    struct buf form = BUF_INIT(4096);
    (void)name;
    if (!has_admin(a))
        return api_absent(r, "sign-up");
    enum err err = buf_append_str(&form, "userid=");
    if (!err)
        err = str_url_encode(&form, sv_of(email), "");
    if (!err)
        err = buf_append_str(&form, "&password=");
    if (!err)
        err = str_url_encode(&form, sv_of(password), "");
    struct json *j = err ? NULL : as_admin(a, "POST", NULL, buf_cstr(&form), r, &err);
    if (!err)
        judge_ocs(j, r);
    json_free(&j);
    buf_done(&form);
    return err || r->outcome != OUT_OK ? err : webdav_sign_in(a, email, password, r);
}

static bool is_made(const char *id)
{
    return id && sv_ends(sv_of(id), SV(DRIVE_EMAIL_DOMAIN));
}

enum err webdav_accounts_made(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r)
{
    enum err err = ERR_OK;
    *out = (struct api_users){0};
    if (!has_admin(a))
        return api_absent(r, "accounts of ours");
    struct json *j = as_admin(a, "GET", NULL, NULL, r, &err);
    const struct json *users = json_get(json_get(json_get(j, "ocs"), "data"), "users");
    for (const struct json *u = json_first(users); u; u = json_next(u))
        out->n += is_made(json_str(u));
    out->items = arena_alloc(mem, (out->n + 1) * sizeof *out->items);
    out->n = 0;
    for (const struct json *u = json_first(users); u; u = json_next(u)) {
        const char *id = json_str(u);
        if (is_made(id))
            out->items[out->n++] = (struct api_user){.id = arena_strdup(mem, id), .email = arena_strdup(mem, id)};
    }
    json_free(&j);
    return err;
}

enum err webdav_account_remove(struct api *a, const char *email, struct api_result *r)
{
    enum err err = ERR_OK;
    if (!has_admin(a) || !is_made(email))
        return api_absent(r, "account of ours by that name");
    struct json *j = as_admin(a, "DELETE", email, NULL, r, &err);
    if (!err)
        judge_ocs(j, r);
    json_free(&j);
    return err;
}

enum err dav_cloud_users(struct api *a, bool *admin, bool *strangers, struct api_result *r)
{
    enum err err = ERR_OK;
    *admin = *strangers = false;
    if (!has_admin(a))
        return ERR_OK;
    struct json *j = as_admin(a, "GET", NULL, NULL, r, &err);
    const struct json *users = json_get(json_get(json_get(j, "ocs"), "data"), "users");
    *admin = json_is_array(users);
    for (const struct json *u = json_first(users); u; u = json_next(u)) {
        const char *id = json_str(u);
        *strangers = *strangers || !id || (!is_made(id) && strcmp(id, dav_of(a)->target->logins[0].name) != 0);
    }
    json_free(&j);
    return err;
}

/* ---- checksums ---- */

static const char sum_name[] = "OC-Checksum: " SUM_KIND;

const char *dav_checksum_header(const struct api *a, const struct content *c, char dst[DAV_CHECKSUM_MAX])
{
    unsigned char sum[DIGEST_SHA1_LEN];
    char hex[2 * DIGEST_SHA1_LEN + 1];
    if (!dav_of(a)->own_cloud)
        return NULL;
    content_sha1(c, sum);
    digest_hex(hex, sum, sizeof sum);
    snprintf(dst, DAV_CHECKSUM_MAX, "%s%s", sum_name, hex);
    return dst;
}

bool dav_checksum_fits(const char *told, const char *header)
{
    const char *theirs = strcasestr(told, SUM_KIND), *ours = header ? header + strlen(sum_name) : NULL;
    return !theirs || !ours || strncasecmp(theirs + strlen(SUM_KIND), ours, 2 * (size_t)DIGEST_SHA1_LEN) == 0;
}
