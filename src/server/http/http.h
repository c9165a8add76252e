#ifndef SERVER_HTTP_HTTP_H
#define SERVER_HTTP_HTTP_H
/* What a handler sees of HTTP/1.1: the request, its body, and the answer. A handler is straight-line code in a
 * coroutine of its own; the connection below it (conn.h) costs neither coroutine nor buffer while it is idle. A refusal
 * that is decided before the body was read always reaches the client, and a body left unread is never taken for the
 * next request: conn.c says how. Multipart bodies: multipart.h; event streams: push.h; the route table: route.h.
 * Layer 3. */
#include "base/arena.h"
#include "base/json.h"
#include "drive/model.h"
#include "net/coro.h"
#include "server/http/reply.h"

struct server;
struct route;
struct http_conn;

struct login { /* who asks; filled by session.c before the handler runs */
    char user_id[DRIVE_ID_MAX + 1], account_id[DRIVE_ID_MAX + 1], session_id[DRIVE_ID_MAX + 1];
    char email[256], name[128];
    unsigned perms;
    bool owner, admin;
};

struct http_header {
    struct sv name, value; /* value trimmed */
};

struct rate {                                    /* the RateLimit-* headers of the answer */
    int64_t limit, remaining, reset_s, window_s; /* limit 0: none */
};

struct request {
    struct server *server;
    struct http_conn *conn;
    struct arena *mem; /* freed after the answer */
    const char *method;
    struct sv path, query; /* raw, without '?' */
    const struct http_header *headers;
    size_t n_headers;
    const struct route *route; /* NULL before the table was asked */
    const char *params[4];     /* :id … of the route's pattern, decoded */
    const char *client_ip;
    int64_t content_length; /* -1: chunked or none */
    bool chunked, expect_100, expect_other;
    struct login login; /* zeros on public routes */
    int status;         /* 0 until answered */
    bool tells_of_job;  /* a 5xx says how a job ended, which was counted there: this request did not fail */
    struct rate rate;
    struct mono started;
};

/* The first header of that name (any case); {NULL,0} when absent. */
struct sv req_header(const struct request *r, const char *name);
/* The value of one cookie; {NULL,0} when absent. */
struct sv req_cookie(const struct request *r, const char *name);
/* A query parameter, '+' and %XX decoded, in mem; NULL when absent or not valid UTF-8. */
const char *req_query(struct request *r, const char *name);
/* Whether each of the query's parameters is percent-encoded UTF-8. */
bool req_query_valid(struct request *r);
/* Body bytes as they come; *got 0 at the end. Sends 100 Continue before the first read where asked. ERR_CLOSED when the
 * client left, ERR_PROTO on bad chunks, ERR_TIMEOUT when nothing came for the idle limit. */
MAY_YIELD enum err req_read(struct request *r, char *dst, size_t cap, size_t *got) WARN_UNUSED;
/* How many body bytes are still to be read; -1 when chunked and not at its end. */
int64_t req_bytes_left(const struct request *r);
/* Whether the body's first bytes are here within that time, without reading them. */
MAY_YIELD bool req_body_comes(struct request *r, int64_t us);
/* The whole body as JSON (limit 10 MiB), owned by mem's life: nothing to free. On failure the 400/413 answer has been
 * sent and the handler just returns. */
MAY_YIELD enum err req_json(struct request *r, struct json **out) WARN_UNUSED;
/* Runs fn(arg) when the request is over, last registered first: how handlers tie foreign memory to mem. */
void req_defer(struct request *r, void (*fn)(void *arg), void *arg);
#endif
