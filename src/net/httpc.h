#ifndef NET_HTTPC_H
#define NET_HTTPC_H
/* The HTTP/1.1 client, by libcurl's multi_socket interface on a loop. A struct httpc holds the machinery (request
 * multis sharded at a few hundred peers, one more multi for streams: measured.md 3); a struct httpc_peer is one app:
 * connections of its own, one origin, one source address, default headers. httpc_perform suspends the coroutine (or
 * runs the loop). The owner of curl/curl.h. All of it belongs to the loop's thread. Layer 1.
 *
 * Redirects are never followed, proxies never used, environment variables never read, SIGPIPE never raised; no Expect
 * header unless asked for. A name is resolved once a httpc (blocking, when its first peer is made); each peer starts at
 * the next of its addresses and falls back to the others, another family after at most 200 ms. A connection attempt is
 * given up after 5 s. Callbacks (sinks, part readers, streams) run on the loop's stack: they must not wait. */
#include "net/coro.h"
#include "net/http_resp.h"
#include "net/http_url.h"

struct httpc;
struct httpc_peer;
struct httpc_conf {
    const char *cafile;       /* NULL: the system's */
    bool insecure;            /* no certificate checks, for requests and streams alike */
    unsigned peers_per_multi; /* 0: 256 */
    const char *user_agent;   /* NULL: "drivesim/VERSION"; "": none */
};
enum err httpc_new(struct httpc **out, struct loop *l, const struct httpc_conf *conf, struct errinfo *ei) WARN_UNUSED;
/* Streams end without a callback; no request may be running, no peer alive. */
void httpc_free(struct httpc **h);

/* base_url: scheme, host, port and path prefix, e.g. "http://127.0.0.1:3200/tma"; requests name the path after it.
 * source_addr may be NULL ("127.0.3.7": a budget of its own on servers that count by address). */
enum err httpc_peer_new(struct httpc_peer **out, struct httpc *h, const char *base_url, const char *source_addr,
                        struct errinfo *ei) WARN_UNUSED;
/* Closes its connections. No request of it may be running; its streams are closed without a callback. */
void httpc_peer_free(struct httpc_peer **p);
/* A header sent with each request and stream of this peer from now on, unless the request brings its own of that name;
 * value NULL removes it. */
void httpc_peer_header(struct httpc_peer *p, const char *name, const char *value);

/* Counts what goes out by this peer from now on, as it is handed to the network: in *sent each request and stream, in
 * *again those that are repeated on a fresh connection. A request belongs to the counters at the time of its call.
 * NULL: nobody counts. */
struct httpc_counters {
    uint64_t *sent, *again;
};
void httpc_peer_count(struct httpc_peer *p, struct httpc_counters c);
/* Of its idle connections at most n are kept, as by the pool of a desktop app: what was opened beside them, for
 * requests at the same time, is closed as soon as it is not needed. 0, and until it is called: all. */
void httpc_peer_keep(struct httpc_peer *p, unsigned n);

struct http_part {    /* one part of a multipart/form-data body */
    const char *name; /* name and filename are sent byte for byte, but for '"', CR and LF, which become %22 %0D %0A */
    const char *filename; /* NULL: a plain field */
    const char *type;     /* content type; NULL: none for a field, what the filename suggests for a file */
    struct sv value;      /* the content, unless read is set */
    /* Pulls the content: fills at most cap bytes at offset, returns how many (>0; 0 ends it early) or -1 to abort. */
    int64_t (*read)(void *arg, uint64_t offset, char *dst, size_t cap);
    void *arg;
    int64_t size; /* with read; -1: unknown, so the body is chunked */
};
struct http_req {
    const char *method;
    const char *path;           /* after the base, starting with '/', already percent-encoded, with the query */
    const char *const *headers; /* "Name: value", NULL-terminated, or NULL */
    struct sv body;             /* sent when parts is NULL and n > 0, or for POST/PUT/PATCH */
    /* When set, the body is pulled instead: body_size bytes, as the content of a struct http_part. */
    int64_t (*body_read)(void *arg, uint64_t offset, char *dst, size_t cap);
    void *body_arg;
    uint64_t body_size;
    const char *content_type; /* of body; NULL with a body: application/json, or none of a pulled one */
    const struct http_part *parts;
    size_t n_parts;
    int64_t timeout_us; /* of the whole request; 0: 60 s */
    int64_t stall_us;   /* fails when no byte moves for so long; 0: off */
    size_t max_body;    /* answer bytes kept in resp.body, more is ERR_LIMIT; 0: 16 MiB */
    /* When set, a 2xx answer's body goes here instead; non-zero aborts with ERR_WRONG. */
    int (*sink)(void *arg, const char *p, size_t n);
    void *sink_arg;
    /* A kept connection that was idle for longer is not used: a write that meets the server's closing it is neither
     * done nor not done. 0: no matter. */
    unsigned idle_max_s;
    bool expect_100; /* send Expect: 100-continue, wait at most 1 s */
};
/* ERR_OK when an answer came, whatever its status (also when it came early and the upload was cut: refusals reach the
 * caller). Otherwise CONNECT TLS TIMEOUT RESET CLOSED LIMIT WRONG PROTO CANCELLED USAGE, with resp telling how far it
 * went. resp is initialised by the call; http_resp_done frees it, also after an error.
 * A connection that breaks when it is reused, before any answer byte, is replaced once by a fresh one: for GET, HEAD,
 * OPTIONS and PROPFIND, and for anything else when not a byte had been sent. */
MAY_YIELD enum err httpc_perform(struct httpc_peer *p, const struct http_req *req, struct http_resp *resp,
                                 struct errinfo *ei) WARN_UNUSED;
/* Ends all running requests of the peer (or, with NULL, of h) with ERR_CANCELLED. Streams stay. */
void httpc_cancel(struct httpc *h, struct httpc_peer *p);

/* A long-lived GET whose body is pushed to callbacks, on a connection of its own in the streams' multi. */
struct httpc_stream;
struct httpc_stream_ops {
    /* Head complete, whatever the status. false: close the stream (on_close still follows, with ERR_CANCELLED). May be
     * NULL. */
    bool (*on_open)(void *arg, const struct http_resp *head);
    bool (*on_data)(void *arg, const char *p, size_t n); /* a 2xx answer's body, decoded; false: the same */
    /* The last call; the stream is freed after it, and the owner's handle is NULL already. status 0: no answer came.
     * Head and body (its first 4 KiB) are those of an answer that is not 2xx. err is ERR_OK for such an answer,
     * ERR_CLOSED when the server ended a good stream; why tells any other. */
    void (*on_close)(void *arg, enum err err, const struct http_resp *r, const struct errinfo *why);
};
/* Declared dead, closed with ERR_TIMEOUT, when no byte came for idle_us (0: never). Strings are copied. *out has to
 * live as long as the stream: it becomes NULL when that ends. */
enum err httpc_stream_open(struct httpc_stream **out, struct httpc_peer *p, const char *path,
                           const char *const *headers, int64_t idle_us, const struct httpc_stream_ops *ops, void *arg,
                           struct errinfo *ei) WARN_UNUSED;
/* Right after opening: it is read at no more than this, through the smallest receive buffer that the system has. 0: as
 * it comes. For playing a reader that the server has to wait for. */
void httpc_stream_limit(struct httpc_stream *s, int64_t bytes_per_s);
void httpc_stream_close(struct httpc_stream **s); /* no further callback; fine inside one */

struct httpc_stats {
    uint64_t requests, connects, retries, bytes_up, bytes_down;
    unsigned in_flight, streams;
};
void httpc_stats(const struct httpc *h, struct httpc_stats *out);
#endif
