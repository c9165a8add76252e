/* Answers. The head is held back until the first piece of the body, so that both leave in one segment. */
#include "base/log.h"
#include "base/mem.h"
#include "net/http_date.h"
#include "server/http/conn.h"
#include "server/http/conn_io.h"
#include "server/http/route.h"
#include "server/objects/storage.h"
#include "server/server.h"
#include <stdio.h>
#include <string.h>

static const struct {
    int status;
    const char *text;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *http_reason(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Status";
}

static const char *http_date(void)
{
    static char text[40];
    static int64_t at;
    struct wall now = wall_now();
    if (now.us / US_PER_S != at) {
        http_date_format(text, sizeof text, now);
        at = now.us / US_PER_S;
    }
    return text;
}

void reply_head_simple(struct buf *out, int status, size_t length)
{
    must(buf_appendf(out,
                     "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/json; charset=utf-8\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                     status, http_reason(status), http_date(), length));
}

static bool clean(const char *s)
{
    return !strpbrk(s, "\r\n");
}

void reply_header(struct request *r, const char *name, const char *fmt, ...)
{
    struct exchange *x = r->conn->x;
    char small[512], *text = small;
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof small) {
        text = arena_alloc(r->mem, (size_t)n + 1);
        va_start(ap, fmt);
        vsnprintf(text, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    if (x->begun || !clean(name) || !clean(text) || buf_appendf(&x->fields, "%s: %s\r\n", name, text) != ERR_OK)
        LOGE("http", "header %s left out: too late, too long, or with a line end in it", name);
}

/* Marks the request as answered and writes the head to x->unsent. length -1: not known. False when it was answered
 * before. */
static bool begin(struct request *r, int status, const char *type, int64_t length)
{
    struct exchange *x = r->conn->x;
    struct buf *out = &x->unsent;

    if (x->begun) {
        LOGE("http", "%s " SV_FMT " answered twice: %d, then %d", r->method, SV_ARG(r->path), r->status, status);
        return false;
    }
    x->begun = true;
    r->status = status;
    r->server->metrics.by_status[status]++;
    r->server->metrics.server_errors += status >= 500 && status != 503 && !r->tells_of_job;
    bool bodyless = status == 204 || status == 304;
    x->no_body |= bodyless;
    x->chunked_out = length < 0 && !x->http10 && !x->no_body;
    x->answer_left = length;
    x->close_after = conn_must_close(r->conn) || (length < 0 && x->http10);
    must(buf_appendf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, http_reason(status), http_date()));
    if (type)
        must(buf_appendf(out, "Content-Type: %s\r\n", type));
    if (x->chunked_out)
        must(buf_append_str(out, "Transfer-Encoding: chunked\r\n"));
    else if (length >= 0 && !bodyless)
        must(buf_appendf(out, "Content-Length: %lld\r\n", (long long)length));
    struct sv id = req_header(r, "X-Request-ID"); /* given back, so that both sides' logs can be laid side by side */
    if (id.p && id.n <= 128)
        must(buf_appendf(out, "X-Request-ID: " SV_FMT "\r\n", SV_ARG(id)));
    if (r->rate.limit)
        must(buf_appendf(out,
                         "RateLimit-Policy: %lld;w=%lld\r\nRateLimit-Limit: %lld\r\nRateLimit-Remaining: %lld\r\n"
                         "RateLimit-Reset: %lld\r\n",
                         (long long)r->rate.limit, (long long)r->rate.window_s, (long long)r->rate.limit,
                         (long long)r->rate.remaining, (long long)r->rate.reset_s));
    must(buf_append(out, buf_cstr(&x->fields), x->fields.len));
    if (x->close_after)
        must(buf_append_str(out, "Connection: close\r\n\r\n"));
    else
        must(buf_appendf(out, "Connection: keep-alive\r\nKeep-Alive: timeout=%lld\r\n\r\n",
                         (long long)(r->server->conf->idle_timeout_us / US_PER_S)));
    return true;
}

/* Sends what waits of the head, then the pieces. */
static MAY_YIELD enum err send_pieces(struct request *r, const struct iovec *pieces, int n)
{
    struct exchange *x = r->conn->x;
    struct iovec iov[5];
    int k = 0;

    if (x->gone)
        return ERR_CLOSED;
    if (x->unsent.len)
        iov[k++] = (struct iovec){x->unsent.data, x->unsent.len};
    for (int i = 0; i < n; i++)
        iov[k++] = pieces[i];
    enum err err = conn_send(r->conn, iov, k);
    buf_done(&x->unsent);
    return err;
}

/* Answers that stand complete in memory. */
static MAY_YIELD void reply_whole(struct request *r, int status, const char *type, struct sv body)
{
    struct exchange *x = r->conn->x;
    if (!begin(r, status, type, (int64_t)body.n))
        return;
    if (status == 413 && fault_hit(r->server, FAULT_DROPPED_413)) {
        x->ended = x->cut = true;
        return;
    }
    union {
        const char *in;
        void *out;
    } p = {.in = body.p};
    struct iovec piece = {p.out, body.n};
    if (send_pieces(r, &piece, x->no_body ? 0 : 1) != ERR_OK)
        LOGD("http", "client left before the answer to %s " SV_FMT, r->method, SV_ARG(r->path));
    x->ended = true;
}

void reply_text(struct request *r, int status, const char *content_type, struct sv body)
{
    reply_whole(r, status, content_type, body);
}

void reply_json(struct request *r, int status, const struct buf *json)
{
    reply_whole(r, status, "application/json; charset=utf-8", (struct sv){buf_cstr(json), json->len});
}

void reply_empty(struct request *r, int status)
{
    reply_whole(r, status, NULL, SV(""));
}

void reply_message(struct request *r, int status, const char *code, const char *fmt, ...)
{
    struct buf json = BUF_INIT(16 * 1024);
    struct jsonw w;
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", text);
    if (code)
        jsonw_str(&w, "error", code);
    jsonw_end_object(&w);
    reply_json(r, status, &json);
    buf_done(&json);
}

void reply_error(struct request *r, const struct errinfo *ei)
{
    static const struct {
        enum err err;
        const char *code, *sentence;
    } away[] = {
        {ERR_DB_GONE, "DATABASE_UNAVAILABLE", "The database cannot be reached at the moment. Try again shortly."},
        {ERR_CONNECT, "DATABASE_UNAVAILABLE", "The database cannot be reached at the moment. Try again shortly."},
        {ERR_KV, "CACHE_UNAVAILABLE", "Redis cannot be reached at the moment. Try again shortly."},
        {ERR_STORE, "STORAGE_UNAVAILABLE", "The object store cannot be reached at the moment. Try again shortly."},
    };
    for (size_t i = 0; i < ARRAY_LEN(away); i++) {
        if (ei->code != away[i].err)
            continue;
        LOGW("http", "%s " SV_FMT ": %s", r->method, SV_ARG(r->path), err_message(ei));
        if (ei->code == ERR_STORE)
            storage_look(r->server);
        reply_header(r, "Retry-After", "1");
        reply_message(r, 503, away[i].code, "%s", away[i].sentence);
        return;
    }
    if (strncmp(ei->sqlstate, "53", 2) == 0) { /* its disk, its memory: nothing was done */
        LOGE("http", "%s " SV_FMT ": %s", r->method, SV_ARG(r->path), err_message(ei));
        reply_header(r, "Retry-After", "5");
        reply_message(r, 503, "DATABASE_FULL", "The database has run out of something. Try again later.");
        return;
    }
    /* Whatever part of a request a text came from, Postgres is the one judge of it that none slips past. */
    if (strcmp(ei->sqlstate, "22021") == 0) {
        reply_message(r, 400, "INVALID_TEXT", "The request holds text that is not UTF-8");
        return;
    }
    LOGE("http", "%s " SV_FMT ": %s: %s", r->method, SV_ARG(r->path), err_symbol(ei->code), err_message(ei));
    reply_message(r, 500, "INTERNAL_ERROR", "Internal server error");
}

enum err reply_begin(struct request *r, int status, const char *content_type, int64_t length)
{
    return begin(r, status, content_type, length) ? ERR_OK : ERR_USAGE;
}

enum err reply_write(struct request *r, const void *p, size_t n)
{
    struct exchange *x = r->conn->x;
    if (x->gone)
        return ERR_CLOSED;
    if (x->no_body || n == 0)
        return ERR_OK;
    if (!x->begun || x->ended || (x->answer_left >= 0 && (int64_t)n > x->answer_left)) {
        LOGE("http", "%s " SV_FMT ": the body is longer than announced", r->method, SV_ARG(r->path));
        x->cut = true;
        return ERR_LIMIT;
    }
    char size[24];
    union {
        const void *in;
        void *out;
    } data = {.in = p};
    static char crlf[] = "\r\n";
    struct iovec whole = {data.out, n};
    if (!x->chunked_out) {
        if (x->answer_left > 0)
            x->answer_left -= (int64_t)n;
        return send_pieces(r, &whole, 1);
    }
    struct iovec chunk[] = {{size, (size_t)snprintf(size, sizeof size, "%zx\r\n", n)}, whole, {crlf, 2}};
    return send_pieces(r, chunk, 3);
}

void reply_end(struct request *r, bool complete)
{
    struct exchange *x = r->conn->x;
    if (!x->begun || x->ended)
        return;
    x->ended = true;
    if (!x->no_body && (!complete || x->answer_left > 0))
        x->cut = true;
    if (x->cut)
        return;
    static char last[] = "0\r\n\r\n";
    struct iovec piece = {last, 5};
    if (send_pieces(r, &piece, x->chunked_out ? 1 : 0) != ERR_OK)
        LOGD("http", "client left before the end of %s " SV_FMT, r->method, SV_ARG(r->path));
}
