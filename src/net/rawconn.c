#include "net/rawconn.h"
#include "base/mem.h"
#include "net/http_url.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rawconn {
    struct io io;
    struct loop *loop;
    struct done ready;
};

static void on_io(struct io *io, uint32_t events)
{
    struct rawconn *c = container_of(io, struct rawconn, io);
    (void)events;
    loop_io_set(io, 0);
    done_set(&c->ready);
}

static MAY_YIELD enum err wait_for(struct rawconn *c, uint32_t events, struct mono deadline, struct errinfo *ei)
{
    loop_io_set(&c->io, events);
    bool ready = done_wait_until(c->loop, &c->ready, deadline);
    loop_io_set(&c->io, 0);
    return ready ? ERR_OK : err_set(ei, ERR_TIMEOUT, "nothing moved in time");
}

static enum err broken(int os, struct errinfo *ei)
{
    errno = os;
    if (os == EPIPE)
        return err_set(ei, ERR_CLOSED, "broken pipe");
    return err_sys(ei, os == ECONNRESET ? ERR_RESET : ERR_IO, "connection lost");
}

/* IPv6 addresses stand in brackets in a URL. */
static struct addrinfo *resolve(const struct http_url *u)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC}, *found = NULL;
    char host[256], port[16];
    size_t n = strlen(u->host);
    bool bracketed = n > 2 && u->host[0] == '[';
    snprintf(host, sizeof host, "%.*s", (int)(bracketed ? n - 2 : n), u->host + bracketed);
    snprintf(port, sizeof port, "%d", u->port);
    return getaddrinfo(host, port, &want, &found) == 0 ? found : NULL;
}

static MAY_YIELD enum err connect_to(struct rawconn *c, const struct addrinfo *a, struct mono deadline,
                                     struct errinfo *ei)
{
    int os = 0;
    c->io.fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->io.fd < 0)
        return err_sys(ei, ERR_CONNECT, "no socket");
    setsockopt(c->io.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    enum err e = loop_io_add(c->loop, &c->io, 0, ei);
    if (e == ERR_OK && connect(c->io.fd, a->ai_addr, a->ai_addrlen) < 0)
        e = errno == EINPROGRESS ? wait_for(c, EPOLLOUT, deadline, ei) : err_sys(ei, ERR_CONNECT, "cannot connect");
    if (e == ERR_OK && getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &os, &(socklen_t){sizeof os}) == 0 && os != 0) {
        errno = os;
        e = err_sys(ei, ERR_CONNECT, "cannot connect");
    }
    if (e == ERR_OK)
        return ERR_OK;
    loop_io_remove(&c->io);
    close(c->io.fd);
    c->io = (struct io){.fd = -1, .fn = on_io};
    return e;
}

enum err rawconn_open(struct rawconn **out, struct loop *l, const char *url, struct mono deadline, struct errinfo *ei)
{
    struct http_url u;
    enum err e = http_url_parse(url, &u, ei);
    if (e != ERR_OK)
        return e;
    bool plain = strcmp(u.scheme, "http") == 0;
    struct addrinfo *all = plain ? resolve(&u) : NULL;
    http_url_done(&u);
    if (!plain)
        return err_set(ei, ERR_USAGE, "a bare connection speaks no TLS");
    if (!all)
        return err_set(ei, ERR_RESOLVE, "the host of %s is not known", url);
    struct rawconn *c = mem_zalloc(sizeof *c);
    c->loop = l;
    c->io = (struct io){.fd = -1, .fn = on_io};
    e = ERR_CONNECT;
    for (const struct addrinfo *a = all; a && e != ERR_OK; a = a->ai_next)
        e = connect_to(c, a, deadline, ei);
    freeaddrinfo(all);
    if (e == ERR_OK)
        *out = c;
    else
        mem_free(c);
    return e;
}

void rawconn_close(struct rawconn **c)
{
    if (!*c)
        return;
    loop_io_remove(&(*c)->io);
    close((*c)->io.fd);
    MEM_FREE(*c);
}

enum err rawconn_write(struct rawconn *c, const void *p, size_t n, struct mono deadline, struct errinfo *ei)
{
    const char *at = p;
    while (n > 0) {
        ssize_t done = send(c->io.fd, at, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EAGAIN) {
            enum err e = wait_for(c, EPOLLOUT, deadline, ei);
            if (e != ERR_OK)
                return e;
        } else if (done < 0 && errno != EINTR) {
            return broken(errno, ei);
        } else if (done > 0) {
            at += done;
            n -= (size_t)done;
        }
    }
    return ERR_OK;
}

enum err rawconn_read(struct rawconn *c, void *dst, size_t cap, size_t *got, struct mono deadline, struct errinfo *ei)
{
    *got = 0;
    for (;;) {
        ssize_t n = recv(c->io.fd, dst, cap, 0);
        if (n >= 0) {
            *got = (size_t)n;
            return ERR_OK;
        }
        if (errno != EAGAIN && errno != EINTR)
            return broken(errno, ei);
        enum err e = errno == EINTR ? ERR_OK : wait_for(c, EPOLLIN, deadline, ei);
        if (e != ERR_OK)
            return e;
    }
}

bool rawconn_readable(const struct rawconn *c)
{
    struct pollfd p = {.fd = c->io.fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}
