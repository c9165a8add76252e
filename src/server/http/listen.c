#include "server/http/listen.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "server/http/conn.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPT_BATCH    64
#define REFUSED_AT_ONCE 8 /* connections above the limit, each just long enough to be told so */
#define RETRY_US        (100 * US_PER_MS)

static void pause_accepting(struct listener *l)
{
    l->paused = true;
    loop_io_set(&l->io, 0);
    loop_timer_set(l->loop, &l->retry, mono_add(loop_now(l->loop), RETRY_US));
}

static void resume_accepting(struct listener *l)
{
    if (!l->paused || l->stopping)
        return;
    l->paused = false;
    loop_timer_stop(&l->retry);
    loop_io_set(&l->io, EPOLLIN);
}

static void on_retry(struct timer *t)
{
    resume_accepting(container_of(t, struct listener, retry));
}

/* Once a second at most: a full server must not fill the log as well. */
static void complain(struct listener *l, const char *why)
{
    static struct mono last;
    if (last.us == 0 || mono_diff(loop_now(l->loop), last) > US_PER_S) {
        last = loop_now(l->loop);
        LOGW("http", "new connections wait: %s (%zu are open)", why, l->n_conns);
    }
}

static void on_accept(struct io *io, uint32_t events)
{
    struct listener *l = container_of(io, struct listener, io);
    (void)events;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage peer;
        socklen_t len = sizeof peer;
        if (l->n_conns >= l->max_conns + REFUSED_AT_ONCE) {
            complain(l, "the limit of connections is reached");
            pause_accepting(l);
            return;
        }
        int fd = accept4(io->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            if (errno != EAGAIN) {
                complain(l, strerror(errno));
                pause_accepting(l);
            }
            return;
        }
        l->server->metrics.accepted++;
        struct http_conn *c = conn_new(l, fd, (struct sockaddr *)&peer);
        if (c && l->n_conns > l->max_conns) {
            complain(l, "the limit of connections is reached");
            l->server->metrics.refused_connections++;
            conn_refuse(c, 503, "This server holds as many connections as it may. Try again shortly.");
        }
    }
}

static void free_dead(void *arg)
{
    struct listener *l = arg;
    while (l->dead) {
        struct http_conn *c = l->dead;
        l->dead = c->next;
        mem_free(c);
    }
}

void listener_conn_gone(struct http_conn *c)
{
    struct listener *l = c->listener;
    if (c->prev)
        c->prev->next = c->next;
    else
        l->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    l->n_conns--;
    l->server->metrics.connections = l->n_conns;
    /* Events of this round may still name it: freed when the round is over. */
    if (!l->dead)
        loop_defer(l->loop, free_dead, l);
    c->next = l->dead;
    l->dead = c;
    resume_accepting(l);
    if (l->n_conns == 0 && l->stopping)
        done_set(&l->emptied);
}

struct head *listener_head_take(struct listener *l)
{
    if (l->n_spare == 0)
        return head_new();
    struct head *h = l->spare_heads[--l->n_spare];
    head_reset(h);
    return h;
}

void listener_head_give(struct listener *l, struct head **h)
{
    if (!*h)
        return;
    if (l->n_spare == ARRAY_LEN(l->spare_heads)) {
        head_free(h);
        return;
    }
    l->spare_heads[l->n_spare++] = *h;
    *h = NULL;
}

static enum err open_socket(const char *host, int port, int *out, struct errinfo *ei)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *list;
    char service[16];

    snprintf(service, sizeof service, "%d", port);
    int rc = getaddrinfo(host, service, &hints, &list);
    if (rc != 0)
        return err_set(ei, ERR_USAGE, "%s is no address to listen on: %s", host, gai_strerror(rc));
    int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    enum err err = ERR_OK;
    if (fd < 0)
        err = err_sys(ei, ERR_ENV, "no socket");
    else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
             bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, 4096) < 0)
        err = err_sys(ei, ERR_ENV, "cannot listen on %s port %d", host, port);
    freeaddrinfo(list);
    if (err && fd >= 0)
        close(fd);
    *out = err ? -1 : fd;
    return err;
}

static int bound_port(int fd)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

enum err listener_new(struct listener **out, struct server *s, const char *host, int port, size_t max_conns,
                      struct errinfo *ei)
{
    int fd = -1;
    enum err err = open_socket(host, port, &fd, ei);
    if (err)
        return err;
    struct listener *l = mem_zalloc(sizeof *l);
    l->server = s;
    l->loop = s->loop;
    l->max_conns = max_conns;
    l->port = bound_port(fd);
    l->retry.fn = on_retry;
    l->io.fd = fd;
    l->io.fn = on_accept;
    err = loop_io_add(l->loop, &l->io, EPOLLIN, ei);
    if (err) {
        close(fd);
        mem_free(l);
        return err;
    }
    *out = l;
    return ERR_OK;
}

int listener_port(const struct listener *l)
{
    return l->port;
}

void listener_stop(struct listener *l, int64_t grace_us)
{
    if (l->stopping)
        return;
    l->stopping = true;
    loop_timer_stop(&l->retry);
    loop_io_remove(&l->io);
    close(l->io.fd);
    for (struct http_conn *c = l->conns, *next; c; c = next) {
        next = c->next;
        conn_shut(c);
    }
    if (l->n_conns > 0 && !done_wait_until(l->loop, &l->emptied, mono_add(mono_now(), grace_us)))
        LOGW("http", "cut at the end of the grace time: %s", COUNTED(l->n_conns, "connection"));
}

void listener_free(struct listener **lp)
{
    struct listener *l = *lp;
    if (!l)
        return;
    for (struct http_conn *c = l->conns, *next; c; c = next) {
        next = c->next;
        if (c->state != CONN_BUSY)
            conn_close(c);
    }
    free_dead(l);
    while (l->n_spare)
        head_free(&l->spare_heads[--l->n_spare]);
    MEM_FREE(*lp);
}
