/* Request bodies: counted by Content-Length, or decoded from the chunked coding by head.c. */
#include "base/mem.h"
#include "base/utf8.h"
#include "server/http/conn.h"
#include "server/http/conn_io.h"
#include "server/server.h"
#include <string.h>

#define JSON_BODY_MAX (10 * 1024 * 1024)

struct sv req_header(const struct request *r, const char *name)
{
    struct sv want = sv_of(name);
    for (size_t i = 0; i < r->n_headers; i++)
        if (sv_ieq(r->headers[i].name, want))
            return r->headers[i].value;
    return (struct sv){NULL, 0};
}

struct sv req_cookie(const struct request *r, const char *name)
{
    struct sv rest = req_header(r, "Cookie"), pair, key, want = sv_of(name);
    while (rest.p && sv_split(&rest, ';', &pair)) {
        pair = sv_trim(pair);
        if (sv_split(&pair, '=', &key) && sv_eq(key, want))
            return sv_trim(pair);
    }
    return (struct sv){NULL, 0};
}

static char *decode_query(struct arena *mem, struct sv s)
{
    struct buf out = BUF_INIT(HEAD_BYTES_MAX);
    char *plain = arena_alloc(mem, s.n + 1), *text = NULL;
    for (size_t i = 0; i < s.n; i++)
        plain[i] = s.p[i] == '+' ? ' ' : s.p[i];
    if (str_url_decode(&out, (struct sv){plain, s.n}) == ERR_OK && !memchr(buf_cstr(&out), '\0', out.len) &&
        utf8_valid((struct sv){buf_cstr(&out), out.len}))
        text = arena_strndup(mem, buf_cstr(&out), out.len);
    buf_done(&out);
    return text;
}

const char *req_query(struct request *r, const char *name)
{
    struct sv rest = r->query, pair, key;
    while (sv_split(&rest, '&', &pair)) {
        if (!sv_split(&pair, '=', &key))
            continue;
        const char *plain = decode_query(r->mem, key);
        if (plain && strcmp(plain, name) == 0)
            return decode_query(r->mem, pair);
    }
    return NULL;
}

bool req_query_valid(struct request *r)
{
    struct sv rest = r->query, pair;
    while (sv_split(&rest, '&', &pair))
        if (!decode_query(r->mem, pair))
            return false;
    return true;
}

void req_defer(struct request *r, void (*fn)(void *arg), void *arg)
{
    struct exchange *x = r->conn->x;
    struct deferred *d = arena_alloc(r->mem, sizeof *d);
    *d = (struct deferred){x->deferred, fn, arg};
    x->deferred = d;
}

int64_t req_bytes_left(const struct request *r)
{
    return r->conn->x->body_left;
}

bool req_body_comes(struct request *r, int64_t us)
{
    return r->conn->x->body_left == 0 || conn_buffered(r->conn) > 0 || conn_await(r->conn, us) == ERR_OK;
}

/* The client waits for this before it sends the body: nothing of it can be here yet. */
static MAY_YIELD enum err send_continue(struct request *r)
{
    struct exchange *x = r->conn->x;
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec iov = {text, sizeof text - 1};

    if (!r->expect_100 || x->continue_sent)
        return ERR_OK;
    x->continue_sent = true;
    return conn_buffered(r->conn) || x->begun ? ERR_OK : conn_send(r->conn, &iov, 1);
}

static MAY_YIELD enum err read_counted(struct request *r, char *dst, size_t cap, size_t *got)
{
    struct exchange *x = r->conn->x;
    if ((int64_t)cap > x->body_left)
        cap = (size_t)x->body_left;
    *got = conn_take(r->conn, dst, cap);
    if (*got == 0) {
        enum err err = conn_recv(r->conn, dst, cap, got);
        if (err)
            return err;
    }
    x->body_left -= (int64_t)*got;
    return ERR_OK;
}

/* Decodes at most cap bytes at a time, as a chunked body never gets longer by decoding. */
static MAY_YIELD enum err read_chunked(struct request *r, char *dst, size_t cap, size_t *got)
{
    struct http_conn *c = r->conn;
    bool end = false;
    *got = 0;
    while (*got == 0 && !end) {
        size_t used;
        if (conn_buffered(c) == 0) {
            enum err err = conn_fill(c);
            if (err)
                return err;
        }
        size_t n = conn_buffered(c) < cap ? conn_buffered(c) : cap;
        enum err err = head_body(c->head, c->in.data + c->in_at, n, &used, dst, got, &end);
        if (err)
            return err;
        conn_drop(c, used);
    }
    if (end)
        c->x->body_left = 0;
    return ERR_OK;
}

enum err req_read(struct request *r, char *dst, size_t cap, size_t *got)
{
    struct exchange *x = r->conn->x;
    *got = 0;
    if (x->body_left == 0 || cap == 0)
        return ERR_OK;
    enum err err = x->body_broken ? ERR_CLOSED : send_continue(r);
    if (!err)
        err = x->body_left < 0 ? read_chunked(r, dst, cap, got) : read_counted(r, dst, cap, got);
    if (err)
        x->body_broken = true;
    return err;
}

static MAY_YIELD enum err read_all(struct request *r, struct buf *out)
{
    if (r->content_length > JSON_BODY_MAX)
        return ERR_LIMIT;
    for (;;) {
        size_t got, want = r->content_length > 0 ? (size_t)r->content_length - out->len + 1 : 4096;
        if (out->len + want > out->max)
            want = out->max - out->len;
        if (want == 0)
            return ERR_LIMIT;
        enum err err = buf_reserve(out, want);
        if (!err)
            err = req_read(r, out->data + out->len, want, &got);
        if (err || got == 0)
            return err;
        out->len += got;
        out->data[out->len] = '\0';
    }
}

static void free_json(void *arg)
{
    struct json *j = arg;
    json_free(&j);
}

void reply_body_error(struct request *r, enum err err)
{
    static const struct {
        enum err err;
        int status;
        const char *sentence;
    } rows[] = {
        {ERR_LIMIT, 413, "request entity too large"},
        {ERR_TIMEOUT, 408, "The body did not come in time"},
        {ERR_PROTO, 400, "The body's chunked coding is malformed"},
        {ERR_CLOSED, 499, "The client left before the body was complete"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].err == err) {
            reply_message(r, rows[i].status, err == ERR_CLOSED ? "REQUEST_ABORTED" : "INTERNAL_ERROR", "%s",
                          rows[i].sentence);
            return;
        }
    }
    reply_message(r, 500, "INTERNAL_ERROR", "Internal server error");
}

enum err req_json(struct request *r, struct json **out)
{
    struct errinfo ei;
    struct buf text = BUF_INIT(JSON_BODY_MAX + 1);
    enum err err = read_all(r, &text);

    if (err) {
        reply_body_error(r, err);
    } else if ((err = json_parse(buf_cstr(&text), text.len, out, &ei)) != ERR_OK) {
        reply_message(r, 400, "INTERNAL_ERROR", "%s",
                      text.len ? err_message(&ei) : "The body is empty, JSON was expected");
    } else {
        req_defer(r, free_json, *out);
    }
    buf_done(&text);
    return err;
}
