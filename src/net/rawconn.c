#include "net/rawconn.h"
#include "base/mem.h"
#include "net/dial.h"
#include "net/http_url.h"

#include <errno.h>
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

enum err rawconn_open(struct rawconn **out, struct loop *l, const char *url, struct mono deadline, struct errinfo *ei)
{
    struct http_url u;
    enum err e = http_url_parse(url, &u, ei);
    if (e != ERR_OK)
        return e;
    struct dial *dial = NULL;
    if (strcmp(u.scheme, "http") == 0)
        e = dial_new(&dial, u.host, u.port, ei);
    else
        e = err_set(ei, ERR_USAGE, "a bare connection speaks no TLS");
    http_url_done(&u);
    if (e != ERR_OK)
        return e;
    struct rawconn *c = mem_zalloc(sizeof *c);
    c->loop = l;
    c->io = (struct io){.fd = -1, .fn = on_io};
    e = dial_connect(l, dial, deadline, &c->io.fd, ei);
    dial_free(&dial);
    if (e == ERR_OK && (e = loop_io_add(l, &c->io, 0, ei)) != ERR_OK)
        close(c->io.fd);
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
