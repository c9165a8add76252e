/* The webdav dialect's one way to make a request, and its table. What servers answer in different ways is learnt here:
 * how they want to be signed in to, that a folder's path ends in a slash, that a 207 may hold a failure. */
#include "drive/webdav/webdav.h"
#include "base/mem.h"
#include "drive/webdav/cloud.h"
#include "drive/webdav/feed.h"
#include "drive/webdav/lock.h"
#include "drive/webdav/read.h"
#include "drive/webdav/session.h"
#include "drive/webdav/trash.h"
#include "drive/webdav/write.h"
#include "drive/wire.h"
#include <stdio.h>
#include <string.h>

#define TRIES_MAX  4 /* without Authorization, with it, with a new nonce, with a slash */
#define HEADER_MAX 12
#define IDLE_MAX_S 3 /* common servers close a connection after 5 s */

/* ---- paths ---- */

void dav_missing(struct api_result *r)
{
    api_result_init(r);
    r->outcome = OUT_CLIENT;
    r->status = 404;
    r->sent = r->done = mono_now();
    snprintf(r->code, sizeof r->code, "GONE");
    snprintf(r->reason, sizeof r->reason, "it is known to be gone");
}

/* root, then each name encoded. A name beyond the limit is cut: the server then knows no such path. */
static enum err append_path(const struct api *a, struct sv path, struct buf *out)
{
    enum err err = buf_append_str(out, dav_of(a)->root);
    struct sv name;
    while (!err && path.n && sv_split(&path, '/', &name)) {
        err = buf_append_char(out, '/');
        if (!err)
            err = str_url_encode(out, name, "");
    }
    return err;
}

bool dav_path(struct api *a, const char *id, bool folder, struct buf *path, struct api_result *r)
{
    struct buf plain = BUF_INIT(DAV_PATH_MAX);
    buf_init(path, DAV_PATH_MAX);
    enum err err = a->names && dav_of(a)->root ? names_path(a->names, id, &plain) : ERR_NOTFOUND;
    if (!err)
        err = append_path(a, (struct sv){buf_cstr(&plain), plain.len}, path);
    if (!err && folder)
        err = buf_append_char(path, '/');
    buf_done(&plain);
    if (!err)
        return true;
    buf_done(path);
    dav_missing(r);
    return false;
}

bool dav_destination(struct api *a, const char *parent, const char *name, bool folder, struct buf *header,
                     struct api_result *r)
{
    struct buf path;
    buf_init(header, DAV_PATH_MAX + 300);
    if (!dav_path(a, parent, true, &path, r))
        return false;
    enum err err = buf_appendf(header, "Destination: %s%s", dav_of(a)->origin, buf_cstr(&path));
    if (!err)
        err = str_url_encode(header, sv_of(name), "");
    if (!err && folder)
        err = buf_append_char(header, '/');
    (void)err; /* cut: as above */
    buf_done(&path);
    return true;
}

bool dav_etag(const char *etag, char *dst, size_t n, bool *weak)
{
    struct sv opaque = sv_of(etag);
    *weak = sv_starts(opaque, SV("W/"));
    if (*weak)
        opaque = (struct sv){opaque.p + 2, opaque.n - 2};
    bool fine = wire_etag(opaque, &opaque) && opaque.n < n;
    snprintf(dst, n, SV_FMT, fine ? (int)opaque.n : 0, fine ? opaque.p : "");
    return fine;
}

/* ---- the verdict ---- */

bool dav_is_name_taken(const struct api_result *r)
{
    return strcmp(r->code, "EXISTS") == 0;
}

static void refused(const struct dav_call *c, const struct http_resp *resp, struct api_result *r)
{
    char text[200];
    if (dav_error_text((struct sv){buf_cstr(&resp->body), resp->body.len}, text, sizeof text))
        api_reason(r, text);
    else
        snprintf(r->reason, sizeof r->reason, "HTTP %d without a reason", resp->status);
    if (resp->status == 501 || (resp->status == 405 && strcmp(c->method, "MKCOL") != 0))
        snprintf(r->code, sizeof r->code, "%s", API_CODE_ABSENT);
    else if (resp->status == 423 || resp->status == 424)
        snprintf(r->code, sizeof r->code, "LOCKED");
    if (resp->status == 424) { /* Failed Dependency: something in the folder is locked */
        r->outcome = OUT_CONFLICT;
        snprintf(r->reason, sizeof r->reason, "something in it is locked");
    }
    if (resp->status == 429 || resp->status == 503)
        api_wait_asked(r, resp);
}

static bool is_redirect(int status)
{
    return status >= 300 && status < 400 && status != 304;
}

/* ---- a 207's items ---- */

struct multi {
    const struct dav_call *call;
    const struct http_resp *resp;
    struct dav_multistatus *parser; /* NULL: no 207 so far */
    int failed;                     /* the first failure's status */
    size_t items, most;
    char href[160];
};

static bool on_item(void *arg, const struct dav_item *item)
{
    struct multi *m = arg;
    if (m->items++ > m->most) /* the folder itself is one of them */
        return false;
    if (m->call->item)
        return m->call->item(m->call->arg, item);
    if (item->status >= 400 && !m->failed) {
        m->failed = item->status;
        snprintf(m->href, sizeof m->href, "%s", item->href);
    }
    return true;
}

static int on_body(void *arg, const char *p, size_t n)
{
    struct multi *m = arg;
    if (m->resp->status != 207)
        return m->call->sink ? m->call->sink(m->call->arg, p, n) : 0;
    if (!m->parser)
        m->parser = dav_multistatus_new(on_item, m);
    return dav_multistatus_feed(m->parser, p, n) ? 1 : 0;
}

static enum err judge_multi(struct multi *m, struct api_result *r)
{
    if (!m->parser || dav_multistatus_end(m->parser))
        return api_wrong(r, "the answer is not the multi-status that was asked for");
    if (!m->failed)
        return ERR_OK;
    char text[260];
    r->status = m->failed;
    r->outcome = outcome_of_status(m->failed);
    snprintf(text, sizeof text, "%d for %s in a multi-status answer", m->failed, m->href);
    api_reason(r, text);
    return ERR_OK;
}

/* ---- one request ---- */

static int64_t pull(void *arg, uint64_t offset, char *dst, size_t cap)
{
    const struct dav_call *c = arg;
    return content_pull(c->content, c->taken, offset, dst, cap);
}

/* "/a/b" redirected to "/a/b/": it is a folder. */
static bool wants_slash(const struct http_resp *resp, const struct buf *path)
{
    struct sv to = http_resp_header(resp, "Location"), own = {buf_cstr(path), path->len};
    if (!is_redirect(resp->status) || to.n == 0 || to.p[to.n - 1] != '/' || sv_ends(own, SV("/")))
        return false;
    to.n--;
    return sv_ends(to, own);
}

/* The Destination of a folder gets a slash as its source did. */
static void add_slash(struct buf *path, struct buf *destination)
{
    enum err err = buf_append_char(path, '/');
    if (!err && destination->len && !sv_ends((struct sv){destination->data, destination->len}, SV("/")))
        err = buf_append_char(destination, '/');
    (void)err; /* at the limit: the answer stays what it was */
}

struct attempt {
    struct api *a;
    const struct dav_call *c;
    struct multi multi;
    struct http_resp *resp;
    struct buf destination; /* the call's own header, which may grow */
    bool signed_request;
};

static MAY_YIELD enum err send(struct attempt *t, struct errinfo *ei)
{
    const struct dav_call *c = t->c;
    struct dav *d = dav_of(t->a);
    const char *headers[HEADER_MAX] = {NULL};
    struct buf auth = BUF_INIT(8192);
    size_t n = 0;
    enum err err = ERR_OK;
    union {
        const struct dav_call *borrowed;
        void *arg;
    } u = {.borrowed = c};
    for (; c->headers[n]; n++)
        headers[n] = sv_starts(sv_of(c->headers[n]), SV("Destination:")) ? buf_cstr(&t->destination) : c->headers[n];
    if (d->user && d->password)
        err = http_auth_header(&d->auth, d->user, d->password, c->method, buf_cstr(c->path), &auth);
    t->signed_request = auth.len > 0;
    if (auth.len)
        headers[n++] = buf_cstr(&auth);
    struct http_req req = {.method = c->method,
                           .path = buf_cstr(c->path),
                           .headers = headers,
                           .body = c->xml ? sv_of(c->xml) : (struct sv){"", 0},
                           .body_read = c->content ? pull : NULL,
                           .body_arg = u.arg,
                           .body_size = c->content ? c->content->size : 0,
                           .content_type = c->xml ? "application/xml; charset=utf-8" : "application/octet-stream",
                           .timeout_us = api_timeout_us(t->a, c->transfer_bytes),
                           .stall_us = t->a->timeout_us,
                           .idle_max_s = c->write ? IDLE_MAX_S : 0,
                           .sink = on_body,
                           .sink_arg = &t->multi};
    if (!err)
        err = httpc_perform(t->a->peer, &req, t->resp, ei);
    else
        err_set(ei, err, "the credentials are too long");
    buf_done(&auth);
    return err;
}

/* True: the same request again, better. */
static bool better(struct attempt *t)
{
    const struct http_resp *resp = t->resp;
    if (resp->status == 401)
        return dav_of(t->a)->user && http_auth_take(&dav_of(t->a)->auth, resp, t->signed_request);
    if (!wants_slash(resp, t->c->path))
        return false;
    add_slash(t->c->path, &t->destination);
    return true;
}

static void verdict(struct attempt *t, enum err err, const struct errinfo *ei, struct api_result *r)
{
    const struct http_resp *resp = t->resp;
    struct mono first = r->sent;
    r->err = err;
    r->status = resp->status;
    r->sent = first.us ? first : resp->sent;
    r->done = resp->done;
    r->bytes_up += resp->bytes_up;
    r->bytes_down += resp->bytes_down;
    if (err && t->multi.items > t->multi.most + 1) {
        str_format(r->reason, sizeof r->reason, API_LISTING_ENDLESS, t->multi.most);
        r->outcome = OUT_WRONG;
        return;
    }
    if (err) {
        api_no_answer(r, err, t->c->write && resp->request_sent, ei);
        return;
    }
    r->outcome = outcome_of_status(resp->status);
    if (is_redirect(resp->status)) {
        struct sv to = http_resp_header(resp, "Location");
        char text[260];
        r->outcome = OUT_CLIENT;
        snprintf(text, sizeof text, "the server redirects to %.*s: set TMA_URL to it", to.n > 180 ? 180 : (int)to.n,
                 to.n ? to.p : "");
        api_reason(r, text);
    } else if (r->outcome != OUT_OK) {
        refused(t->c, resp, r);
    }
}

enum err dav_perform(struct api *a, const struct dav_call *c, struct api_result *r)
{
    struct http_resp own = {0};
    struct attempt t = {.a = a, .c = c, .resp = c->resp ? c->resp : &own, .destination = BUF_INIT(DAV_PATH_MAX + 400)};
    struct errinfo ei = {0};
    enum err err = ERR_OK;
    struct mono sent = mono_now();
    api_result_init(r);
    t.multi = (struct multi){.call = c, .resp = t.resp, .most = a->listing_most};
    for (size_t i = 0; c->headers[i] && !err; i++)
        if (sv_starts(sv_of(c->headers[i]), SV("Destination:")))
            err = buf_append_str(&t.destination, c->headers[i]);
    for (unsigned tries = 1;; tries++) {
        err = send(&t, &ei);
        verdict(&t, err, &ei, r);
        if (err || tries == TRIES_MAX || !better(&t))
            break;
        http_resp_done(t.resp);
        dav_multistatus_free(&t.multi.parser);
        t.multi.items = 0;
        r->reason[0] = r->code[0] = '\0';
    }
    if (!err && t.resp->status == 207)
        err = judge_multi(&t.multi, r);
    if (!err && c->write && r->outcome == OUT_OK && !strstr(c->method, "LOCK"))
        dav_feed_wrote(a, sent);
    dav_multistatus_free(&t.multi.parser);
    buf_done(&t.destination);
    buf_done(c->path);
    http_resp_done(&own);
    return err;
}

#define AT_BEST (API_CAP_LOCKS | API_CAP_VERSIONS | API_CAP_RANGES | API_CAP_STORAGE | DAV_CLOUD_CAPS)

const struct api_dialect api_dialect_webdav = {
    .name = "webdav",
    .caps = AT_BEST,
    .open = webdav_open,
    .close = webdav_close,
    .share = webdav_share,
    .greet = webdav_greet,
    .claim = webdav_claim,
    .unclaim = webdav_unclaim,
    .probe = webdav_probe,
    .sign_in = webdav_sign_in,
    .sign_up = webdav_sign_up,
    .signup_status = webdav_signup_status,
    .accounts_made = webdav_accounts_made,
    .account_remove = webdav_account_remove,
    .storage = webdav_storage,
    .list = webdav_list,
    .info = webdav_info,
    .folder_create = webdav_folder_create,
    .upload = webdav_upload,
    .replace = webdav_replace,
    .download = webdav_download,
    .lock = webdav_lock,
    .unlock = webdav_unlock,
    .rename = webdav_rename,
    .move = webdav_move,
    .copy = webdav_copy,
    .trash = webdav_trash,
    .changes = webdav_changes,
    .trash_list = webdav_trash_list,
    .restore = webdav_restore,
    .purge = webdav_purge,
};
