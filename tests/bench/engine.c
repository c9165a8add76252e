/* The bench of src/net: small GETs through the HTTP client as apps send them (a peer, so a connection, for each of the
 * requests in flight), with event streams held or not, measured from inside; and the event server that holds them.
 *
 *   engine get URL IN_FLIGHT REQUESTS [STREAMS_URL N]   one JSON line: rate, CPU, memory of streams and peers
 *   engine streams                                      prints its port, then serves until its stdin ends */
#include "base/mem.h"
#include "base/str.h"
#include "net/httpc.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *loop;

static int complain(const char *what, const struct errinfo *ei)
{
    fprintf(stderr, "engine: %s: %s\n", what, err_message(ei));
    return err_exit_status(ei->code);
}

/* Beside a socket each: the loop, libcurl's pairs, the standard ones. */
static int allow_files(uint64_t need)
{
    struct rlimit lim;
    getrlimit(RLIMIT_NOFILE, &lim);
    if (lim.rlim_max < need) {
        fprintf(stderr, "engine: needs %llu open files and may have %llu (ulimit -Hn): hold fewer streams\n",
                (unsigned long long)need, (unsigned long long)lim.rlim_max);
        return 3;
    }
    if (lim.rlim_cur < need) {
        lim.rlim_cur = lim.rlim_max;
        setrlimit(RLIMIT_NOFILE, &lim);
    }
    return 0;
}

enum { OTHER_FILES = 64 };

/* ---- the client's side ---- */

struct load {
    struct httpc_peer *peer;
    int64_t left;
    uint64_t failed;
};

static void get_all(void *arg)
{
    struct load *load = arg;
    for (; load->left > 0; load->left--) {
        struct http_req req = {.method = "GET", .path = "/small.json"};
        struct http_resp r;
        load->failed += httpc_perform(load->peer, &req, &r, NULL) != ERR_OK || r.status != 200;
        http_resp_done(&r);
    }
}

static size_t streams_up, streams_gone;

static bool on_data(void *arg, const char *p, size_t n)
{
    (void)arg, (void)p, (void)n;
    return true;
}
static bool on_open(void *arg, const struct http_resp *head)
{
    (void)arg;
    streams_up += head->status == 200;
    return true;
}
static void on_close(void *arg, enum err err, const struct http_resp *r, const struct errinfo *why)
{
    (void)arg, (void)err, (void)r, (void)why;
    streams_gone++;
}

/* In steps, as a careful client would: no listen queue takes thousands at once. */
static bool hold_streams(struct httpc *h, const char *url, size_t n, struct errinfo *ei)
{
    static const struct httpc_stream_ops ops = {on_open, on_data, on_close};
    static struct httpc_stream *s; /* nobody's: they end with h */
    struct mono until = mono_add(mono_now(), 60 * US_PER_S);
    for (size_t i = 0; i < n; i++) {
        struct httpc_peer *p = NULL;
        if (httpc_peer_new(&p, h, url, NULL, ei) != ERR_OK ||
            httpc_stream_open(&s, p, "/events", NULL, 0, &ops, NULL, ei) != ERR_OK)
            return false;
        while (i + 1 - streams_up > 200 && streams_gone == 0 && mono_before(mono_now(), until))
            loop_step(loop, until);
    }
    while (streams_up < n && streams_gone == 0 && mono_before(mono_now(), until))
        loop_step(loop, until);
    if (streams_up < n)
        (void)err_set(ei, ERR_ENV, "only %zu of %zu streams are up", streams_up, n);
    return streams_up == n;
}

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%*u %llu", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int64_t number(const char *text)
{
    int64_t n = 0;
    if (!sv_to_i64(sv_of(text), &n) || n < 1 || n > 1000000000) {
        fprintf(stderr, "engine: %s is not a number\n", text);
        exit(2);
    }
    return n;
}

static int run_get(const char *url, size_t in_flight, int64_t requests, const char *streams_url, size_t streams)
{
    struct errinfo ei = {0};
    struct httpc *h = NULL;
    int rc = allow_files(in_flight + streams + OTHER_FILES);
    if (rc != 0)
        return rc;
    struct httpc_conf conf = {.user_agent = ""}; /* wrk sends none either */
    if (loop_new(&loop, &ei) != ERR_OK || httpc_new(&h, loop, &conf, &ei) != ERR_OK)
        return complain("start", &ei);
    uint64_t before = resident_bytes();
    if (streams > 0 && !hold_streams(h, streams_url, streams, &ei))
        return complain("streams", &ei);
    uint64_t held = resident_bytes() - before;

    struct load *loads = mem_zalloc(in_flight * sizeof *loads);
    for (size_t i = 0; i < in_flight; i++) {
        if (httpc_peer_new(&loads[i].peer, h, url, NULL, &ei) != ERR_OK)
            return complain("peer", &ei);
        loads[i].left = 1; /* the connection is made before the clock starts */
        get_all(&loads[i]);
        loads[i].left = requests / (int64_t)in_flight;
    }
    uint64_t peers = resident_bytes() - before - held;
    struct group g = {0};
    struct mono from = mono_now();
    int64_t cpu = clock_process_cpu_us();
    for (size_t i = 0; i < in_flight; i++)
        group_spawn(loop, &g, get_all, &loads[i]);
    group_wait(loop, &g);
    double seconds = (double)mono_diff(mono_now(), from) / US_PER_S;
    cpu = clock_process_cpu_us() - cpu;

    uint64_t failed = 0;
    for (size_t i = 0; i < in_flight; i++) {
        failed += loads[i].failed;
        httpc_peer_free(&loads[i].peer);
    }
    int64_t done = requests / (int64_t)in_flight * (int64_t)in_flight;
    printf("{\"requests\":%lld,\"failed\":%llu,\"per_second\":%.0f,\"cpu_seconds_per_100k\":%.3f,\"streams\":%zu,"
           "\"bytes_per_stream\":%.0f,\"bytes_per_peer\":%.0f}\n",
           (long long)done, (unsigned long long)failed, (double)done / seconds, (double)cpu / 10 / (double)done,
           streams_up, streams > 0 ? (double)held / (double)streams : 0.0, (double)peers / (double)in_flight);
    mem_free(loads);
    httpc_free(&h);
    loop_free(&loop);
    return failed == 0 && streams_gone == 0 ? 0 : 1;
}

/* ---- the event server: it costs a descriptor and 40 bytes a stream ---- */

static void on_client(struct io *io, uint32_t events)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n: hello\n\n";
    char request[4096];
    (void)events;
    ssize_t n = read(io->fd, request, sizeof request);
    if (n > 0 && write(io->fd, head, sizeof head - 1) == (ssize_t)sizeof head - 1)
        return;
    loop_io_remove(io);
    close(io->fd);
    mem_free(io);
}

static void on_listener(struct io *io, uint32_t events)
{
    (void)events;
    for (int fd; (fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct io *c = mem_zalloc(sizeof *c);
        c->fd = fd;
        c->fn = on_client;
        if (loop_io_add(loop, c, EPOLLIN, NULL) != ERR_OK) {
            close(fd);
            mem_free(c);
        }
    }
}

static void on_stdin(struct io *io, uint32_t events)
{
    char c;
    (void)events;
    if (read(io->fd, &c, 1) <= 0)
        loop_stop(loop);
}

static int run_streams(void)
{
    struct errinfo ei = {0};
    struct rlimit lim;
    getrlimit(RLIMIT_NOFILE, &lim);
    lim.rlim_cur = lim.rlim_max;
    setrlimit(RLIMIT_NOFILE, &lim);
    if (loop_new(&loop, &ei) != ERR_OK)
        return complain("start", &ei);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof sa;
    struct io listener = {.fn = on_listener}, in = {.fd = STDIN_FILENO, .fn = on_stdin};
    listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(listener.fd, (struct sockaddr *)&sa, n) != 0 || listen(listener.fd, 4096) != 0 ||
        getsockname(listener.fd, (struct sockaddr *)&sa, &n) != 0) {
        perror("engine: listen");
        return 3;
    }
    if (loop_io_add(loop, &listener, EPOLLIN, &ei) != ERR_OK || loop_io_add(loop, &in, EPOLLIN, &ei) != ERR_OK)
        return complain("watch", &ei);
    printf("%d\n", ntohs(sa.sin_port));
    fflush(stdout);
    loop_run(loop);
    return 0; /* the clients left with their processes; the rest goes with this one */
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "streams") == 0)
        return run_streams();
    if ((argc != 5 && argc != 7) || strcmp(argv[1], "get") != 0) {
        fprintf(stderr, "usage: engine get URL IN_FLIGHT REQUESTS [STREAMS_URL N] | engine streams\n");
        return 2;
    }
    return run_get(argv[2], (size_t)number(argv[3]), number(argv[4]), argc == 7 ? argv[5] : NULL,
                   argc == 7 ? (size_t)number(argv[6]) : 0);
}
