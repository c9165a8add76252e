/* Whom a client of a WebDAV server is and where it works: the URL taken apart, the sign-in, the one folder of ours. */
#include "drive/webdav/session.h"
#include "base/mem.h"
#include "base/secret.h"
#include "drive/api/scheme.h"
#include "drive/target.h"
#include "drive/webdav/cloud.h"
#include "drive/webdav/feed.h"
#include "drive/webdav/lock.h"
#include "drive/webdav/read.h"
#include "drive/webdav/trash.h"
#include <stdio.h>
#include <string.h>

#define GREET_TIMEOUT_US (10 * US_PER_S)
#define MARKER_MAX       512

/* ---- life ---- */

enum err webdav_open(struct api *a, const struct api_conf *conf, const struct http_url *url, struct errinfo *ei)
{
    struct dav *d = mem_zalloc(sizeof *d);
    struct http_url origin = *url;
    char none[] = "";
    origin.path = none;
    a->state = d;
    d->loop = conf->loop;
    d->target = conf->target;
    d->origin = scheme_url(&origin);
    d->prefix = mem_strdup(url->path);
    if (d->target && d->target->logins_made)
        a->caps |= API_CAP_SIGN_UP;
    enum err err = httpc_peer_new(&a->peer, conf->http, d->origin, conf->source_addr, ei);
    if (!err) /* a compressed body has another tag, with which no condition holds */
        httpc_peer_header(a->peer, "Accept-Encoding", "identity");
    return err;
}

void webdav_close(struct api *a)
{
    struct dav *d = dav_of(a);
    if (!d)
        return;
    mem_free(d->origin);
    mem_free(d->prefix);
    mem_free(d->files);
    mem_free(d->root);
    mem_free(d->trash);
    dav_feed_free(&d->feed);
    mem_free(d->user);
    mem_free(d->password);
    mem_free(d);
    a->state = NULL;
}

static void dav_set_login(struct dav *d, const char *user, const char *password)
{
    char *u = mem_strdup(password ? user : NULL), *p = mem_strdup(password);
    if (p)
        secret_add_basic(sv_of(user), sv_of(password));
    mem_free(d->user);
    mem_free(d->password);
    d->user = u;
    d->password = p;
    d->auth = (struct http_auth){0};
}

static void set_text(char **to, const char *text)
{
    char *copy = mem_strdup(text);
    mem_free(*to);
    *to = copy;
}

/* Its own connections and nonce counter, the other's login and place. */
void webdav_share(struct api *to, const struct api *from)
{
    struct dav *d = dav_of(to);
    const struct dav *f = dav_of(from);
    dav_set_login(d, f->user, f->password);
    if (f->auth.kind == HTTP_AUTH_BASIC)
        d->auth = f->auth;
    set_text(&d->files, f->files);
    set_text(&d->root, f->root);
    set_text(&d->trash, f->trash);
    d->own_cloud = f->own_cloud;
}

/* ---- signing in ---- */

static void set_root(struct api *a)
{
    struct dav *d = dav_of(a);
    struct buf root = BUF_INIT(DAV_PATH_MAX), tree = BUF_INIT(2 * DAV_PATH_MAX);
    enum err err = buf_appendf(&root, "%s/" API_PLACE, d->files);
    if (!err)
        err = buf_appendf(&tree, "%s%s", d->origin, buf_cstr(&root));
    (void)err; /* out of a URL, which is shorter */
    set_text(&d->root, buf_cstr(&root));
    api_set_tree(a, buf_cstr(&tree));
    buf_done(&root);
    buf_done(&tree);
}

struct dav_classes {
    bool any, locks;
};

static void take_classes(void *arg, struct sv value)
{
    struct dav_classes *seen = arg;
    struct sv one;
    while (sv_split(&value, ',', &one)) {
        seen->any = true;
        seen->locks = seen->locks || sv_eq_cstr(sv_trim(one), "2");
    }
}

/* Class 2 of the DAV header is locking. A server that does not say is believed to have it until a call is refused. */
static MAY_YIELD void ask_options(struct api *a)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    struct http_resp resp = {0};
    struct api_result r;
    enum err err = buf_appendf(&path, "%s/", dav_of(a)->files);
    if (!err)
        err = dav_perform(a, &(struct dav_call){.method = "OPTIONS", .path = &path, .resp = &resp}, &r);
    struct dav_classes seen = {0};
    http_resp_each_header(&resp, "DAV", take_classes, &seen);
    if (!err && r.outcome == OUT_OK && seen.any && !seen.locks)
        a->caps &= ~(unsigned)API_CAP_LOCKS;
    http_resp_done(&resp);
    buf_done(&path);
}

enum err webdav_sign_in(struct api *a, const char *email, const char *password, struct api_result *r)
{
    struct dav *d = dav_of(a);
    struct dav_look look;
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    dav_set_login(d, email, password);
    enum err err = dav_find_files(a, r);
    if (err)
        return err;
    if (!d->own_cloud)
        a->caps &= ~(unsigned)DAV_CLOUD_CAPS;
    err = buf_appendf(&path, "%s/", d->files);
    if (!err)
        err = dav_look(a, &path, &look, r);
    if (!err && r->outcome == OUT_OK) {
        set_root(a);
        ask_options(a);
    }
    buf_done(&path);
    return err;
}

/* ---- the place ---- */

static MAY_YIELD enum err look_at(struct api *a, const char *name, struct dav_look *look, struct api_result *r)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    enum err err = buf_appendf(&path, "%s/%s", dav_of(a)->root, name);
    if (!err)
        err = dav_look(a, &path, look, r);
    buf_done(&path);
    return err;
}

static int keep(void *arg, const char *p, size_t n)
{
    struct buf *text = arg;
    size_t room = MARKER_MAX - text->len;
    return buf_append(text, p, n < room ? n : room) ? 1 : 0;
}

/* *ours: the marker is there and says what ours does. */
static MAY_YIELD enum err read_marker(struct api *a, bool *ours, struct api_result *r)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX), text = BUF_INIT(MARKER_MAX);
    enum err err = buf_appendf(&path, "%s/" API_MARKER, dav_of(a)->root);
    *ours = false;
    if (!err)
        err = dav_perform(a, &(struct dav_call){.method = "GET", .path = &path, .sink = keep, .arg = &text}, r);
    if (!err && r->outcome == OUT_OK)
        *ours = sv_starts((struct sv){buf_cstr(&text), text.len}, SV("Made by drivesim"));
    buf_done(&text);
    return err;
}

enum place { PLACE_NONE, PLACE_OURS, PLACE_FOREIGN };

static MAY_YIELD enum err find_place(struct api *a, enum place *out, struct api_result *r)
{
    struct dav_look look;
    bool ours = false;
    enum err err = look_at(a, "", &look, r);
    *out = PLACE_NONE;
    if (err || r->status == 404 || r->outcome != OUT_OK) {
        if (!err && r->status == 404)
            r->outcome = OUT_OK;
        return err;
    }
    err = read_marker(a, &ours, r);
    *out = ours ? PLACE_OURS : PLACE_FOREIGN;
    if (!err && r->status == 404)
        r->outcome = OUT_OK;
    return err;
}

static void foreign_place(struct api *a, char *dst, size_t n)
{
    snprintf(dst, n, "%.90s%.50s is somebody else's, since it holds no " API_MARKER, dav_of(a)->origin,
             dav_of(a)->root);
}

static MAY_YIELD enum err make_place(struct api *a, struct api_result *r)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX), marker = BUF_INIT(DAV_PATH_MAX);
    enum err err = buf_appendf(&path, "%s/", dav_of(a)->root);
    if (!err)
        err = buf_appendf(&marker, "%s/" API_MARKER, dav_of(a)->root);
    if (!err)
        err = dav_perform(a, &(struct dav_call){.method = "MKCOL", .path = &path, .write = true}, r);
    if (!err && (r->outcome == OUT_OK || r->status == 405)) { /* 405: another seeder was faster */
        const struct dav_call put = {.method = "PUT",
                                     .path = &marker,
                                     .headers = {"Content-Type: text/plain; charset=utf-8"},
                                     .xml = API_MARKER_TEXT,
                                     .write = true};
        err = dav_perform(a, &put, r);
    }
    buf_done(&path);
    buf_done(&marker);
    return err;
}

enum err webdav_claim(struct api *a, struct api_result *r)
{
    enum place place;
    enum err err = find_place(a, &place, r);
    if (err || r->outcome != OUT_OK)
        return err;
    if (place == PLACE_NONE)
        return make_place(a, r);
    if (place == PLACE_FOREIGN) {
        r->outcome = OUT_REFUSED;
        r->status = 403;
        foreign_place(a, r->reason, sizeof r->reason);
    }
    return ERR_OK;
}

static MAY_YIELD enum err remove_place(struct api *a, struct api_result *r)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    enum err err = buf_appendf(&path, "%s/", dav_of(a)->root);
    if (!err)
        err = dav_perform(a, &(struct dav_call){.method = "DELETE", .path = &path, .write = true}, r);
    buf_done(&path);
    return err;
}

enum err webdav_unclaim(struct api *a, struct api_locks_left *left, struct api_result *r)
{
    enum place place;
    enum err err = find_place(a, &place, r);
    if (err || r->outcome != OUT_OK || place == PLACE_NONE)
        return err;
    if (place == PLACE_FOREIGN) {
        r->outcome = OUT_REFUSED;
        r->status = 403;
        foreign_place(a, r->reason, sizeof r->reason);
        return ERR_OK;
    }
    err = remove_place(a, r);
    if (!err && strcmp(r->code, "LOCKED") == 0) {
        dav_locks_release(a, left);
        if (left->released)
            err = remove_place(a, r);
    }
    if (!err && r->outcome == OUT_OK && a->caps & API_CAP_TRASH)
        err = dav_trash_empty(a, r);
    return err;
}

/* ---- is it one, and ours to use? ---- */

static const char *shown_url(const struct api *a)
{
    const struct dav *d = dav_of(a);
    return d->target && d->target->url ? d->target->url : d->origin;
}

static enum err no_answer(struct api *a, const struct api_result *r, struct errinfo *ei)
{
    const char *url = shown_url(a);
    switch (r->err) {
    case ERR_CONNECT:
        return err_set(ei, ERR_ENV, "nothing is listening at %s: start the server", url);
    case ERR_TLS:
        return err_set(ei, ERR_ENV, "no trusted TLS connection: give --cafile FILE, or --insecure (%s)", r->reason);
    case ERR_TIMEOUT:
        return err_set(ei, ERR_ENV, "%s accepts connections but did not answer within 10 s", url);
    case ERR_CANCELLED:
        return err_set(ei, ERR_INTERRUPTED, "interrupted");
    case ERR_LOCAL:
        return err_set(ei, ERR_ENV, "%s", r->reason);
    default:
        return err_set(ei, ERR_ENV, "%s does not answer as a WebDAV server: %s", url, r->reason);
    }
}

static enum err not_welcome(struct api *a, const char *user, const struct api_result *r, struct errinfo *ei)
{
    const char *url = shown_url(a);
    if (r->status == 401)
        return err_set(ei, ERR_ENV,
                       "%s does not let %s in: give user and password in TMA_URL=webdav://USER:PASSWORD@…,"
                       " or --users FILE",
                       url, user);
    if (r->status == 404)
        return err_set(ei, ERR_ENV, "%s is no folder on that server: check the path", url);
    return err_set(ei, ERR_ENV, "%s does not answer as a WebDAV server: %d %s", url, r->status, r->reason);
}

/* An administrator of a cloud can make the accounts; of a server with other users' files we stay away. */
static MAY_YIELD enum err judge_cloud(struct api *a, struct errinfo *ei)
{
    struct api_result r;
    bool admin = false, strangers = false;
    if (!dav_of(a)->own_cloud || dav_of(a)->target->n_logins != 1)
        return ERR_OK;
    if (dav_cloud_users(a, &admin, &strangers, &r) || !admin)
        return ERR_OK;
    if (strangers)
        return err_set(ei, ERR_SAFETY,
                       "%s holds other users, outside " DRIVE_EMAIL_DOMAIN ": it is no throwaway server", shown_url(a));
    a->caps |= API_CAP_SIGN_UP;
    return ERR_OK;
}

enum err webdav_greet(struct api *a, struct errinfo *ei)
{
    const struct target *t = dav_of(a)->target;
    const struct target_login *l = t && t->n_logins ? &t->logins[0] : NULL;
    const char *user = l ? l->name : "anonymous";
    char text[300];
    struct api_result r;
    enum place place = PLACE_NONE;
    a->timeout_us = GREET_TIMEOUT_US;
    if (webdav_sign_in(a, user, l ? l->password : NULL, &r))
        return no_answer(a, &r, ei);
    if (r.outcome != OUT_OK)
        return not_welcome(a, user, &r, ei);
    if (find_place(a, &place, &r))
        return no_answer(a, &r, ei);
    if (place == PLACE_FOREIGN) {
        foreign_place(a, text, sizeof text);
        return err_set(ei, ERR_SAFETY, "%s", text);
    }
    return judge_cloud(a, ei);
}
