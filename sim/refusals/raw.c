/* What an HTTP client hides: a body left unread and the next request behind it, an answer before the body was asked
 * for, a client that writes on without listening. Each try is a connection of its own. */
#include "base/mem.h"
#include "drive/wire.h"
#include "net/rawconn.h"
#include "sim/refusals/stage.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_US (20 * US_PER_S)
#define ANSWER_MAX (256 << 10)
#define UNREAD_LEN (48 << 10) /* within what a server may read and throw away */
#define BLIND_LEN  (8 << 20)
#define BOUNDARY   "----drivesim-refusals"
#define PIECE      (64 << 10)

struct dialogue {
    struct rawconn *conn;
    struct buf in;
    struct mono deadline, sent;
    struct errinfo ei;
};

static MAY_YIELD enum err dialogue_open(struct dialogue *d, struct stage *s)
{
    *d = (struct dialogue){.in = BUF_INIT(ANSWER_MAX), .deadline = mono_add(mono_now(), TIMEOUT_US)};
    s->ctx->requests[CAUSE_ACTION]++;
    return rawconn_open(&d->conn, s->ctx->loop, s->ctx->target->url, d->deadline, &d->ei);
}

static void dialogue_done(struct dialogue *d)
{
    rawconn_close(&d->conn);
    buf_done(&d->in);
}

/* The head of a request, up to and with the empty line. more: further lines, each with its CRLF. */
static enum err write_head(struct stage *s, struct buf *out, const char *method, const char *path, enum refusal_who who,
                           const char *more)
{
    struct http_url u;
    struct errinfo ei;
    enum err e = http_url_parse(s->ctx->target->url, &u, &ei);
    if (e != ERR_OK)
        return e;
    e = buf_appendf(out,
                    "%s %s%s HTTP/1.1\r\nHost: %s:%d\r\nAuthorization: Bearer " SV_FMT "\r\n" WIRE_CSRF_HEADER
                    ": " WIRE_CSRF_VALUE "\r\n" WIRE_DESKTOP_HEADER ": " WIRE_DESKTOP_VALUE "\r\n%s\r\n",
                    method, u.path, path, u.host, u.port, SV_ARG(api_session_token(s->logins[who])), more);
    http_url_done(&u);
    return e;
}

/* "HTTP/1.1 413 …" */
static bool read_status(const char *text, int *out)
{
    struct sv rest = sv_of(text), version, code;
    int64_t n;
    if (!sv_split(&rest, ' ', &version) || !sv_starts(version, SV("HTTP/1.")) || rest.n < 3)
        return false;
    code = (struct sv){rest.p, 3};
    *out = sv_to_i64(code, &n) && n >= 100 ? (int)n : 0;
    return *out != 0;
}

/* Reads one answer out of what comes: its status and, where its length is announced, its body. */
static MAY_YIELD enum err read_answer(struct dialogue *d, struct answer *out, bool *closes)
{
    char chunk[4096];
    size_t got;
    for (;;) {
        const char *text = buf_cstr(&d->in), *end = strstr(text, "\r\n\r\n");
        if (end) {
            struct http_resp head = {.headers = {.data = d->in.data, .len = (size_t)(end + 4 - text)}};
            struct sv length = http_resp_header(&head, "Content-Length");
            uint64_t n = 0, body_at = (uint64_t)(end + 4 - text);
            *closes = sv_ieq(http_resp_header(&head, "Connection"), SV("close"));
            if (!read_status(text, &out->status))
                return err_set(&d->ei, ERR_PROTO, "the answer is not HTTP");
            bool counted = sv_to_u64(length, &n);
            if ((out->status >= 100 && out->status < 200) || (counted && d->in.len >= body_at + n)) {
                answer_read(out, (struct sv){end + 4, (size_t)n});
                out->us = mono_diff(mono_now(), d->sent);
                buf_consume(&d->in, (size_t)(body_at + n));
                return ERR_OK;
            }
        }
        enum err e = rawconn_read(d->conn, chunk, sizeof(chunk), &got, d->deadline, &d->ei);
        if (e == ERR_OK && got == 0)
            return err_set(&d->ei, ERR_CLOSED, "the connection was closed %s",
                           d->in.len ? "in the middle of the answer" : "without an answer");
        if (e == ERR_OK)
            e = buf_append(&d->in, chunk, got);
        if (e != ERR_OK)
            return e;
    }
}

static void told(struct answer *out, enum err e, const struct errinfo *ei)
{
    out->err = e;
    if (e != ERR_OK)
        str_format(out->reason, sizeof(out->reason), "%s", err_message(ei));
}

/* A body that looks like requests, which no one asked for, and behind it one that is. Either the connection is closed
 * after the refusal, and says so, or the next answer is the next request's. */
void refusal_ask_then_next(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    static const char bait[] = "DELETE /api/bait HTTP/1.1\r\nHost: bait\r\nContent-Length: 0\r\n\r\n";
    struct dialogue d;
    struct buf text = BUF_INIT(1 << 20);
    struct answer next = {0};
    char lines[160];
    bool closes = false, last = false;
    (void)nth;
    *out = (struct answer){.retry_after_us = -1};
    str_format(lines, sizeof(lines),
               "Content-Type: multipart/form-data; boundary=" BOUNDARY "\r\nContent-Length: %d\r\n", UNREAD_LEN);
    enum err e = dialogue_open(&d, s);
    if (e == ERR_OK)
        e = write_head(s, &text, f->method, f->path, f->who, lines);
    for (size_t left = UNREAD_LEN; left > 0 && e == ERR_OK;) {
        size_t n = left < sizeof(bait) - 1 ? left : sizeof(bait) - 1;
        e = buf_append(&text, bait, n);
        left -= n;
    }
    if (e == ERR_OK)
        e = write_head(s, &text, "GET", "/api/user/storage", WHO_OWNER, "");
    d.sent = mono_now();
    if (e == ERR_OK)
        e = rawconn_write(d.conn, text.data, text.len, d.deadline, &d.ei);
    if (e == ERR_OK || e == ERR_CLOSED || e == ERR_RESET)
        e = read_answer(&d, out, &closes);
    told(out, e, &d.ei);
    if (e == ERR_OK) {
        s->ctx->requests[CAUSE_ACTION]++;
        e = read_answer(&d, &next, &last);
        if (closes ? e != ERR_CLOSED || d.in.len > 0 : e != ERR_OK || next.status != 200)
            str_format(out->besides, sizeof(out->besides),
                       closes ? "after saying that it closes, the connection went on with %d"
                              : "the next request on the connection was answered with %d",
                       next.status);
    }
    buf_done(&text);
    dialogue_done(&d);
}

/* Only the head: the refusal must come without an invitation to send the body. */
void refusal_ask_expecting(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    struct dialogue d;
    struct buf text = BUF_INIT(64 << 10);
    char lines[200];
    bool closes;
    (void)nth;
    *out = (struct answer){.retry_after_us = -1};
    str_format(lines, sizeof(lines),
               "Content-Type: multipart/form-data; boundary=" BOUNDARY "\r\nContent-Length: %lld\r\n"
               "Expect: 100-continue\r\n",
               (long long)refusal_bytes(s, f->size) + 1000);
    enum err e = dialogue_open(&d, s);
    if (e == ERR_OK)
        e = write_head(s, &text, f->method, f->path, f->who, lines);
    d.sent = mono_now();
    if (e == ERR_OK)
        e = rawconn_write(d.conn, text.data, text.len, d.deadline, &d.ei);
    if (e == ERR_OK)
        e = read_answer(&d, out, &closes);
    told(out, e, &d.ei);
    buf_done(&text);
    dialogue_done(&d);
}

static enum err form_begin(struct stage *s, const struct refusal *f, struct buf *head, struct buf *part)
{
    char lines[200];
    enum err e =
        buf_appendf(part,
                    "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"parentId\"\r\n\r\n%s\r\n"
                    "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"blind.bin\"\r\n"
                    "Content-Type: application/octet-stream\r\n\r\n",
                    s->things[THING_FOLDER]);
    str_format(lines, sizeof(lines),
               "Content-Type: multipart/form-data; boundary=" BOUNDARY "\r\nContent-Length: %zu\r\n",
               part->len + BLIND_LEN + sizeof("\r\n--" BOUNDARY "--\r\n") - 1);
    return e != ERR_OK ? e : write_head(s, head, f->method, f->path, f->who, lines);
}

/* All 8 MiB are written, or as much as the connection takes, before a byte is read: the plainest of clients. */
void refusal_ask_blindly(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    struct dialogue d;
    struct buf text = BUF_INIT(64 << 10), part = BUF_INIT(4096);
    char *piece = mem_zalloc(PIECE);
    bool closes;
    (void)nth;
    *out = (struct answer){.retry_after_us = -1};
    enum err e = dialogue_open(&d, s);
    if (e == ERR_OK)
        e = form_begin(s, f, &text, &part);
    if (e == ERR_OK)
        e = buf_append(&text, part.data, part.len);
    d.sent = mono_now();
    if (e == ERR_OK)
        e = rawconn_write(d.conn, text.data, text.len, d.deadline, &d.ei);
    for (size_t left = BLIND_LEN; left > 0 && e == ERR_OK; left -= PIECE)
        e = rawconn_write(d.conn, piece, PIECE, d.deadline, &d.ei);
    if (e == ERR_OK || e == ERR_CLOSED || e == ERR_RESET)
        e = read_answer(&d, out, &closes);
    told(out, e, &d.ei);
    mem_free(piece);
    buf_done(&text);
    buf_done(&part);
    dialogue_done(&d);
}
