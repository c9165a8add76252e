/* What a small request costs, in calls that can be counted: a regression shows here before any clock sees it. */
#include "client.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/epoll.h>

/* ---- what libcurl and the loop call, counted in this thread ---- */

static __thread struct {
    int polls, sends, receives, ctls, waits, mallocs;
} calls;

#define REAL(name, type, params, args, counter)                                                                        \
    type name params                                                                                                   \
    {                                                                                                                  \
        static type(*real) params;                                                                                     \
        if (real == NULL)                                                                                              \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                 \
        calls.counter++;                                                                                               \
        return real args;                                                                                              \
    }

REAL(poll, int, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), polls)
REAL(send, ssize_t, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), sends)
REAL(recv, ssize_t, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), receives)
REAL(epoll_ctl, int, (int ep, int op, int fd, struct epoll_event *ev), (ep, op, fd, ev), ctls)
REAL(epoll_pwait2, int, (int ep, struct epoll_event *ev, int n, const struct timespec *t, const sigset_t *mask),
     (ep, ev, n, t, mask), waits)

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *malloc(size_t n)
{
    calls.mallocs++;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    calls.mallocs++;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    calls.mallocs++;
    return __libc_realloc(p, n);
}
#endif

/* ---- the request ---- */

static void answer(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    while (stub_head(s, fd, head, sizeof head))
        stub_send(fd,
                  "HTTP/1.1 200 OK\r\nServer: stub\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
}

static void get(struct httpc_peer *p, const char *path)
{
    struct http_req req = get_of(path);
    struct http_resp r;
    assert_int_equal(perform(p, &req, &r), ERR_OK);
    assert_int_equal(r.status, 200);
    http_resp_done(&r);
}

static void a_kept_connection_costs_few_calls(void **state)
{
    (void)state;
    enum { WARM = 20, N = 200 };
    struct httpc_peer *p = served_by(answer, NULL);
    httpc_peer_header(p, "Cookie", "token=some.long.token");
    for (int i = 0; i < WARM; i++)
        get(p, "/api/files?parent=1");
    memset(&calls, 0, sizeof calls);
    for (int i = 0; i < N; i++)
        get(p, i % 2 ? "/api/files?parent=1" : "/api/files?parent=another");
    assert_int_equal(calls.sends, N);
    assert_int_equal(calls.receives, N);
    assert_int_equal(calls.ctls, 0);
    assert_int_equal(calls.polls, 2 * N); /* libcurl's: is it alive, is the answer here already */
    assert_true(calls.waits <= 3 * N);
    assert_true(calls.mallocs <= 4 * N); /* the answer's head and body */
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(a_kept_connection_costs_few_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
