#include "server/events/push.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/http/conn.h"
#include "server/http/conn_io.h"
#include "server/server.h"
#include <errno.h>
#include <sys/socket.h>

#define STREAM_SNDBUF (32 * 1024)

static struct http_conn *conn_of(struct push *p)
{
    return container_of(p, struct http_conn, push);
}

struct push *reply_stream(struct request *r, struct sv first, const struct push_ops *ops, void *arg)
{
    struct http_conn *c = r->conn;
    struct exchange *x = c->x;

    reply_header(r, "Cache-Control", "no-cache, no-transform");
    reply_header(r, "X-Accel-Buffering", "no");
    /* The body ends with the connection, so that frames go out as they are, without a chunk around each. */
    x->keep_alive = false;
    x->http10 = true;
    if (reply_begin(r, 200, "text/event-stream; charset=utf-8", -1) != ERR_OK ||
        reply_write(r, first.p, first.n) != ERR_OK)
        return NULL;
    reply_end(r, true);
    if (x->gone || x->no_body)
        return NULL;
    x->pushed = true;
    /* The system would take megabytes for a client that does not read. */
    setsockopt(c->io.fd, SOL_SOCKET, SO_SNDBUF, &(int){STREAM_SNDBUF}, sizeof(int));
    c->push.ops = ops;
    c->push.arg = arg;
    r->server->metrics.streams++;
    return &c->push;
}

enum err reply_stream_write(struct request *r, struct sv bytes)
{
    union {
        const char *in;
        void *out;
    } p = {.in = bytes.p};
    struct iovec iov = {p.out, bytes.n};
    return r->conn->x->pushed ? conn_send(r->conn, &iov, 1) : ERR_CLOSED;
}

static void set_interest(struct http_conn *c)
{
    if (c->state == CONN_PUSH)
        loop_io_set(&c->io, EPOLLIN | EPOLLRDHUP | (c->push.out.len ? EPOLLOUT : 0));
}

/* What the socket takes now; -1 when it is broken. */
static ssize_t try_send(struct http_conn *c, const char *p, size_t n)
{
    ssize_t sent = send(c->io.fd, p, n, MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    c->listener->server->metrics.bytes_out += (uint64_t)sent;
    return sent;
}

bool push_send(struct push *p, struct sv bytes)
{
    struct http_conn *c = conn_of(p);
    if (!p->ops || p->closing || c->hung_up)
        return false;
    if (p->out.len == 0) {
        ssize_t sent = try_send(c, bytes.p, bytes.n);
        if (sent < 0)
            return false;
        bytes.p += sent;
        bytes.n -= (size_t)sent;
        if (bytes.n == 0)
            return true;
    }
    if (buf_append(&p->out, bytes.p, bytes.n) != ERR_OK) {
        c->listener->server->metrics.slow_streams++;
        return false;
    }
    set_interest(c);
    return true;
}

void push_close(struct push *p)
{
    struct http_conn *c = conn_of(p);
    if (p->closing || !p->ops)
        return;
    p->closing = true;
    /* By the timer, as the caller may be walking over its streams. Before the exchange has ended, conn.c closes it
     * there. */
    if (c->state == CONN_PUSH)
        conn_deadline(c, 1);
}

void push_closed(struct http_conn *c)
{
    const struct push_ops *ops = c->push.ops;
    c->push.ops = NULL;
    c->listener->server->metrics.streams--;
    if (ops)
        ops->on_close(c->push.arg);
}

static void flush(struct http_conn *c)
{
    struct buf *out = &c->push.out;
    ssize_t sent = try_send(c, out->data, out->len);
    if (sent < 0) {
        conn_close(c);
        return;
    }
    buf_consume(out, (size_t)sent);
    if (out->len == 0) {
        buf_done(out);
        set_interest(c);
    }
}

void push_on_io(struct http_conn *c, uint32_t events)
{
    if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) {
        conn_close(c);
        return;
    }
    if (events & EPOLLIN) {
        /* A client has nothing to say on a stream: dropped. */
        ssize_t n = recv(c->io.fd, c->listener->scratch, sizeof c->listener->scratch, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            conn_close(c);
            return;
        }
    }
    if ((events & EPOLLOUT) && c->push.out.len)
        flush(c);
}
