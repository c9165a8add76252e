/* The floor of what was chosen: small GETs by libcurl's multi_socket interface on a bare epoll loop, with nothing of
 * ours in between. One easy handle a connection, set up once and added again for each request; its options are those
 * that are known to pay (lazy epoll_ctl, no pools, no proxy, small buffers), its answers are counted and dropped. All
 * connections are in one multi, so that each request finds a free one among them.
 *
 *   floor URL IN_FLIGHT REQUESTS      one JSON line, as engine's */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { FDS = 4096, BATCH = 256 };

static struct {
    CURLM *multi;
    int epfd;
    long timeout_ms;               /* libcurl's wish, -1: none */
    unsigned wants[FDS], has[FDS]; /* what libcurl waits for, what epoll does */
    long left, in_flight, failed;
} b;

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int on_timer(CURLM *m, long ms, void *arg)
{
    (void)m, (void)arg;
    b.timeout_ms = ms;
    return 0;
}

/* An idle connection stays registered for reading. */
static int on_socket(CURL *e, curl_socket_t fd, int what, void *arg, void *unused)
{
    (void)e, (void)arg, (void)unused;
    if (fd >= FDS)
        abort();
    if (what == CURL_POLL_REMOVE) {
        b.wants[fd] = 0;
        return 0;
    }
    b.wants[fd] = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (b.wants[fd] == b.has[fd])
        return 0;
    struct epoll_event ev = {.events = b.wants[fd], .data.fd = fd};
    if (epoll_ctl(b.epfd, b.has[fd] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) != 0)
        abort();
    b.has[fd] = b.wants[fd];
    return 0;
}

static int on_close(void *arg, curl_socket_t fd)
{
    (void)arg;
    b.wants[fd] = b.has[fd] = 0;
    return close(fd);
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    (void)p, (void)arg;
    return size * n;
}

/* ---- requests ---- */

static void next_request(CURL *e)
{
    if (b.left == 0)
        return;
    b.left--;
    b.in_flight++;
    curl_multi_add_handle(b.multi, e);
}

static void take_results(void)
{
    int queued;
    for (CURLMsg *m; (m = curl_multi_info_read(b.multi, &queued)) != NULL;) {
        CURL *e = m->easy_handle;
        long status = 0;
        curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
        b.failed += m->data.result != CURLE_OK || status != 200;
        b.in_flight--;
        curl_multi_remove_handle(b.multi, e);
        next_request(e);
    }
}

static void act(curl_socket_t fd, int flags)
{
    int running;
    curl_multi_socket_action(b.multi, fd, flags, &running);
    take_results();
}

static void run(void)
{
    struct epoll_event events[BATCH];
    while (b.in_flight > 0) {
        int n = b.timeout_ms == 0 ? 0 : epoll_wait(b.epfd, events, BATCH, (int)b.timeout_ms);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (b.wants[fd] != 0) /* else an idle connection that the server closed */
                act(fd, (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                            (events[i].events & ~(unsigned)EPOLLOUT ? CURL_CSELECT_IN : 0));
        }
        if (b.timeout_ms == 0 || n == 0) {
            b.timeout_ms = -1;
            act(CURL_SOCKET_TIMEOUT, 0);
        }
    }
}

static CURL *handle(const char *url)
{
    CURL *e = curl_easy_init();
    CURLU *u = curl_url();
    if (e == NULL || u == NULL || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        abort();
    curl_easy_setopt(e, CURLOPT_CURLU, u);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 4096L);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, 0L);
    curl_easy_setopt(e, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    return e;
}

static void all_at_once(CURL **easy, long n, long requests)
{
    b.left = requests;
    for (long i = 0; i < n; i++)
        next_request(easy[i]);
    run();
}

int main(int argc, char **argv)
{
    long n = argc == 4 ? atol(argv[2]) : 0, requests = argc == 4 ? atol(argv[3]) : 0;
    if (n < 1 || n > FDS / 2 || requests < n) {
        fprintf(stderr, "usage: floor URL IN_FLIGHT REQUESTS\n");
        return 2;
    }
    curl_global_init(CURL_GLOBAL_ALL);
    b.multi = curl_multi_init();
    b.epfd = epoll_create1(EPOLL_CLOEXEC);
    b.timeout_ms = -1;
    curl_multi_setopt(b.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(b.multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(b.multi, CURLMOPT_MAXCONNECTS, n);
    CURL **easy = calloc((size_t)n, sizeof(CURL *));
    for (long i = 0; i < n; i++)
        easy[i] = handle(argv[1]);
    all_at_once(easy, n, n); /* the connections are made before the clock starts */
    double from = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    all_at_once(easy, n, requests);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("{\"requests\":%ld,\"failed\":%ld,\"per_second\":%.0f,\"cpu_seconds_per_100k\":%.3f}\n", requests, b.failed,
           (double)requests / (seconds(CLOCK_MONOTONIC) - from), cpu / (double)requests * 1e5);
    return b.failed == 0 ? 0 : 1;
}
