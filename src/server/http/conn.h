#ifndef SERVER_HTTP_CONN_H
#define SERVER_HTTP_CONN_H
/* One client connection, inside the core only (listen, conn, body, reply, push). While a connection waits for a request
 * it is this struct and nothing else; the first byte brings a head, the complete head an exchange, which lives in its
 * own arena together with its coroutine and goes when the answer is out. Layer 3. */
#include "net/loop.h"
#include "server/events/push.h"
#include "server/http/head.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/uio.h>

enum conn_state {
    CONN_HEAD,   /* waiting for a request's head or in the middle of one */
    CONN_BUSY,   /* a coroutine owns it: the handler reads the body and writes the answer */
    CONN_DRAIN,  /* answered; a short rest of the body is dropped, then the next request may come */
    CONN_LINGER, /* answered for the last time and the write side shut: what still comes is dropped until the client
                    closes, because closing over unread bytes makes a reset that can eat the answer on its way */
    CONN_PUSH,   /* an event stream */
    CONN_DEAD    /* closed; freed at the end of the round */
};

#define CONN_DRAIN_MAX        (64 * 1024)
#define CONN_DRAIN_US         (5 * US_PER_S)
#define CONN_LINGER_MAX       (INT64_C(256) << 20)
#define CONN_LINGER_US        (20 * US_PER_S)
#define CONN_LINGER_SILENT_US (2 * US_PER_S)
#define CONN_WRITE_US         (60 * US_PER_S)

struct push {
    const struct push_ops *ops; /* NULL unless CONN_PUSH */
    void *arg;
    struct buf out; /* what the socket did not take yet */
    bool closing;
};

struct deferred {
    struct deferred *next;
    void (*fn)(void *arg);
    void *arg;
};

struct exchange { /* one request and its answer, in its own arena */
    struct request r;
    int64_t body_left;                /* bytes to come; chunked: -1, and 0 after the last chunk */
    int64_t answer_left;              /* of a streamed body; -1: chunked or until close */
    bool keep_alive, http10, no_body; /* no_body: HEAD, 204, 304 */
    bool continue_sent, body_broken;
    bool begun, ended, chunked_out, close_after, cut, gone; /* gone: the client can't be written to */
    bool pushed;
    struct buf fields; /* header lines by reply_header */
    struct buf unsent; /* a head that waits for the first piece of its body */
    struct done ready; /* the socket is, for waiting */
    uint32_t waiting;
    struct deferred *deferred;
};

struct http_conn {
    struct io io;
    struct timer timer;
    struct mono deadline;
    struct listener *listener;
    struct http_conn *prev, *next;
    enum conn_state state;
    bool loopback, hung_up, answered; /* answered: at least once */
    struct head *head;                /* NULL while idle */
    struct exchange *x;               /* NULL unless CONN_BUSY */
    struct buf in;                    /* read, not yet used: [in_at, in.len) */
    size_t in_at;
    int64_t drop_left;
    struct mono give_up; /* on lingering, however busily the client sends */
    struct push push;
    char ip[INET6_ADDRSTRLEN];
};

/* For appends whose size is bounded where they are made: failing is a bug here, not an input. */
static inline void must(enum err err)
{
    if (err)
        abort();
}

/* Life cycle (conn.c). */
struct http_conn *conn_new(struct listener *l, int fd, const struct sockaddr *peer);
void conn_close(struct http_conn *c);
/* Ends it gracefully: idle ones and streams at once, busy ones after their answer. */
void conn_shut(struct http_conn *c);
/* Sends what fits at once and closes with CONN_LINGER: answers made on the loop, without a coroutine. */
void conn_refuse(struct http_conn *c, int status, const char *sentence);
void conn_deadline(struct http_conn *c, int64_t us);
void conn_linger(struct http_conn *c);
/* Whether an answer must be the last one, given what is still unread. */
bool conn_must_close(const struct http_conn *c);

/* Answer pieces (reply.c). */
const char *http_reason(int status);
void reply_head_simple(struct buf *out, int status, size_t length); /* of a refusal without an exchange */

void push_on_io(struct http_conn *c, uint32_t events); /* push.c */
void push_closed(struct http_conn *c);

/* listen.c */
struct listener {
    struct server *server;
    struct loop *loop;
    struct io io;
    struct timer retry; /* accepting again after the system ran out of descriptors */
    struct http_conn *conns;
    size_t n_conns, max_conns;
    struct head *spare_heads[64];
    size_t n_spare;
    struct http_conn *dead;
    bool stopping, paused;
    int port;
    struct done emptied;
    char scratch[64 * 1024]; /* every read of heads and dropped bytes lands here first */
};
struct head *listener_head_take(struct listener *l);
void listener_head_give(struct listener *l, struct head **h);
void listener_conn_gone(struct http_conn *c); /* unlinks and frees at the end of the round; resumes accepting */
#endif
