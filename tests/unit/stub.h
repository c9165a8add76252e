#ifndef STUB_H
#define STUB_H
/* A server in a thread of the test: each accepted connection runs serve(fd, number) in a thread of its own, numbers
 * from 0. Port 0 on loopback. stub_stop joins everything; connections still open are shut down first. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STUB_CONNS = 512 };
struct stub;
typedef void stub_serve(struct stub *s, int fd, int number);
struct stub_conn {
    struct stub *stub;
    pthread_t thread;
    int fd, number;
};
struct stub {
    stub_serve *serve;
    void *arg;
    int listener, port;
    atomic_int accepted, requests;
    pthread_t thread;
    pthread_mutex_t lock;
    struct stub_conn conns[STUB_CONNS];
    char url[64], last_head[8192];
};

static inline void stub_send(int fd, const char *text)
{
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Reads a request head into head (NUL-terminated); bytes behind it stay in the socket. False at the end. */
static inline bool stub_head(struct stub *s, int fd, char *head, size_t cap)
{
    size_t n = 0;
    while (n + 1 < cap && (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0)) {
        if (recv(fd, head + n, 1, 0) != 1)
            return false;
        n++;
    }
    head[n] = '\0';
    pthread_mutex_lock(&s->lock);
    snprintf(s->last_head, sizeof s->last_head, "%s", head);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->requests, 1);
    return true;
}

/* What the latest connection asked, once its answer was seen. */
static inline const char *stub_last_head(struct stub *s)
{
    pthread_mutex_lock(&s->lock); /* tells the race detector what the answer told us */
    pthread_mutex_unlock(&s->lock);
    return s->last_head;
}

static inline long stub_length(const char *head)
{
    const char *p = strcasestr(head, "\r\ncontent-length:");
    return p != NULL ? atol(p + 17) : -1;
}

/* Reads n body bytes into dst, or drops them when dst is NULL. False when the client left first. */
static inline bool stub_body(int fd, char *dst, long n)
{
    char drop[65536];
    while (n > 0) {
        size_t want = dst == NULL && n > (long)sizeof drop ? sizeof drop : (size_t)n;
        ssize_t got = recv(fd, dst != NULL ? dst : drop, want, 0);
        if (got <= 0)
            return false;
        if (dst != NULL)
            dst += got;
        n -= got;
    }
    return true;
}

/* Waits until the client closes. */
static inline void stub_drain(int fd)
{
    char drop[65536];
    while (recv(fd, drop, sizeof drop, 0) > 0)
        ;
}

/* Serves a client that it never answers. */
static inline void stub_only_read(struct stub *s, int fd, int number)
{
    (void)s, (void)number;
    stub_drain(fd);
}

static inline void stub_reset(int fd)
{
    struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/* What stub_play answers to each connection's one request; then it is closed. */
struct stub_script {
    const char *answer;
    bool reset;
};

static inline void stub_play(struct stub *s, int fd, int number)
{
    const struct stub_script *script = s->arg;
    char head[8192];
    (void)number;
    if (!stub_head(s, fd, head, sizeof head))
        return;
    stub_send(fd, script->answer);
    if (script->reset && *script->answer)
        usleep(20000); /* what was sent is read before the reset overtakes it */
    if (script->reset)
        stub_reset(fd);
}

static void *stub_conn_main(void *arg)
{
    struct stub_conn *c = arg;
    c->stub->serve(c->stub, c->fd, c->number);
    pthread_mutex_lock(&c->stub->lock);
    close(c->fd);
    c->fd = -1;
    pthread_mutex_unlock(&c->stub->lock);
    return NULL;
}

static void *stub_accept_main(void *arg)
{
    struct stub *s = arg;
    for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0 || errno == EMFILE;) {
        if (fd < 0) { /* the test has run out of descriptors, and will have some again */
            usleep(1000);
            continue;
        }
        int n = atomic_load(&s->accepted);
        struct stub_conn *c = &s->conns[n];
        c->stub = s;
        c->number = n;
        pthread_mutex_lock(&s->lock);
        c->fd = fd;
        pthread_mutex_unlock(&s->lock);
        if (n + 1 > STUB_CONNS)
            abort();
        atomic_store(&s->accepted, n + 1); /* before the answer: the test looks at it as soon as it has that */
        if (pthread_create(&c->thread, NULL, stub_conn_main, c) != 0)
            abort();
    }
    return NULL;
}

static inline struct stub *stub_start_on(const char *addr, int port, stub_serve *serve, void *arg)
{
    struct stub *s = calloc(1, sizeof *s);
    s->serve = serve;
    s->arg = arg;
    bool v6 = strchr(addr, ':') != NULL;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    inet_pton(AF_INET, addr, &v4.sin_addr);
    inet_pton(AF_INET6, addr, &a6.sin6_addr);
    struct sockaddr *sa = v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&v4;
    socklen_t n = v6 ? sizeof a6 : sizeof v4;
    int on = 1;
    s->listener = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (s->listener < 0 || bind(s->listener, sa, n) != 0 || listen(s->listener, 512) != 0) {
        free(s);
        return NULL;
    }
    getsockname(s->listener, sa, &n);
    s->port = ntohs(v6 ? a6.sin6_port : v4.sin_port);
    snprintf(s->url, sizeof s->url, v6 ? "http://[%s]:%d" : "http://%s:%d", addr, s->port);
    pthread_mutex_init(&s->lock, NULL);
    if (pthread_create(&s->thread, NULL, stub_accept_main, s) != 0)
        abort();
    return s;
}

static inline struct stub *stub_start(stub_serve *serve, void *arg)
{
    return stub_start_on("127.0.0.1", 0, serve, arg);
}

static inline void stub_stop(struct stub *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < atomic_load(&s->accepted); i++)
        if (s->conns[i].fd >= 0)
            shutdown(s->conns[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < atomic_load(&s->accepted); i++)
        pthread_join(s->conns[i].thread, NULL);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
#endif
