/* The table is short (a few dozen rows), so a request is compared with each row, segment by segment. */
#include "server/http/route.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/coro.h"
#include "server/http/conn.h"
#include "server/server.h"
#include <string.h>

static const struct route *const tables[] = {
    routes_ops,   routes_account, routes_subusers, routes_storage, routes_events,   routes_files,
    routes_write, routes_lock,    routes_upload,   routes_bulk,    routes_download, routes_jobs,
};

/* One segment of the path against one of the pattern; a ":name" takes anything but nothing. */
static bool segment_fits(struct request *r, struct sv pattern, struct sv segment, unsigned *n_params)
{
    if (pattern.n == 0 || pattern.p[0] != ':')
        return sv_eq(pattern, segment);
    if (segment.n == 0 || *n_params == ARRAY_LEN(r->params))
        return false;
    struct buf plain = BUF_INIT(1024);
    bool fits = str_url_decode(&plain, segment) == ERR_OK && !memchr(buf_cstr(&plain), '\0', plain.len);
    if (fits)
        r->params[(*n_params)++] = arena_strndup(r->mem, buf_cstr(&plain), plain.len);
    buf_done(&plain);
    return fits;
}

static bool path_fits(struct request *r, const char *pattern)
{
    struct sv want = sv_of(pattern), have = r->path, w, h;
    unsigned n_params = 0;
    while (sv_split(&want, '/', &w)) {
        if (!sv_split(&have, '/', &h) || !segment_fits(r, w, h, &n_params))
            return false;
    }
    return !sv_split(&have, '/', &h);
}

static bool method_fits(const struct route *row, const char *method)
{
    return strcmp(row->method, method) == 0 || (strcmp(method, "HEAD") == 0 && strcmp(row->method, "GET") == 0);
}

const struct route *route_find(struct request *r, bool *path_known, struct buf *allow)
{
    *path_known = false;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        for (const struct route *row = tables[t]; row->method; row++) {
            if (!path_fits(r, row->pattern))
                continue;
            if (method_fits(row, r->method))
                return row;
            *path_known = true;
            if (buf_appendf(allow, "%s%s", allow->len ? ", " : "", row->method) != ERR_OK)
                LOGD("http", "the list of allowed methods was cut");
        }
    }
    return NULL;
}

static MAY_YIELD void reply_no_route(struct request *r, bool path_known, const struct buf *allow)
{
    if (path_known) {
        reply_header(r, "Allow", "%s", buf_cstr(allow));
        reply_message(r, 405, "METHOD_NOT_ALLOWED", "%s is not possible here", r->method);
        return;
    }
    char shown[204];
    reply_message(r, 404, "NOT_FOUND", "Cannot %s %s", r->method, str_shown(shown, sizeof(shown), r->path));
}

/* FAULT_HANG: until the client leaves. */
static MAY_YIELD void hang(struct request *r)
{
    while (!r->conn->hung_up && !r->server->stopping)
        coro_sleep_until(r->server->loop, mono_add(mono_now(), 100 * US_PER_MS));
    r->status = 499;
    r->conn->x->begun = r->conn->x->ended = r->conn->x->cut = true;
}

static bool has_content(const struct request *r)
{
    return r->chunked || r->content_length >= 0 || (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0);
}

/* A body in a coding would be stored as it is, and given back as something else. */
static bool coded(const struct request *r)
{
    struct sv coding = req_header(r, "Content-Encoding");
    return coding.n > 0 && !sv_ieq(coding, SV("identity"));
}

static MAY_YIELD void reply_coded(struct request *r)
{
    reply_header(r, "Accept-Encoding", "identity"); /* RFC 9110 15.5.16 */
    reply_message(r, 415, "UNSUPPORTED_MEDIA_TYPE", "Bodies are taken as they are, not compressed");
}

void route_dispatch(struct request *r)
{
    struct buf allow = BUF_INIT(256);
    bool path_known;

    r->route = route_find(r, &path_known, &allow);
    if (r->expect_other)
        reply_message(r, 417, NULL, "The only expectation known here is 100-continue");
    else if (has_content(r) && coded(r))
        reply_coded(r);
    else if (has_content(r) && req_header(r, "Content-Range").p) /* RFC 9110 14.5: a part would become the whole */
        reply_message(r, 400, "BAD_REQUEST", "A part of a body cannot be taken: this request has a Content-Range");
    else if (!r->route)
        reply_no_route(r, path_known, &allow);
    else if (!req_query_valid(r)) /* a parameter that is passed over in silence asks for something else */
        reply_message(r, 400, "BAD_REQUEST", "The query is not percent-encoded UTF-8");
    else if (gate_pass(r)) {
        if (r->route->flags & ROUTE_NEEDS_STORE && fault_hit(r->server, FAULT_HANG))
            hang(r);
        else
            r->route->handler(r);
    }
    buf_done(&allow);
}
