/* Request handles: pooled, and set up for one request after the other. A handle keeps most of its options from one
 * request to the next; only what differs is set (a reset costs 7 %: measured.md 3). */
#include "net/httpc_xfer.h"

#include <string.h>
#include <strings.h>

enum {
    POOL_MAX = 128,         /* idle handles kept, about 6 KiB each */
    INLINE_BODY = 32 << 10, /* up to here libcurl may send head and body at once, from the caller's memory */
    OWN_MAX = 64,           /* headers of one request */
};
#define IDLE_MAX_S 118L /* libcurl's own */

/* ---- the pool of handles ---- */

static struct request_handle *handle_new(struct httpc *h)
{
    struct request_handle *hd = mem_zalloc(sizeof *hd);
    struct transfer *t = &hd->t;
    t->h = h;
    CURL *e = t->easy = httpc_easy_new(t);
    if (e == NULL) {
        mem_free(hd);
        return NULL;
    }
    httpc_callbacks_set(hd);
    return hd;
}

static void handle_free(struct request_handle *hd)
{
    curl_easy_cleanup(hd->t.easy);
    mem_free(hd->nodes);
    mem_free(hd);
}

struct request_handle *httpc_handle_take(struct httpc *h)
{
    struct request_handle *hd = h->pool;
    if (hd == NULL)
        return handle_new(h);
    h->pool = hd->next;
    h->pool_n--;
    return hd;
}

void httpc_handle_give(struct request_handle *hd)
{
    struct httpc *h = hd->t.h;
    httpc_headers_release(&hd->headers);
    httpc_trace(hd, false);
    if (hd->is_last)
        curl_easy_setopt(hd->t.easy, CURLOPT_FORBID_REUSE, 0L);
    hd->is_last = false;
    if (hd->resolve != NULL) {
        curl_easy_setopt(hd->t.easy, CURLOPT_RESOLVE, NULL);
        curl_slist_free_all(hd->resolve);
        hd->resolve = NULL;
    }
    if (hd->mime != NULL) {
        curl_easy_setopt(hd->t.easy, CURLOPT_MIMEPOST, NULL);
        curl_mime_free(hd->mime);
        hd->mime = NULL;
        MEM_FREE(hd->pulls);
    }
    hd->t.x = NULL;
    hd->t.peer = NULL;
    hd->t.os_errno = 0;
    if (h->pool_n >= POOL_MAX) {
        handle_free(hd);
        return;
    }
    hd->next = h->pool;
    h->pool = hd;
    h->pool_n++;
}

void httpc_pool_free(struct httpc *h)
{
    for (struct request_handle *hd; (hd = h->pool) != NULL;) {
        h->pool = hd->next;
        handle_free(hd);
    }
    h->pool_n = 0;
}

/* ---- what is asked for ---- */

static bool one_line(const char *s)
{
    return s[strcspn(s, "\r\n")] == '\0';
}

enum err httpc_request_valid(const struct http_req *req, struct errinfo *ei)
{
    const char *m = req->method;
    while ((*m >= 'A' && *m <= 'Z') || *m == '-')
        m++;
    if (m == req->method || *m != '\0')
        return err_set(ei, ERR_USAGE, "the method \"%.40s\" is not an HTTP method", req->method);
    if (req->path[0] != '/' || !httpc_target_ok(req->path))
        return err_set(ei, ERR_USAGE, "the request path does not start with / or is not percent-encoded");
    size_t n = 0;
    for (const char *const *line = req->headers; line != NULL && *line != NULL; line++, n++)
        if (!one_line(*line) || strpbrk(*line, ":;") == NULL)
            return err_set(ei, ERR_USAGE, "a request header is not of the form \"Name: value\"");
    if (n > OWN_MAX)
        return err_set(ei, ERR_USAGE, "more than %d request headers", OWN_MAX);
    if (req->content_type != NULL && (!one_line(req->content_type) || strlen(req->content_type) > 150))
        return err_set(ei, ERR_USAGE, "the content type is too long or not one line");
    return ERR_OK;
}

uint64_t httpc_body_size(const struct http_req *req)
{
    return req->body_read != NULL ? req->body_size : req->body.n;
}

bool httpc_has_body(const struct http_req *req)
{
    return req->n_parts > 0 || httpc_body_size(req) > 0;
}

static bool body_expected(const char *method)
{
    static const char *const methods[] = {"POST", "PUT", "PATCH"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

static bool has_header(const char *const *headers, const char *name)
{
    size_t n = strlen(name);
    for (; headers != NULL && *headers != NULL; headers++)
        if (strncasecmp(*headers, name, n) == 0 && (*headers)[n] == ':')
            return true;
    return false;
}

/* ---- options ---- */

static void set_headers(struct request_handle *hd, const struct xfer *x)
{
    const struct http_req *req = x->req;
    const char *own[OWN_MAX + 3];
    size_t n = 0;
    for (const char *const *line = req->headers; line != NULL && *line != NULL; line++)
        own[n++] = *line;
    bool body = httpc_has_body(req) || body_expected(req->method);
    if (body && req->n_parts == 0 && !has_header(req->headers, "Content-Type")) {
        const char *type = req->content_type != NULL ? req->content_type : req->body.n > 0 ? "application/json" : "";
        snprintf(hd->content_type, sizeof hd->content_type, "Content-Type:%s%s", *type != '\0' ? " " : "", type);
        own[n++] = hd->content_type;
    }
    if (body)
        own[n++] = x->expect_100 ? "Expect: 100-continue" : "Expect:";

    size_t need = n + x->peer->headers->n;
    if (need > hd->nodes_n) {
        hd->nodes = mem_realloc_array(hd->nodes, need, sizeof *hd->nodes);
        hd->nodes_n = need;
    }
    hd->headers = x->peer->headers;
    hd->headers->refs++;
    curl_easy_setopt(hd->t.easy, CURLOPT_HTTPHEADER, httpc_header_list(x->peer, own, n, hd->nodes));
}

static void set_parts(struct request_handle *hd, struct xfer *x)
{
    const struct http_req *req = x->req;
    hd->mime = curl_mime_init(hd->t.easy);
    hd->pulls = mem_realloc_array(NULL, req->n_parts, sizeof *hd->pulls);
    for (size_t i = 0; i < req->n_parts; i++) {
        const struct http_part *p = &req->parts[i];
        hd->pulls[i] = (struct pull){x, p, 0};
        curl_mimepart *part = curl_mime_addpart(hd->mime);
        curl_mime_name(part, p->name);
        if (p->filename != NULL)
            curl_mime_filename(part, p->filename);
        if (p->type != NULL)
            curl_mime_type(part, p->type);
        curl_off_t size = p->read != NULL ? p->size : (curl_off_t)p->value.n;
        curl_mime_data_cb(part, size, httpc_on_part_wanted, NULL, NULL, &hd->pulls[i]);
    }
    curl_easy_setopt(hd->t.easy, CURLOPT_MIMEPOST, hd->mime);
}

static void set_body(struct request_handle *hd, const struct xfer *x)
{
    CURL *e = hd->t.easy;
    struct sv body = x->req->body;
    uint64_t size = httpc_body_size(x->req);
    bool pulled = x->req->body_read != NULL && size > 0;
    bool whole = !pulled && size <= INLINE_BODY && !x->expect_100;
    curl_easy_setopt(e, CURLOPT_POST, 1L);
    curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(e, CURLOPT_POSTFIELDS, !whole ? NULL : size > 0 ? body.p : "");
}

static void set_method(struct request_handle *hd, struct xfer *x)
{
    CURL *e = hd->t.easy;
    const struct http_req *req = x->req;
    const char *plain = "GET"; /* the method that libcurl sends on its own */
    bool was_get = hd->is_get;
    hd->is_get = false;
    if (req->n_parts > 0) {
        set_parts(hd, x);
        plain = "POST";
    } else if (httpc_body_size(req) > 0 || body_expected(req->method)) {
        set_body(hd, x);
        plain = "POST";
    } else if (strcmp(req->method, "HEAD") == 0) {
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
        plain = "HEAD";
    } else if (strcmp(req->method, "GET") == 0) {
        hd->is_get = true;
        if (was_get) /* nothing to set: most requests come here */
            return;
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    } else {
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, strcmp(req->method, plain) == 0 ? NULL : req->method);
}

static void set_target(struct request_handle *hd, const struct xfer *x)
{
    struct origin *o = x->peer->origin;
    CURL *e = hd->t.easy;
    if (hd->origin != o) {
        curl_easy_setopt(e, CURLOPT_CURLU, o->parsed);
        /* With one address httpc_req.c watches the time alone: libcurl would set a timer for each request. */
        curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, o->n_addrs > 1 ? (long)CONNECT_TIMEOUT_MS : 0L);
    }
    hd->origin = o;
    char *target = *o->url.path != '\0' ? httpc_target(o, x->req->path) : NULL;
    curl_easy_setopt(e, CURLOPT_REQUEST_TARGET, target != NULL ? target : x->req->path); /* copied */
    mem_free(target);
}

void httpc_handle_setup(struct request_handle *hd, struct xfer *x)
{
    struct transfer *t = &hd->t;
    t->x = x;
    t->peer = x->peer;
    t->multi = x->peer->multi;
    hd->error[0] = '\0';
    set_target(hd, x);
    set_headers(hd, x);
    set_method(hd, x);
    curl_easy_setopt(t->easy, CURLOPT_CONNECT_TO, &x->peer->alias.list);
    if (hd->is_fresh != x->fresh)
        curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, x->fresh ? 1L : 0L);
    hd->is_fresh = x->fresh;
    if (hd->idle_max_s != x->req->idle_max_s)
        curl_easy_setopt(t->easy, CURLOPT_MAXAGE_CONN, x->req->idle_max_s ? (long)x->req->idle_max_s : IDLE_MAX_S);
    hd->idle_max_s = x->req->idle_max_s;
    if (!x->peer->alias.resolved) {
        hd->resolve = httpc_alias_resolve(&x->peer->alias, x->peer->origin, x->peer->first_addr);
        curl_easy_setopt(t->easy, CURLOPT_RESOLVE, hd->resolve);
    }
}
