/* The life of a connection, as seen from the loop. Deadlines are lazy: moving one later costs nothing, the timer finds
 * out when it fires; so a busy keep-alive connection does not stir the timer heap with each request. */
#include "server/http/conn.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/http/conn_io.h"
#include "server/http/listen.h"
#include "server/http/route.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void on_io(struct io *io, uint32_t events);
static void on_timer(struct timer *t);
static void feed(struct http_conn *c, const char *p, size_t n);

static const struct server_conf *conf_of(const struct http_conn *c)
{
    return c->listener->server->conf;
}

static void set_peer(struct http_conn *c, const struct sockaddr *peer)
{
    if (peer->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        inet_ntop(AF_INET, &in->sin_addr, c->ip, sizeof c->ip);
        c->loopback = (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    } else if (peer->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)peer;
        inet_ntop(AF_INET6, &in6->sin6_addr, c->ip, sizeof c->ip);
        c->loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
                      (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127);
    }
}

struct http_conn *conn_new(struct listener *l, int fd, const struct sockaddr *peer)
{
    struct errinfo ei;
    struct http_conn *c = mem_zalloc(sizeof *c);
    c->listener = l;
    c->io.fd = fd;
    c->io.fn = on_io;
    c->timer.fn = on_timer;
    c->deadline = MONO_NEVER;
    buf_init(&c->in, 64 * 1024);
    buf_init(&c->push.out, (size_t)conf_of(c)->stream_backlog_bytes);
    set_peer(c, peer);
    /* Answers leave at once: without this, a head and a body in two segments wait 40 ms for the client's ACK. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (loop_io_add(l->loop, &c->io, EPOLLIN, &ei) != ERR_OK) {
        LOGW("http", "connection dropped: %s", err_message(&ei));
        close(fd);
        mem_free(c);
        return NULL;
    }
    c->next = l->conns;
    if (c->next)
        c->next->prev = c;
    l->conns = c;
    l->n_conns++;
    l->server->metrics.connections = l->n_conns;
    conn_deadline(c, conf_of(c)->idle_timeout_us);
    return c;
}

void conn_deadline(struct http_conn *c, int64_t us)
{
    c->deadline = us > 0 ? mono_add(loop_now(c->listener->loop), us) : MONO_NEVER;
    if (us > 0 && (c->timer.heap_index == 0 || mono_before(c->deadline, c->timer.at)))
        loop_timer_set(c->listener->loop, &c->timer, c->deadline);
}

void conn_close(struct http_conn *c)
{
    if (c->state == CONN_DEAD)
        return;
    if (c->state == CONN_PUSH)
        push_closed(c);
    c->state = CONN_DEAD;
    loop_timer_stop(&c->timer);
    loop_io_remove(&c->io);
    close(c->io.fd);
    buf_done(&c->in);
    buf_done(&c->push.out);
    c->push.ops = NULL;
    listener_head_give(c->listener, &c->head);
    listener_conn_gone(c);
}

void conn_linger(struct http_conn *c)
{
    c->state = CONN_LINGER;
    c->drop_left = CONN_LINGER_MAX;
    listener_head_give(c->listener, &c->head);
    buf_done(&c->in);
    c->in_at = 0;
    if (c->hung_up || shutdown(c->io.fd, SHUT_WR) < 0) {
        conn_close(c);
        return;
    }
    loop_io_set(&c->io, EPOLLIN);
    conn_deadline(c, CONN_LINGER_SILENT_US);
    c->give_up = mono_add(loop_now(c->listener->loop), CONN_LINGER_US);
}

void conn_refuse(struct http_conn *c, int status, const char *sentence)
{
    struct buf body = BUF_INIT(2048), out = BUF_INIT(4096);
    struct jsonw w;
    struct metrics *m = &c->listener->server->metrics;

    jsonw_init(&w, &body);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", sentence);
    jsonw_end_object(&w);
    reply_head_simple(&out, status, body.len);
    if (buf_append(&out, buf_cstr(&body), body.len) == ERR_OK && send(c->io.fd, out.data, out.len, MSG_NOSIGNAL) > 0)
        m->bytes_out += out.len;
    m->by_status[status]++;
    m->requests++;
    buf_done(&out);
    buf_done(&body);
    conn_linger(c);
}

void conn_shut(struct http_conn *c)
{
    if (c->state == CONN_PUSH)
        push_close(&c->push);
    else if (c->state == CONN_HEAD)
        conn_close(c); /* nothing is owed on it, and nothing unread */
}

bool conn_must_close(const struct http_conn *c)
{
    const struct exchange *x = c->x;
    if (!x->keep_alive || c->listener->stopping || x->cut || x->body_broken)
        return true;
    if (x->body_left == 0)
        return false;
    /* Unread: an announced body that was never asked for may come or not; a long or unknown rest isn't worth reading.
     */
    return ((x->r.expect_100 || x->r.expect_other) && !x->continue_sent) || x->body_left < 0 ||
           x->body_left > CONN_DRAIN_MAX;
}

/* Ready for the next request, which may be waiting in the buffer already. */
static void next_request(struct http_conn *c)
{
    c->state = CONN_HEAD;
    conn_deadline(c, conf_of(c)->idle_timeout_us);
    loop_io_set(&c->io, EPOLLIN);
    if (c->listener->stopping) {
        conn_linger(c);
        return;
    }
    size_t n = c->in.len - c->in_at;
    if (n == 0) {
        buf_done(&c->in);
        c->in_at = 0;
        return;
    }
    /* The bytes are moved out first, as feed() may put a rest of them back. */
    char *data = c->in.data;
    size_t at = c->in_at;
    buf_init(&c->in, c->in.max);
    c->in_at = 0;
    feed(c, data + at, n);
    mem_free(data);
}

static void drain(struct http_conn *c)
{
    size_t have = c->in.len - c->in_at;
    size_t drop = (int64_t)have < c->drop_left ? have : (size_t)c->drop_left;
    c->in_at += drop;
    c->drop_left -= (int64_t)drop;
    if (c->drop_left == 0) {
        next_request(c);
        return;
    }
    c->state = CONN_DRAIN;
    conn_deadline(c, CONN_DRAIN_US);
    loop_io_set(&c->io, EPOLLIN);
}

static void free_exchange(struct http_conn *c)
{
    struct exchange *x = c->x;
    for (struct deferred *d = x->deferred; d; d = d->next)
        d->fn(d->arg);
    buf_done(&x->fields);
    buf_done(&x->unsent);
    c->x = NULL;
    struct arena *mem = x->r.mem;
    arena_free(&mem);
    listener_head_give(c->listener, &c->head);
}

/* After the handler: the one place that decides what becomes of the connection. */
static void end_exchange(struct http_conn *c)
{
    struct exchange *x = c->x;
    bool lost = x->gone || x->cut || c->hung_up, last = x->close_after, pushed = x->pushed;
    int64_t unread = x->body_left;

    c->listener->server->metrics.aborted += x->gone;
    c->answered = true;
    free_exchange(c);
    if (pushed) {
        c->state = CONN_PUSH;
        conn_deadline(c, 0);
        buf_done(&c->in);
        c->in_at = 0;
        if (c->push.closing || lost)
            conn_close(c);
        else
            loop_io_set(&c->io, EPOLLIN | EPOLLRDHUP | (c->push.out.len ? EPOLLOUT : 0));
    } else if (lost) {
        conn_close(c);
    } else if (last) {
        conn_linger(c);
    } else {
        c->drop_left = unread;
        drain(c);
    }
}

static void run_exchange(void *arg)
{
    struct http_conn *c = arg;
    struct exchange *x = c->x;

    route_dispatch(&x->r);
    if (x->r.status == 0 && !x->gone) {
        LOGE("http", "%s " SV_FMT " was left without an answer", x->r.method, SV_ARG(x->r.path));
        reply_message(&x->r, 500, "INTERNAL_ERROR", "Internal server error");
    }
    if (x->begun && !x->ended)
        reply_end(&x->r, false);
    LOGD("http", "%s " SV_FMT " %d %lld us", x->r.method, SV_ARG(x->r.path), x->r.status,
         (long long)mono_diff(mono_now(), x->r.started));
    end_exchange(c);
}

static void start_exchange(struct http_conn *c)
{
    const struct head_info *info = head_info(c->head);
    struct arena *mem = arena_new(4096);
    struct exchange *x = arena_alloc(mem, sizeof *x);
    struct server *s = c->listener->server;

    x->r = (struct request){
        .server = s,
        .conn = c,
        .mem = mem,
        .method = info->method,
        .path = info->path,
        .query = info->query,
        .headers = info->headers,
        .n_headers = info->n_headers,
        .client_ip = c->ip,
        .content_length = info->content_length,
        .chunked = info->chunked,
        .expect_100 = info->expect_100,
        .expect_other = info->expect_other,
        .started = loop_now(c->listener->loop),
    };
    x->body_left = info->chunked ? -1 : info->content_length > 0 ? info->content_length : 0;
    x->keep_alive = info->keep_alive;
    x->http10 = info->http10;
    x->no_body = strcmp(info->method, "HEAD") == 0;
    buf_init(&x->fields, 32 * 1024);
    buf_init(&x->unsent, 40 * 1024);
    c->x = x;
    c->state = CONN_BUSY;
    conn_deadline(c, 0);
    s->metrics.requests++;
    coro_spawn(c->listener->loop, run_exchange, c);
}

/* Bytes that belong to a request's head, as far as it goes; the rest is kept for the body. */
static void feed(struct http_conn *c, const char *p, size_t n)
{
    size_t used;
    if (!c->head)
        c->head = listener_head_take(c->listener);
    bool started = head_started(c->head);
    switch (head_feed(c->head, p, n, &used)) {
    case HEAD_MORE:
        conn_acknowledge(c);
        if (!started)
            conn_deadline(c, conf_of(c)->head_timeout_us);
        return;
    case HEAD_BAD:
        conn_refuse(c, head_problem_status(c->head), head_problem(c->head));
        return;
    case HEAD_DONE:
        conn_put_back(c, p + used, n - used);
        start_exchange(c);
        return;
    }
}

static void on_readable(struct http_conn *c)
{
    struct listener *l = c->listener;
    size_t cap = c->state == CONN_HEAD ? HEAD_BYTES_MAX : sizeof l->scratch;
    ssize_t n = recv(c->io.fd, l->scratch, cap, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_close(c);
        return;
    }
    l->server->metrics.bytes_in += (uint64_t)n;
    if (c->state == CONN_HEAD) {
        feed(c, l->scratch, (size_t)n);
    } else if (c->state == CONN_DRAIN) {
        conn_put_back(c, l->scratch, (size_t)n);
        drain(c);
    } else {
        c->drop_left -= n;
        struct mono silent = mono_add(loop_now(l->loop), CONN_LINGER_SILENT_US);
        c->deadline = mono_earlier(silent, c->give_up);
        if (c->drop_left < 0)
            conn_close(c);
    }
}

static void on_io(struct io *io, uint32_t events)
{
    struct http_conn *c = container_of(io, struct http_conn, io);
    switch (c->state) {
    case CONN_BUSY:
        if (events & (EPOLLHUP | EPOLLERR)) {
            /* Reported whatever the interest: unregister, or the loop would spin until the handler ends. */
            c->hung_up = true;
            loop_io_remove(&c->io);
        } else if (!(events & c->x->waiting)) {
            loop_io_set(&c->io, 0);
            return;
        }
        if (c->x->waiting)
            done_set(&c->x->ready);
        return;
    case CONN_PUSH:
        push_on_io(c, events);
        return;
    case CONN_HEAD:
    case CONN_DRAIN:
    case CONN_LINGER:
        on_readable(c);
        return;
    case CONN_DEAD:
        return;
    }
}

static void on_timer(struct timer *t)
{
    struct http_conn *c = container_of(t, struct http_conn, timer);
    if (mono_before(loop_now(c->listener->loop), c->deadline)) {
        if (c->deadline.us != MONO_NEVER.us)
            loop_timer_set(c->listener->loop, t, c->deadline);
        return;
    }
    if (c->state == CONN_HEAD && c->head && head_started(c->head))
        conn_refuse(c, 408, "the request's head did not come in time");
    else if (c->state == CONN_HEAD && c->answered)
        conn_linger(c);
    else
        conn_close(c);
}
