#include "net/dial.h"
#include "base/mem.h"
#include "net/guard.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct dial {
    struct addrinfo *addrs;
    unsigned n, next;
};
struct attempt {
    struct io io;
    struct done ready;
};

enum err dial_new(struct dial **out, const char *host, int port, struct errinfo *ei)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *found = NULL;
    char bare[256], service[16];
    size_t n = strlen(host);
    bool bracketed = n > 2 && host[0] == '[' && host[n - 1] == ']';
    snprintf(bare, sizeof(bare), "%.*s", (int)(bracketed ? n - 2 : n), host + bracketed);
    snprintf(service, sizeof(service), "%d", port);
    enum err e = guard_judge(host, ei);
    if (e != ERR_OK)
        return e;
    if (getaddrinfo(bare, service, &want, &found) != 0)
        return err_set(ei, ERR_RESOLVE, "the host %s has no address", host);
    *out = mem_zalloc(sizeof(**out));
    (*out)->addrs = found;
    for (const struct addrinfo *a = found; a; a = a->ai_next)
        (*out)->n++;
    return ERR_OK;
}

void dial_free(struct dial **d)
{
    if (!*d)
        return;
    freeaddrinfo((*d)->addrs);
    MEM_FREE(*d);
}

static void on_io(struct io *io, uint32_t events)
{
    (void)events;
    loop_io_set(io, 0);
    done_set(&container_of(io, struct attempt, io)->ready);
}

static enum err failed(int os, struct errinfo *ei)
{
    errno = os;
    if (os == ETIMEDOUT)
        return err_sys(ei, ERR_TIMEOUT, "cannot connect");
    return err_sys(ei, os == ECONNRESET ? ERR_RESET : ERR_CONNECT, "cannot connect");
}

static MAY_YIELD enum err await(struct loop *l, int fd, struct mono deadline, struct errinfo *ei)
{
    struct attempt a = {.io = {.fd = fd, .fn = on_io}};
    int os = 0;
    enum err e = loop_io_add(l, &a.io, EPOLLOUT, ei);
    if (e != ERR_OK)
        return e;
    bool ready = done_wait_until(l, &a.ready, deadline);
    loop_io_remove(&a.io);
    if (!ready)
        return err_set(ei, ERR_TIMEOUT, "no connection in time");
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &os, &(socklen_t){sizeof(os)}) != 0)
        os = errno;
    return os ? failed(os, ei) : ERR_OK;
}

static MAY_YIELD enum err attempt(struct loop *l, const struct addrinfo *a, struct mono deadline, int *out,
                                  struct errinfo *ei)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    enum err e = ERR_OK;
    if (fd < 0)
        return err_sys(ei, ERR_CONNECT, "no socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0)
        e = errno == EINPROGRESS ? await(l, fd, deadline, ei) : failed(errno, ei);
    if (e == ERR_OK)
        *out = fd;
    else
        close(fd);
    return e;
}

enum err dial_connect(struct loop *l, struct dial *d, struct mono deadline, int *fd, struct errinfo *ei)
{
    unsigned first = d->next++ % d->n;
    enum err e = ERR_CONNECT;
    for (unsigned i = 0; i < d->n && e != ERR_OK && e != ERR_LOCAL; i++) {
        const struct addrinfo *a = d->addrs;
        for (unsigned skip = (first + i) % d->n; skip; skip--)
            a = a->ai_next;
        e = attempt(l, a, deadline, fd, ei);
    }
    return e;
}
