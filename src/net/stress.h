#ifndef NET_STRESS_H
#define NET_STRESS_H
/* The stress engine: one HTTP/1.1 request, sent over and over through so many connections, each answer timed and handed
 * to the caller. It does as little as can be done a request (no libcurl: measured, twice the processor time of ab),
 * which is all that a generator that must not be the limit can do. The owner of http_parser.h for answers. Layer 1.
 *
 * Closed loop: each connection sends its next request when it has its answer. With a rate, request k is due at start +
 * k/rate whatever the answers do, the next free connection takes it, and from_due_us tells what a user would have
 * waited. */
#include "base/str.h"
#include "net/coro.h"

enum stress_failure { /* why there is no answer */
                      STRESS_ANSWERED,
                      STRESS_CONNECT,  /* refused, unreachable, or TLS failed */
                      STRESS_LOCAL,    /* this machine had no port, descriptor or memory left for a connection */
                      STRESS_SEND,     /* the connection broke while the request was written, and no answer lay there */
                      STRESS_RECEIVE,  /* it broke, or ended, before the answer was whole */
                      STRESS_TIMEOUT,  /* not whole within the time limit of a request */
                      STRESS_PROTOCOL, /* not HTTP */
                      STRESS_UNFINISHED, /* the run ended first */
                      STRESS_FAILURES
};
struct stress_sample {
    enum stress_failure failure;
    int status;           /* 0 without an answer */
    bool reused, retried; /* retried: the idle connection had been closed; asked once more on a fresh one */
    bool kept;            /* the server leaves the connection open for more, as it was asked to */
    int64_t connect_us;   /* with TLS; 0 on a reused connection */
    int64_t wait_us;      /* from the request's last byte to the answer's first */
    int64_t total_us;     /* from the start of connecting or sending to the answer's last byte */
    struct mono done;
    int64_t from_due_us;                             /* the same from when it was due */
    uint64_t bytes_sent, bytes_received, body_bytes; /* body_bytes: of the answer */
    const char *reason;                              /* of a failure; valid during the call */
};
struct stress_conf {
    const char *url;    /* scheme, host and port count here */
    const char *cafile; /* with https; NULL: the system's */
    bool insecure;
    struct sv head, body; /* the request as it goes out; borrowed. Connection: must say what keep_alive says */
    bool is_head;         /* the method is HEAD: no body follows */
    bool idempotent;      /* may be sent again when an idle connection turns out to be closed (RFC 9110 9.2.2) */
    bool keep_alive;
    unsigned connections;
    uint64_t requests;  /* 0: as many as the time allows */
    int64_t limit_us;   /* no new request after it; those running then get 5 s. 0: none */
    int64_t timeout_us; /* of a request */
    double rate;        /* requests per second; 0: closed loop */
    void (*on_sample)(void *arg, const struct stress_sample *s);
    void *arg;
};
struct stress_info { /* of the first answer */
    char server[64]; /* its Server header, cut; "" without one */
    uint64_t body_bytes;
    bool known;
};

struct stress;
enum err stress_new(struct stress **out, struct loop *l, const struct stress_conf *conf,
                    struct errinfo *ei) WARN_UNUSED;
/* Until all is done or stress_stop was called. */
MAY_YIELD void stress_run(struct stress *s);
void stress_stop(struct stress *s, bool now); /* no new requests; now: what runs is unfinished. From a callback, too */
const struct stress_info *stress_info(const struct stress *s);
void stress_free(struct stress **s);
#endif
