/* One coroutine a connection, and the socket registered once, edge-triggered for both directions: a request costs a
 * send, a receive, and its share of an epoll_wait, as in ab and wrk. */
#include "net/stress.h"
#include "base/mem.h"
#include "net/dial.h"
#include "net/http_url.h"
#include "net/tls.h"

#include <errno.h>
#include <http_parser.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK_BYTES 65536
#define GRACE_US    (5 * US_PER_S)
#define LINGER_US   (1 * US_PER_S) /* how long the server may take to close what it said it would */

struct conn {
    struct stress *s;
    struct io io; /* fd -1: not connected */
    struct done ready;
    struct tls *tls;
    http_parser parser;
    bool in_server_field, complete, more; /* more: the socket may hold unread bytes */
    struct stress_sample x;
    struct mono began, sent, first;
    char why[160];
};

struct stress {
    struct loop *loop;
    struct stress_conf conf;
    struct tls_ctx *tls;
    struct dial *dial;
    char *host;
    struct conn *conns;
    uint64_t started;
    struct mono start, last, end; /* no request begins after last, none runs after end; us 0: no such limit */
    bool stopping, cut;
    struct stress_info info;
    char chunk[CHUNK_BYTES]; /* what is read is parsed before anything else may run: one for all */
};

/* ---- answers ---- */

static int on_begin(http_parser *p)
{
    struct conn *c = p->data;
    c->in_server_field = false;
    return 0;
}

static int on_field(http_parser *p, const char *at, size_t n)
{
    struct conn *c = p->data;
    c->in_server_field = !c->s->info.known && n == 6 && strncasecmp(at, "server", n) == 0;
    return 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
    struct conn *c = p->data;
    struct stress_info *info = &c->s->info;
    if (c->in_server_field)
        snprintf(info->server, sizeof info->server, "%.*s", (int)n, at);
    return 0;
}

static int on_head(http_parser *p)
{
    const struct conn *c = p->data;
    return c->s->conf.is_head ? 1 : 0; /* 1: no body follows */
}

static int on_body(http_parser *p, const char *at, size_t n)
{
    struct conn *c = p->data;
    (void)at;
    c->x.body_bytes += n;
    return 0;
}

static int on_complete(http_parser *p)
{
    struct conn *c = p->data;
    if (p->status_code / 100 == 1) /* 100 Continue and its kin: the answer is still to come */
        return 0;
    c->complete = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_message_begin = on_begin,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

/* ---- the socket ---- */

static void on_io(struct io *io, uint32_t events)
{
    struct conn *c = container_of(io, struct conn, io);
    (void)events;
    done_set(&c->ready);
}

static void hang_up(struct conn *c)
{
    tls_free(&c->tls);
    if (c->io.fd >= 0) {
        loop_io_remove(&c->io);
        close(c->io.fd);
    }
    c->io = (struct io){.fd = -1, .fn = on_io};
}

static enum stress_failure fail(struct conn *c, enum stress_failure f, const char *why)
{
    snprintf(c->why, sizeof c->why, "%s", why);
    c->x.reason = c->why;
    return f;
}

static const char unfinished[] = "not finished when the run ended";

static struct mono soonest(const struct stress *s, struct mono deadline)
{
    return s->end.us ? mono_earlier(s->end, deadline) : deadline;
}

static bool ran_out(const struct stress *s)
{
    return s->cut || (s->end.us && mono_passed(s->end));
}

static MAY_YIELD enum stress_failure wait_ready(struct conn *c, struct mono deadline)
{
    struct stress *s = c->s;
    if (!s->cut && done_wait_until(s->loop, &c->ready, soonest(s, deadline)) && !s->cut)
        return STRESS_ANSWERED;
    return ran_out(s) ? fail(c, STRESS_UNFINISHED, unfinished) : fail(c, STRESS_TIMEOUT, "no answer in time");
}

static MAY_YIELD enum stress_failure start_tls(struct conn *c, struct mono deadline)
{
    struct errinfo ei = {0};
    c->tls = tls_new(c->s->tls, c->io.fd, c->s->host);
    if (!c->tls)
        return fail(c, STRESS_CONNECT, "TLS cannot be set up");
    for (;;) {
        enum tls_step step = tls_handshake(c->tls, &ei);
        if (step == TLS_DONE)
            return STRESS_ANSWERED;
        if (step != TLS_AGAIN)
            return fail(c, STRESS_CONNECT, err_message(&ei));
        enum stress_failure f = wait_ready(c, deadline);
        if (f != STRESS_ANSWERED)
            return f;
    }
}

static MAY_YIELD enum stress_failure dial(struct conn *c, struct mono deadline)
{
    struct stress *s = c->s;
    struct errinfo ei = {0};
    enum err err = dial_connect(s->loop, s->dial, soonest(s, deadline), &c->io.fd, &ei);
    c->ready.set = false;
    if (!err && (err = loop_io_add(s->loop, &c->io, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &ei))) {
        close(c->io.fd);
        c->io.fd = -1;
    }
    if (err && ran_out(s))
        return fail(c, STRESS_UNFINISHED, unfinished);
    if (err)
        return fail(c,
                    err == ERR_TIMEOUT ? STRESS_TIMEOUT
                    : err == ERR_LOCAL ? STRESS_LOCAL
                                       : STRESS_CONNECT,
                    err_message(&ei));
    enum stress_failure f = s->tls ? start_tls(c, deadline) : STRESS_ANSWERED;
    if (f != STRESS_ANSWERED)
        hang_up(c);
    return f;
}

/* ---- one request ---- */

/* Bytes moved, 0 at the end of the stream, -1 with errno (EAGAIN: wait). */
static ssize_t receive(struct conn *c)
{
    char *dst = c->s->chunk;
    size_t got = 0;
    if (!c->tls)
        return recv(c->io.fd, dst, CHUNK_BYTES, 0);
    enum tls_step step = tls_read(c->tls, dst, CHUNK_BYTES, &got);
    errno = step == TLS_AGAIN ? EAGAIN : ECONNRESET;
    return step == TLS_DONE ? (ssize_t)got : step == TLS_END ? 0 : -1;
}

static ssize_t transmit(struct conn *c, struct sv a, struct sv b)
{
    size_t done = 0;
    if (!c->tls) {
        struct iovec v[2] = {{(void *)(uintptr_t)a.p, a.n}, {(void *)(uintptr_t)b.p, b.n}};
        struct msghdr m = {.msg_iov = v + (a.n == 0), .msg_iovlen = (a.n > 0) + (size_t)(b.n > 0)};
        return sendmsg(c->io.fd, &m, MSG_NOSIGNAL);
    }
    enum tls_step step = a.n ? tls_write(c->tls, a.p, a.n, &done) : tls_write(c->tls, b.p, b.n, &done);
    errno = step == TLS_AGAIN ? EAGAIN : EPIPE;
    return step == TLS_DONE ? (ssize_t)done : -1;
}

/* Reads what lies there. ANSWERED when the answer is whole or more must be waited for: c->complete tells. */
static enum stress_failure take_answer(struct conn *c)
{
    while (!c->complete) {
        ssize_t n = receive(c);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return STRESS_ANSWERED;
        if (n < 0)
            return fail(c, STRESS_RECEIVE, "the connection broke before the answer was whole");
        if (n > 0 && !c->first.us)
            c->first = mono_now();
        c->x.bytes_received += (uint64_t)n;
        size_t used = http_parser_execute(&c->parser, &settings, c->s->chunk, (size_t)n);
        if (c->complete)
            break;
        if (n == 0)
            return fail(c, STRESS_RECEIVE, "the connection ended before the answer was whole");
        if (used != (size_t)n)
            return fail(c, STRESS_PROTOCOL, "the answer is not HTTP");
    }
    return STRESS_ANSWERED;
}

/* An answer may come while the request is still being written, and after that broke: a refusal's reason counts. */
static MAY_YIELD enum stress_failure send_request(struct conn *c, struct mono deadline)
{
    struct sv head = c->s->conf.head, body = c->s->conf.body;
    while (head.n + body.n > 0 && !c->complete) {
        ssize_t n = transmit(c, head, body);
        if (n > 0) {
            size_t of_head = (size_t)n < head.n ? (size_t)n : head.n, of_body = (size_t)n - of_head;
            head = (struct sv){head.p + of_head, head.n - of_head};
            body = (struct sv){body.p + of_body, body.n - of_body};
            c->x.bytes_sent += (uint64_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            enum stress_failure f = take_answer(c);
            return c->complete            ? STRESS_ANSWERED
                   : f == STRESS_ANSWERED ? fail(c, STRESS_SEND, "the connection broke while the request was sent")
                                          : STRESS_SEND;
        }
        enum stress_failure f = wait_ready(c, deadline);
        if (f == STRESS_ANSWERED)
            f = take_answer(c);
        if (f != STRESS_ANSWERED)
            return f;
    }
    return STRESS_ANSWERED;
}

static MAY_YIELD enum stress_failure exchange(struct conn *c, struct mono deadline)
{
    http_parser_init(&c->parser, HTTP_RESPONSE);
    c->parser.data = c;
    c->complete = false;
    c->first = (struct mono){0};
    c->x.bytes_sent = c->x.bytes_received = c->x.body_bytes = 0;
    enum stress_failure f = send_request(c, deadline);
    c->sent = mono_now();
    while (f == STRESS_ANSWERED && !c->complete) {
        if ((f = wait_ready(c, deadline)) == STRESS_ANSWERED)
            f = take_answer(c);
    }
    return f;
}

/* The side that closes first keeps the port for a minute: let the server, who said that it would. */
static MAY_YIELD void linger(struct conn *c)
{
    struct mono until = mono_add(mono_now(), LINGER_US);
    ssize_t n;
    while ((n = receive(c)) > 0 || (n < 0 && errno == EAGAIN && wait_ready(c, until) == STRESS_ANSWERED))
        continue;
}

static void finish_sample(struct conn *c, enum stress_failure f, struct mono due)
{
    struct stress_sample *x = &c->x;
    struct stress_info *info = &c->s->info;
    x->failure = f;
    x->done = mono_now();
    x->total_us = mono_diff(x->done, c->began);
    x->from_due_us = mono_diff(x->done, due);
    if (f == STRESS_ANSWERED) {
        x->status = (int)c->parser.status_code;
        x->kept = c->s->conf.keep_alive && http_should_keep_alive(&c->parser);
        x->wait_us = mono_before(c->first, c->sent) ? 0 : mono_diff(c->first, c->sent);
        if (!info->known)
            info->body_bytes = x->body_bytes;
        info->known = true;
    }
    c->s->conf.on_sample(c->s->conf.arg, x);
}

static bool lost_when_idle(const struct conn *c, enum stress_failure f)
{
    return (f == STRESS_SEND || f == STRESS_RECEIVE) && c->x.reused && !c->first.us && c->s->conf.idempotent &&
           !c->x.retried;
}

static MAY_YIELD void ask(struct conn *c, struct mono due)
{
    const struct stress_conf *conf = &c->s->conf;
    c->began = conf->rate > 0 ? mono_now() : due;
    struct mono deadline = mono_add(c->began, conf->timeout_us);
    enum stress_failure f;
    c->x = (struct stress_sample){.reused = c->io.fd >= 0};
    do {
        c->x.retried = c->x.reused && c->io.fd < 0;
        f = STRESS_ANSWERED;
        if (c->io.fd < 0) {
            struct mono from = mono_now();
            f = dial(c, deadline);
            c->x.connect_us = mono_diff(mono_now(), from);
        }
        if (f == STRESS_ANSWERED)
            f = exchange(c, deadline);
        if (f != STRESS_ANSWERED)
            hang_up(c);
    } while (f != STRESS_ANSWERED && lost_when_idle(c, f));
    finish_sample(c, f, due);
    if (f != STRESS_ANSWERED)
        return;
    bool whole = c->x.bytes_sent == conf->head.n + conf->body.n; /* less: it answered early, the rest is not wanted */
    if (whole && c->x.kept)
        return;
    if (whole)
        linger(c);
    hang_up(c);
}

/* ---- all of them ---- */

/* The next request's turn: false when there is none. With a rate it may be a while until then. */
static MAY_YIELD bool take_turn(struct conn *c, struct mono *due)
{
    struct stress *s = c->s;
    if (s->stopping || (s->conf.requests && s->started >= s->conf.requests))
        return false;
    *due = s->conf.rate > 0 ? mono_add(s->start, (int64_t)((double)s->started * 1e6 / s->conf.rate)) : mono_now();
    if (s->last.us && !mono_before(*due, s->last))
        return false;
    s->started++;
    while (!mono_passed(*due) && !s->stopping)
        (void)done_wait_until(s->loop, &c->ready, *due);
    return !s->stopping;
}

static void serve_turns(void *arg)
{
    struct conn *c = arg;
    struct mono due;
    while (take_turn(c, &due))
        ask(c, due);
    hang_up(c);
}

enum err stress_new(struct stress **out, struct loop *l, const struct stress_conf *conf, struct errinfo *ei)
{
    struct http_url u;
    enum err err = http_url_parse(conf->url, &u, ei);
    if (err)
        return err;
    struct stress *s = mem_zalloc(sizeof *s);
    s->loop = l;
    s->conf = *conf;
    s->host = mem_strdup(u.host);
    err = dial_new(&s->dial, u.host, u.port, ei);
    if (!err && strcmp(u.scheme, "https") == 0)
        err = tls_ctx_new(&s->tls, conf->cafile, conf->insecure, ei);
    http_url_done(&u);
    if (err) {
        stress_free(&s);
        return err;
    }
    s->conns = mem_zalloc(conf->connections * sizeof *s->conns);
    for (unsigned i = 0; i < conf->connections; i++)
        s->conns[i] = (struct conn){.s = s, .io = {.fd = -1, .fn = on_io}};
    *out = s;
    return ERR_OK;
}

void stress_run(struct stress *s)
{
    struct group g = {0};
    s->start = mono_now();
    if (s->conf.limit_us) {
        s->last = mono_add(s->start, s->conf.limit_us);
        s->end = mono_add(s->last, GRACE_US);
    }
    for (unsigned i = 0; i < s->conf.connections; i++)
        group_spawn(s->loop, &g, serve_turns, &s->conns[i]);
    group_wait(s->loop, &g);
}

void stress_stop(struct stress *s, bool now)
{
    s->stopping = true;
    s->cut = s->cut || now;
    for (unsigned i = 0; i < s->conf.connections; i++)
        done_set(&s->conns[i].ready);
}

const struct stress_info *stress_info(const struct stress *s)
{
    return &s->info;
}

void stress_free(struct stress **s)
{
    if (!*s)
        return;
    dial_free(&(*s)->dial);
    tls_ctx_free(&(*s)->tls);
    mem_free((*s)->host);
    mem_free((*s)->conns);
    MEM_FREE(*s);
}
