#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H
/* The reference server's HTTP/1.1 core on the loop: an idle connection or event stream costs no coroutine and no buffer; a request runs its handler in a
 * coroutine. A refusal decided before the body was read always reaches the client (lingering close: answer, shut down the write side, read and drop up to 2 s or
 * 64 MiB). A body left unread is never taken for the next request. http-parser does the syntax. Layer 3. */
#include "base/arena.h"
#include "base/json.h"
#include "drive/model.h"
#include "net/coro.h"

struct server;
struct login {                       /* who asks; filled by session.c before the handler runs */
    char user_id[DRIVE_ID_MAX + 1], account_id[DRIVE_ID_MAX + 1], session_id[DRIVE_ID_MAX + 1];
    char name[128]; unsigned perms; bool owner, admin;
};
struct http_conn;
struct request {
    struct server *server;
    struct http_conn *conn;
    struct arena *mem;               /* freed after the answer */
    const char *method;
    struct sv path, query;           /* raw */
    const char *params[4];           /* :id … of the route's pattern, decoded */
    int64_t content_length;          /* -1: chunked or none */
    bool chunked, expect_100;
    struct login login;
    int status;                      /* 0 until answered */
};
struct sv req_header(const struct request *r, const char *name);        /* {NULL,0} when absent */
const char *req_query(struct request *r, const char *name);             /* decoded, in mem; NULL when absent */
/* Body bytes as they come; *got 0 at the end. Sends 100 Continue before the first read where asked. ERR_CLOSED when the client left, ERR_PROTO on bad chunks,
 * ERR_TIMEOUT when nothing came for the idle limit. */
MAY_YIELD enum err req_read(struct request *r, char *dst, size_t cap, size_t *got) WARN_UNUSED;
/* The whole body as JSON (limit 10 MiB). On failure the 400/413 answer has been sent and the handler just returns. */
MAY_YIELD enum err req_json(struct request *r, struct json **out) WARN_UNUSED;

/* Answers. Each request is answered exactly once; an unanswered one becomes a 500 and is logged. */
void reply_header(struct request *r, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);   /* before the status */
MAY_YIELD void reply_json(struct request *r, int status, const struct buf *json);
MAY_YIELD void reply_message(struct request *r, int status, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);   /* {"message","error"?} */
MAY_YIELD void reply_empty(struct request *r, int status);
/* A streamed body: length -1 is chunked. reply_write fails with ERR_CLOSED when the client left: stop then. */
MAY_YIELD enum err reply_begin(struct request *r, int status, const char *content_type, int64_t length) WARN_UNUSED;
MAY_YIELD enum err reply_write(struct request *r, const void *p, size_t n) WARN_UNUSED;
MAY_YIELD void reply_end(struct request *r, bool complete);             /* false cuts the connection so that the client notices */

/* Event streams: after this the handler returns and the connection belongs to the stream. */
struct sse_conn;
struct sse_conn_ops { void (*on_close)(void *arg); };
MAY_YIELD struct sse_conn *reply_stream(struct request *r, const struct sse_conn_ops *ops, void *arg);   /* headers flushed; NULL: client left */
/* Queues bytes; false when the reader is so slow that 256 KiB are waiting (the caller drops it). Never blocks. O(1) whatever the number of streams. */
bool sse_conn_send(struct sse_conn *s, const void *p, size_t n);
void sse_conn_close(struct sse_conn *s);             /* on_close still follows */

/* Multipart (RFC 7578), streamed: parts in order; a part's content by multipart_read until *got is 0. */
struct multipart;
struct multipart_part { struct sv name, filename; bool has_filename; struct sv type; };   /* in the request's arena; filename decoded (%22 %0D %0A), directories stripped */
MAY_YIELD enum err multipart_open(struct request *r, struct multipart **out, struct errinfo *ei) WARN_UNUSED;   /* ERR_PARSE: not multipart */
MAY_YIELD enum err multipart_next(struct multipart *m, struct multipart_part *out, bool *end, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err multipart_read(struct multipart *m, char *dst, size_t cap, size_t *got, struct errinfo *ei) WARN_UNUSED;
/* How many content bytes the current part can hold at most, if it is the last and Content-Length tells; -1 when chunked. */
int64_t multipart_bytes_left(const struct multipart *m);

/* Routes: one row each, in the files h_*.c. Middleware order: desktop-only, CSRF, budget, session, permission, handler. */
enum route_flags { ROUTE_PUBLIC = 1, ROUTE_OWNER = 2, ROUTE_ADMIN = 4, ROUTE_UPLOAD_BUDGET = 8, ROUTE_LOGIN_BUDGET = 16, ROUTE_NEEDS_STORE = 32, ROUTE_NO_BUDGET = 64, ROUTE_LOOPBACK = 128 };
struct route { const char *method, *pattern; unsigned perm, flags; MAY_YIELD void (*handler)(struct request *r); };   /* perm: PERM(…) or 0; table ends with {0} */
#endif
