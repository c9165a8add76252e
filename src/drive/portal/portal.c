/* The portal dialect: a page that takes uploads and nothing else. PUT to URL/NAME (portal), or POST of the bare bytes
 * (portal-post) or of a form with a file field (portal-form) to the URL itself. A portal lets somebody in by HTTP's own
 * headers, or by a login form that hands out cookies. */
#include "base/mem.h"
#include "base/secret.h"
#include "drive/api/dialect.h"
#include "drive/api/http_auth.h"
#include "drive/api/scheme.h"
#include "drive/target.h"
#include "drive/wire.h"

#include <stdio.h>
#include <string.h>

#define PATH_LIMIT  (16 * 1024)
#define TRIES_MAX   3 /* unsigned, signed, with a new nonce */
#define COOKIES_MAX 16

extern const struct api_dialect api_dialect_portal, api_dialect_portal_post, api_dialect_portal_form;

struct portal {
    const struct target *target;
    char *path;            /* of the URL, encoded as given, with its slash behind */
    bool slash;            /* it ended in one */
    char *user, *password; /* NULL: nobody */
    struct http_auth auth;
    char *cookies[COOKIES_MAX]; /* "name=value" */
    size_t n_cookies;
};
struct portal_call {
    const char *method, *path, *type;
    struct sv body;
    const struct content *content; /* instead of body */
    uint64_t *taken;
    const struct http_part *parts; /* instead of both */
    size_t n_parts;
    const char *header; /* one more; NULL: none */
    bool write;
};

static struct portal *portal_of(const struct api *a)
{
    return a->state;
}

/* ---- cookies ---- */

static struct sv cookie_name(const char *pair)
{
    struct sv rest = sv_of(pair), name = {"", 0};
    (void)sv_split(&rest, '=', &name);
    return name;
}

static struct sv cookie_value(const char *pair)
{
    struct sv rest = sv_of(pair), name;
    return sv_split(&rest, '=', &name) ? rest : SV("");
}

static void take_cookie(void *arg, struct sv header)
{
    struct portal *p = arg;
    struct sv pair;
    size_t at = 0;
    if (!sv_split(&header, ';', &pair) || !memchr(pair.p, '=', pair.n))
        return;
    char *text = mem_strndup(sv_trim(pair).p, sv_trim(pair).n);
    while (at < p->n_cookies && !sv_eq(cookie_name(p->cookies[at]), cookie_name(text)))
        at++;
    if (at == COOKIES_MAX) {
        mem_free(text);
        return;
    }
    secret_add(cookie_value(text));
    secret_drop(cookie_value(p->cookies[at]));
    mem_free(p->cookies[at]); /* NULL where it is a new one */
    p->cookies[at] = text;
    p->n_cookies += at == p->n_cookies;
}

static void drop_cookies(struct portal *p)
{
    for (; p->n_cookies > 0; p->n_cookies--)
        MEM_FREE(p->cookies[p->n_cookies - 1]);
}

static enum err cookie_header(const struct portal *p, struct buf *out)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < p->n_cookies && e == ERR_OK; i++)
        e = buf_appendf(out, "%s%s", i ? "; " : "Cookie: ", p->cookies[i]);
    return e;
}

/* ---- one request ---- */

static int64_t pull(void *arg, uint64_t offset, char *dst, size_t cap)
{
    const struct portal_call *c = arg;
    return content_pull(c->content, c->taken, offset, dst, cap);
}

static int drop(void *arg, const char *p, size_t n)
{
    (void)arg, (void)p, (void)n;
    return 0;
}

static MAY_YIELD enum err send(struct api *a, const struct portal_call *c, bool *signed_request, struct http_resp *resp,
                               struct errinfo *ei)
{
    struct portal *p = portal_of(a);
    struct buf auth = BUF_INIT(PATH_LIMIT), cookies = BUF_INIT(PATH_LIMIT);
    const char *headers[4] = {NULL};
    size_t n = 0;
    union {
        const struct portal_call *borrowed;
        void *arg;
    } u = {.borrowed = c};
    enum err e = cookie_header(p, &cookies);
    if (e == ERR_OK && p->user && p->password)
        e = http_auth_header(&p->auth, p->user, p->password, c->method, c->path, &auth);
    *signed_request = auth.len > 0;
    if (auth.len)
        headers[n++] = buf_cstr(&auth);
    if (cookies.len)
        headers[n++] = buf_cstr(&cookies);
    if (c->header)
        headers[n++] = c->header;
    uint64_t size = c->content ? c->content->size : 0;
    const struct http_req req = {.method = c->method,
                                 .path = c->path,
                                 .headers = headers,
                                 .body = c->body,
                                 .body_read = c->content && !c->parts ? pull : NULL,
                                 .body_arg = u.arg,
                                 .body_size = size,
                                 .content_type = c->type,
                                 .parts = c->parts,
                                 .n_parts = c->n_parts,
                                 .timeout_us = api_timeout_us(a, size),
                                 .stall_us = a->timeout_us,
                                 .sink = drop};
    if (e == ERR_OK)
        e = httpc_perform(a->peer, &req, resp, ei);
    else
        err_set(ei, e, "the credentials are too long");
    buf_done(&auth);
    buf_done(&cookies);
    return e;
}

static void verdict(const struct portal_call *c, enum err e, const struct http_resp *resp, const struct errinfo *ei,
                    struct api_result *r)
{
    struct mono first = r->sent;
    r->err = e;
    r->status = resp->status;
    r->sent = first.us ? first : resp->sent;
    r->done = resp->done;
    r->bytes_up += resp->bytes_up;
    r->bytes_down += resp->bytes_down;
    r->reason[0] = '\0';
    if (e != ERR_OK) {
        api_no_answer(r, e, c->write && resp->request_sent, ei);
        return;
    }
    r->outcome = outcome_of_status(resp->status);
    if (r->outcome != OUT_OK &&
        !wire_error((struct sv){buf_cstr(&resp->body), resp->body.len}, r->reason, sizeof(r->reason), r->code))
        snprintf(r->reason, sizeof(r->reason), "HTTP %d", resp->status);
    if (r->status == 429 || r->status == 503)
        api_wait_asked(r, resp);
}

/* Signed as the server asks for. The time is that of the whole, a first refusal included. */
static MAY_YIELD enum err perform(struct api *a, const struct portal_call *c, struct api_result *r)
{
    struct portal *p = portal_of(a);
    struct errinfo ei = {0};
    enum err e = ERR_OK;
    bool again = true;
    api_result_init(r);
    for (unsigned tries = 0; again && tries < TRIES_MAX; tries++) {
        struct http_resp resp = {0};
        bool signed_request = false;
        e = send(a, c, &signed_request, &resp, &ei);
        verdict(c, e, &resp, &ei, r);
        if (e == ERR_OK)
            http_resp_each_header(&resp, "Set-Cookie", take_cookie, p);
        again = e == ERR_OK && resp.status == 401 && p->user && http_auth_take(&p->auth, &resp, signed_request);
        http_resp_done(&resp);
    }
    return e;
}

/* ---- signing in ---- */

static void set_login(struct portal *p, const char *user, const char *password)
{
    char *u = mem_strdup(password ? user : NULL), *pass = mem_strdup(password);
    mem_free(p->user);
    mem_free(p->password);
    p->user = u;
    p->password = pass;
    p->auth = (struct http_auth){.kind = HTTP_AUTH_NONE};
    drop_cookies(p);
}

/* "PATH", or "PATH USER-FIELD PASSWORD-FIELD". */
static enum err form_body(const struct portal *p, struct sv fields, struct buf *body)
{
    struct sv user = {"username", 8}, password = {"password", 8};
    fields = sv_trim(fields);
    if (fields.n) {
        (void)sv_split(&fields, ' ', &user);
        password = sv_trim(fields);
    }
    enum err e = buf_appendf(body, SV_FMT "=", SV_ARG(user));
    if (e == ERR_OK)
        e = str_url_encode(body, sv_of(p->user), "");
    if (e == ERR_OK)
        e = buf_appendf(body, "&" SV_FMT "=", SV_ARG(password));
    return e == ERR_OK ? str_url_encode(body, sv_of(p->password), "") : e;
}

/* A form answers with a page or a redirect to one; what lets in is its cookie. */
static MAY_YIELD enum err by_form(struct api *a, const char *form, struct api_result *r)
{
    struct portal *p = portal_of(a);
    struct buf body = BUF_INIT(PATH_LIMIT);
    struct sv rest = sv_of(form), path;
    (void)sv_split(&rest, ' ', &path);
    char *at = mem_strndup(path.p, path.n);
    enum err e = form_body(p, rest, &body);
    const struct portal_call c = {
        .method = "POST", .path = at, .type = "application/x-www-form-urlencoded", .body = {buf_cstr(&body), body.len}};
    api_result_init(r);
    if (e == ERR_OK)
        e = perform(a, &c, r);
    else
        e = api_wrong(r, "the login is too long for its form");
    if (e == ERR_OK && r->status >= 300 && r->status < 400)
        r->outcome = OUT_OK;
    if (e == ERR_OK && r->outcome == OUT_OK && p->n_cookies == 0) {
        r->outcome = OUT_CLIENT;
        api_reason(r, "the login form gave no cookie");
    }
    mem_free(at);
    buf_done(&body);
    return e;
}

/* What a portal says to a GET of its upload page is its own affair, as long as it lets us in. */
static MAY_YIELD enum err by_headers(struct api *a, struct api_result *r)
{
    const struct portal_call c = {.method = "GET", .path = portal_of(a)->path};
    enum err e = perform(a, &c, r);
    if (e == ERR_OK && r->status < 500 && r->status != 401 && r->status != 403 && r->status != 429) {
        r->outcome = OUT_OK;
        r->reason[0] = r->code[0] = '\0';
    }
    return e;
}

static MAY_YIELD enum err sign_in(struct api *a, const char *email, const char *password, struct api_result *r)
{
    struct portal *p = portal_of(a);
    const char *form = p->target ? p->target->portal_login : NULL;
    set_login(p, email, password);
    enum err e = form && p->user ? by_form(a, form, r) : by_headers(a, r);
    if (e == ERR_OK && r->outcome == OUT_OK)
        api_set_tree(a, p->path);
    return e;
}

static MAY_YIELD enum err greet(struct api *a, struct errinfo *ei)
{
    const struct target *t = portal_of(a)->target;
    const struct target_login *l = &t->logins[0];
    struct api_result r;
    enum err e = sign_in(a, l->name, l->password, &r);
    if (e == ERR_CANCELLED)
        return err_set(ei, ERR_INTERRUPTED, "interrupted");
    if (e == ERR_OK && r.outcome == OUT_OK)
        return ERR_OK;
    if (r.status == 401 || r.status == 403)
        return err_set(ei, ERR_ENV, "%s does not let %s in: %d %.100s", t->url, l->name, r.status, r.reason);
    return err_set(ei, ERR_ENV, "%s does not answer as a portal: %d %.120s", t->url, r.status, r.reason);
}

/* ---- uploads ---- */

static enum err finish(const struct api_upload *u, struct arena *mem, const struct api_result *r,
                       struct drive_file *out, enum err e)
{
    if (e == ERR_OK && r->outcome == OUT_OK) {
        const char *name = arena_strdup(mem, u->name);
        *out = (struct drive_file){.id = name, .name = name, .size = (int64_t)u->content->size};
    }
    return e;
}

static MAY_YIELD enum err put(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                              struct api_result *r)
{
    const struct portal *p = portal_of(a);
    struct buf path = BUF_INIT(PATH_LIMIT);
    enum err e = buf_appendf(&path, "%s%s", p->path, p->slash ? "" : "/");
    if (e == ERR_OK)
        e = str_url_encode(&path, sv_of(u->name), "");
    const struct portal_call c = {.method = "PUT",
                                  .path = buf_cstr(&path),
                                  .type = "application/octet-stream",
                                  .content = u->content,
                                  .taken = u->taken,
                                  .write = true};
    api_result_init(r);
    if (e == ERR_OK)
        e = perform(a, &c, r);
    else
        e = api_wrong(r, "the path is too long");
    buf_done(&path);
    return finish(u, mem, r, out, e);
}

static MAY_YIELD enum err post(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                               struct api_result *r)
{
    struct buf header = BUF_INIT(1024);
    enum err e = buf_append_str(&header, "Content-Disposition: attachment; filename*=UTF-8''");
    if (e == ERR_OK)
        e = str_url_encode(&header, sv_of(u->name), "");
    const struct portal_call c = {.method = "POST",
                                  .path = portal_of(a)->path,
                                  .type = "application/octet-stream",
                                  .content = u->content,
                                  .taken = u->taken,
                                  .header = buf_cstr(&header),
                                  .write = true};
    api_result_init(r);
    if (e == ERR_OK)
        e = perform(a, &c, r);
    else
        e = api_wrong(r, "the name is too long");
    buf_done(&header);
    return finish(u, mem, r, out, e);
}

static MAY_YIELD enum err form(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                               struct api_result *r)
{
    struct portal_call c = {.method = "POST",
                            .path = portal_of(a)->path,
                            .content = u->content,
                            .taken = u->taken,
                            .n_parts = 1,
                            .write = true};
    const struct http_part part = {.name = "file",
                                   .filename = u->name,
                                   .type = "application/octet-stream",
                                   .read = pull,
                                   .arg = &c,
                                   .size = (int64_t)u->content->size};
    c.parts = &part;
    return finish(u, mem, r, out, perform(a, &c, r));
}

/* ---- life, and the tables ---- */

static enum err open_portal(struct api *a, const struct api_conf *conf, const struct http_url *url, struct errinfo *ei)
{
    struct portal *p = a->state = mem_zalloc(sizeof(*p));
    struct http_url origin = *url;
    struct buf path = BUF_INIT(PATH_LIMIT);
    char none[] = "";
    origin.path = none;
    p->target = conf->target;
    p->slash = sv_ends(sv_of(conf->base_url), SV("/")) || !*url->path;
    enum err e = buf_appendf(&path, "%s%s", url->path, p->slash ? "/" : "");
    p->path = buf_take(&path, NULL);
    char *base = scheme_url(&origin);
    if (e == ERR_OK)
        e = httpc_peer_new(&a->peer, conf->http, base, conf->source_addr, ei);
    mem_free(base);
    return e;
}

static void close_portal(struct api *a)
{
    struct portal *p = portal_of(a);
    if (!p)
        return;
    drop_cookies(p);
    mem_free(p->path);
    mem_free(p->user);
    mem_free(p->password);
    MEM_FREE(a->state);
}

static void share(struct api *to, const struct api *from)
{
    struct portal *p = portal_of(to);
    const struct portal *f = portal_of(from);
    set_login(p, f->user, f->password);
    if (f->auth.kind == HTTP_AUTH_BASIC)
        p->auth = f->auth;
    for (; p->n_cookies < f->n_cookies; p->n_cookies++)
        p->cookies[p->n_cookies] = mem_strdup(f->cookies[p->n_cookies]);
}

#define PORTAL(symbol, text, how)                                                                                      \
    const struct api_dialect symbol = {.name = text,                                                                   \
                                       .caps = 0,                                                                      \
                                       .open = open_portal,                                                            \
                                       .close = close_portal,                                                          \
                                       .share = share,                                                                 \
                                       .greet = greet,                                                                 \
                                       .sign_in = sign_in,                                                             \
                                       .upload = how}
PORTAL(api_dialect_portal, "portal", put);
PORTAL(api_dialect_portal_post, "portal-post", post);
PORTAL(api_dialect_portal_form, "portal-form", form);
