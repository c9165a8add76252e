/* Waiting for the socket in an exchange's coroutine. Interest in epoll is changed only when something has to be waited
 * for (or came unasked, conn.c): a request that arrives in one piece and an answer that fits the socket's buffer cost
 * none. */
#include "server/http/conn_io.h"
#include "base/mem.h"
#include "server/server.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

static MAY_YIELD enum err wait_for(struct http_conn *c, uint32_t events, int64_t us)
{
    struct exchange *x = c->x;
    struct loop *l = c->listener->loop;
    if (c->hung_up)
        return ERR_CLOSED;
    x->waiting = events;
    loop_io_set(&c->io, events);
    bool ready = done_wait_until(l, &x->ready, mono_add(mono_now(), us));
    x->waiting = 0;
    if (c->hung_up)
        return ERR_CLOSED;
    return ready ? ERR_OK : ERR_TIMEOUT;
}

/* A client that writes a request in pieces, with Nagle's algorithm on, holds each piece until the one before it is
 * acknowledged, and the kernel puts that off by 40 ms. */
void conn_acknowledge(const struct http_conn *c)
{
    setsockopt(c->io.fd, IPPROTO_TCP, TCP_QUICKACK, &(int){1}, sizeof(int));
}

enum err conn_await(struct http_conn *c, int64_t us)
{
    conn_acknowledge(c);
    return wait_for(c, EPOLLIN, us);
}

size_t conn_buffered(const struct http_conn *c)
{
    return c->in.len - c->in_at;
}

void conn_drop(struct http_conn *c, size_t n)
{
    c->in_at += n;
    if (c->in_at == c->in.len) {
        buf_done(&c->in);
        c->in_at = 0;
    }
}

size_t conn_take(struct http_conn *c, void *dst, size_t cap)
{
    size_t have = conn_buffered(c), n = have < cap ? have : cap;
    if (n)
        memcpy(dst, c->in.data + c->in_at, n);
    conn_drop(c, n);
    return n;
}

void conn_put_back(struct http_conn *c, const char *p, size_t n)
{
    if (n == 0)
        return;
    if (c->in_at) {
        buf_consume(&c->in, c->in_at);
        c->in_at = 0;
    }
    /* At most one read of the socket stands here: it is read again only when this is used up. */
    must(buf_append(&c->in, p, n));
}

enum err conn_recv(struct http_conn *c, void *dst, size_t cap, size_t *got)
{
    for (;;) {
        ssize_t n = recv(c->io.fd, dst, cap, 0);
        if (n > 0) {
            *got = (size_t)n;
            c->listener->server->metrics.bytes_in += (uint64_t)n;
            return ERR_OK;
        }
        if (n == 0)
            return ERR_CLOSED;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return ERR_CLOSED;
        conn_acknowledge(c);
        enum err err = wait_for(c, EPOLLIN, c->listener->server->conf->body_timeout_us);
        if (err)
            return err;
    }
}

enum err conn_fill(struct http_conn *c)
{
    /* The shared scratch is safe here: nothing else runs between the read and the copy. */
    size_t n;
    enum err err = conn_recv(c, c->listener->scratch, sizeof c->listener->scratch, &n);
    if (!err)
        conn_put_back(c, c->listener->scratch, n);
    return err;
}

static void advance(struct iovec **iov, int *n, size_t sent)
{
    while (*n > 0 && sent >= (*iov)->iov_len) {
        sent -= (*iov)->iov_len;
        ++*iov;
        --*n;
    }
    if (*n > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + sent;
        (*iov)->iov_len -= sent;
    }
}

enum err conn_send(struct http_conn *c, struct iovec *iov, int n)
{
    advance(&iov, &n, 0);
    while (n > 0) {
        struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
        ssize_t sent = c->hung_up ? -1 : sendmsg(c->io.fd, &msg, MSG_NOSIGNAL);
        enum err err = ERR_OK;
        if (sent >= 0) {
            c->listener->server->metrics.bytes_out += (uint64_t)sent;
            advance(&iov, &n, (size_t)sent);
        } else if (!c->hung_up && errno == EAGAIN) {
            err = wait_for(c, EPOLLOUT, CONN_WRITE_US);
        } else if (c->hung_up || errno != EINTR) {
            err = ERR_CLOSED;
        }
        if (err) {
            c->x->gone = true;
            return err;
        }
    }
    return ERR_OK;
}
