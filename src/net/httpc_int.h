#ifndef NET_HTTPC_INT_H
#define NET_HTTPC_INT_H
/* The inside of the HTTP client, shared by src/net/httpc*.c and http_url.c, which alone see curl/curl.h. libcurl is
 * entered from the loop's stack only: what a caller asks for (start, cancel, close) becomes a task, and the tasks run
 * in a deferred call. Who owns what: httpc       multis, origins, pooled request handles multi       sockets, through
 * libcurl's open and close callbacks peer        the names by which libcurl keeps its connections apart from other
 * peers' transfer    one easy handle: borrowed by a request while it runs, owned by a stream Layer 1. */
#include "base/log.h"
#include "base/mem.h"
#include "net/httpc.h"

#include <curl/curl.h>

enum { CONNECT_TIMEOUT_MS = 5000 };

struct task {
    struct task *next;
    void (*fn)(struct task *t);
    bool queued;
};

struct multi {
    struct httpc *h;
    CURLM *curl;
    struct timer timer;
    struct task run;   /* libcurl wants to be called without an event */
    struct task leave; /* no peer is left */
    struct multi *next;
    unsigned peers, names; /* names: peers ever, since libcurl's name cache forgets none */
};

struct xfer;
struct header_set;
struct transfer {
    CURL *easy;
    struct httpc *h;
    struct httpc_peer *peer;
    struct multi *multi;
    struct xfer *x;              /* the request that borrows it, or */
    struct httpc_stream *stream; /* the stream that owns it */
    int os_errno;                /* of the last socket that could not be opened or bound */
};

/* A descriptor of libcurl's. It stays in epoll while its connection is idle (lazy epoll_ctl: measured.md 3). */
struct sock {
    struct io io;
    struct multi *multi;
    struct httpc_peer *peer;
    struct sock *next, **at; /* in the peer's list */
    uint64_t inode;          /* tells whether the descriptor still is this socket */
    uint32_t want;           /* what libcurl waits for now */
    struct xfer *upload;     /* sends a body on it right now */
};

struct httpc {
    struct loop *loop;
    char *cafile;
    struct header_set *default_headers; /* what a new peer begins with */
    bool insecure, trace_first_header;
    unsigned peers_per_multi, next_alias_id;
    struct multi *multis; /* for requests */
    struct multi *streams_multi;
    struct origin *origins;
    struct httpc_peer *peers;
    struct httpc_stream *streams;
    struct request_handle *pool;
    unsigned pool_n;
    struct task *tasks, **tasks_tail, *tasks_now; /* queued, and the rest of those being run */
    bool tasks_deferred;
    struct sock **socks; /* by descriptor */
    size_t socks_n;
    struct httpc_stats stats;
};

/* httpc.c: multis, sockets, tasks */
void httpc_task(struct httpc *h, struct task *t); /* queues it, unless it is queued already */
void httpc_untask(struct httpc *h, struct task *t);
struct multi *httpc_multi_new(struct httpc *h, struct errinfo *ei);
void httpc_multi_free(struct multi **m);
bool httpc_sock_alive(const struct sock *s);
void httpc_forget_stale(struct httpc_peer *p); /* sockets that libcurl has closed without saying so */
/* Makes an easy handle with the options that all share. NULL when libcurl cannot. */
CURL *httpc_easy_new(struct transfer *t);
/* Message and code for a failed transfer, from what libcurl and the system said. */
enum err httpc_explain(const struct transfer *t, CURLcode rc, const char *curl_text, struct errinfo *ei) WARN_UNUSED;

/* httpc_req.c */
void httpc_request_finished(struct transfer *t, CURLcode rc);
/* libcurl closes the socket of an upload: reads what the server still said. */
void httpc_request_last_words(struct sock *s);
bool httpc_request_may_connect(struct xfer *x); /* false: libcurl replays on its own what must not be replayed */
void httpc_pool_free(struct httpc *h);

/* httpc_stream.c */
void httpc_stream_connects(struct httpc_stream *s, int fd);
void httpc_stream_finished(struct transfer *t, CURLcode rc);
void httpc_stream_close_all(struct httpc *h, const struct httpc_peer *of);
void httpc_stream_free_all(struct httpc *h);
#endif
