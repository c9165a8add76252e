/* Requests of the HTTP client against a scripted server in a thread (stub.h). */
#include "client.h"
#include "net/guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <semaphore.h>
#include <sys/resource.h>

/* ---- a resolver of our own ---- */

/* "two.test" has two addresses, "six.test" an IPv6 one first. */
static int lookups;

static void chain(struct addrinfo **list, const char *text)
{
    struct addrinfo *a = calloc(1, sizeof *a + sizeof(struct sockaddr_in6));
    struct sockaddr_in *v4 = (void *)(a + 1);
    struct sockaddr_in6 *v6 = (void *)(a + 1);
    a->ai_addr = (struct sockaddr *)v4;
    a->ai_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    a->ai_addr->sa_family = (sa_family_t)a->ai_family;
    inet_pton(a->ai_family, text, a->ai_family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr);
    while (*list != NULL)
        list = &(*list)->ai_next;
    *list = a;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
    lookups++;
    *res = NULL;
    if (strcmp(node, "two.test") == 0) {
        chain(res, "127.0.0.1");
        chain(res, "127.0.0.2");
        chain(res, "127.0.0.1"); /* as getaddrinfo does for several protocols */
    } else if (strcmp(node, "six.test") == 0) {
        chain(res, "::1");
        chain(res, "127.0.0.1");
    } else {
        int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(node, service, hints, res);
    }
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    if (list != NULL && list->ai_canonname == NULL && list->ai_protocol == 0 && list->ai_socktype == 0) {
        for (struct addrinfo *next; list != NULL; list = next) {
            next = list->ai_next;
            free(list);
        }
        return;
    }
    void (*real)(struct addrinfo *);
    *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
    real(list);
}

/* ---- plain answers ---- */

/* Answers each request with its request line and body; keeps the connection. */
static void echo(struct stub *s, int fd, int number)
{
    char head[8192], line[2000], body[5000], out[12000];
    (void)number;
    while (stub_head(s, fd, head, sizeof head)) {
        long n = stub_length(head);
        if (n > 0 && (n >= (long)sizeof body || !stub_body(fd, body, n)))
            return;
        body[n > 0 ? n : 0] = '\0';
        sscanf(head, "%1999[^\r]", line);
        int len = snprintf(NULL, 0, "%s|%s", line, body);
        bool no_body = strncmp(line, "HEAD", 4) == 0;
        snprintf(
            out, sizeof out,
            "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-One: 1\r\nSet-Cookie: a=1\r\nset-cookie:  b=2 \r\n\r\n%s%s%s",
            len, no_body ? "" : line, no_body ? "" : "|", no_body ? "" : body);
        stub_send(fd, out);
    }
}

static void methods_bodies_and_reuse(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(echo, NULL);
    static const struct {
        const char *method, *path, *body, *answer, *has, *hasnt;
    } rows[] = {
        {"GET", "/a?b=%20c", NULL, "GET /a?b=%20c HTTP/1.1|", "User-Agent: drivesim/", "Expect"},
        {"POST", "/p", "{}", "POST /p HTTP/1.1|{}", "Content-Type: application/json\r\n", "Expect"},
        {"POST", "/p", NULL, "POST /p HTTP/1.1|", "Content-Length: 0\r\n", "Content-Type"},
        {"PUT", "/../x", "abc", "PUT /../x HTTP/1.1|abc", "Content-Length: 3\r\n", "Expect"},
        {"DELETE", "/d", NULL, "DELETE /d HTTP/1.1|", "Host: 127.0.0.1:", "Content-"},
        {"DELETE", "/d", "x", "DELETE /d HTTP/1.1|x", "Content-Length: 1\r\n", "Expect"},
        {"PROPFIND", "/d", "<x/>", "PROPFIND /d HTTP/1.1|<x/>", "Content-Length: 4\r\n", "Expect"},
        {"PATCH", "/d", "x", "PATCH /d HTTP/1.1|x", "X-App: 7\r\n", "Accept-Encoding"},
        {"HEAD", "/h", NULL, "", "HEAD /h HTTP/1.1\r\n", "Content-"},
        {"GET", "/", NULL, "GET / HTTP/1.1|", "X-App: 7\r\n", "Content-"},
        {"OPTIONS", "/", NULL, "OPTIONS / HTTP/1.1|", "X-App: 7\r\n", "Content-"},
    };
    httpc_peer_header(p, "X-App", "8");
    httpc_peer_header(p, "x-app", NULL);
    httpc_peer_header(p, "X-App", "7");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_req req = get_of(rows[i].path);
        struct http_resp r;
        req.method = rows[i].method;
        req.body = sv_of(rows[i].body);
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        assert_int_equal(r.status, 200);
        assert_string_equal(buf_cstr(&r.body), rows[i].answer);
        if (strstr(stub_last_head(server), rows[i].has) == NULL ||
            strstr(stub_last_head(server), rows[i].hasnt) != NULL)
            fail_msg("row %zu: %s", i, stub_last_head(server));
        assert_int_equal(r.reused, i > 0);
        assert_int_equal(r.connect_us > 0, i == 0);
        assert_true(r.request_sent);
        assert_true(!mono_before(r.first_byte, r.sent) && !mono_before(r.done, r.first_byte));
        assert_true(sv_eq_cstr(http_resp_header(&r, "x-ONE"), "1"));
        assert_true(sv_eq_cstr(http_resp_header(&r, "Set-Cookie"), "b=2"));
        assert_null(http_resp_header(&r, "X-Two").p);
        http_resp_done(&r);
    }
    assert_int_equal(server->accepted, 1);
    struct httpc_stats st;
    httpc_stats(client, &st);
    assert_int_equal(st.connects, 1);
    assert_int_equal(st.requests, ARRAY_LEN(rows));
}

static void a_requests_header_replaces_the_peers(void **state)
{
    (void)state;
    struct stub *s = stub_start(echo, NULL);
    char url[100];
    snprintf(url, sizeof url, "%s/tma/", s->url);
    struct httpc_peer *p = peer_at(url, NULL);
    httpc_peer_header(p, "Cookie", "token=peer");
    httpc_peer_header(p, "X-Split", "one\r\nX-Evil: 1");
    httpc_peer_header(p, "X-Empty", "");
    struct http_req req = get_of("/api");
    struct http_resp r;
    req.headers = (const char *const[]){"cookie: token=own", "If-Match: \"7\"", NULL};
    assert_int_equal(perform(p, &req, &r), ERR_OK);
    assert_string_equal(buf_cstr(&r.body), "GET /tma/api HTTP/1.1|");
    assert_non_null(strstr(stub_last_head(s), "cookie: token=own\r\n"));
    assert_non_null(strstr(stub_last_head(s), "If-Match: \"7\"\r\n"));
    assert_non_null(strstr(stub_last_head(s), "X-Split: one\r\n"));
    assert_non_null(strstr(stub_last_head(s), "X-Empty:"));
    assert_null(strstr(stub_last_head(s), "token=peer"));
    assert_null(strstr(stub_last_head(s), "X-Evil"));
    http_resp_done(&r);
    httpc_peer_free(&p);
    stub_stop(s);
}

static void malformed_requests_are_usage_errors(void **state)
{
    (void)state;
    struct httpc_peer *p = peer_at("http://127.0.0.1:1", NULL);
    const struct http_req rows[] = {
        {.method = "GET", .path = "x"},
        {.method = "GET", .path = "/a b"},
        {.method = "GET", .path = "/a\r\nX: y"},
        {.method = "get", .path = "/"},
        {.method = "GET /x", .path = "/"},
        {.method = "GET", .path = "/", .headers = (const char *const[]){"A: b\r\nC: d", NULL}},
        {.method = "GET", .path = "/", .headers = (const char *const[]){"no colon", NULL}},
        {.method = "POST", .path = "/", .content_type = "a\nb"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_resp r;
        assert_int_equal(perform(p, &rows[i], &r), ERR_USAGE);
        assert_false(r.request_sent);
        http_resp_done(&r);
    }
    httpc_peer_free(&p);
    assert_int_equal(httpc_peer_new(&p, client, "http://127.0.0.1", "not-an-address", &ei), ERR_USAGE);
    assert_int_equal(httpc_peer_new(&p, client, "ftp://127.0.0.1", NULL, &ei), ERR_USAGE);
    assert_null(p);
}

struct job {
    struct httpc_peer *peer;
    int times, failed;
};

static void get_some(void *arg)
{
    struct job *j = arg;
    for (int i = 0; i < j->times; i++) {
        struct http_req req = get_of("/x");
        struct http_resp r;
        j->failed += httpc_perform(j->peer, &req, &r, NULL) != ERR_OK || r.status != 200;
        http_resp_done(&r);
    }
}

/* Each peer has one connection of its own, whatever the others do, also over several multis. */
static void peers_share_no_connection(void **state)
{
    (void)state;
    enum { PEERS = 40 };
    struct httpc_conf conf = {.peers_per_multi = 7};
    httpc_free(&client);
    assert_int_equal(httpc_new(&client, loop, &conf, &ei), ERR_OK);
    struct stub *s = stub_start(echo, NULL);
    struct job jobs[PEERS];
    struct group g = {0};
    for (int i = 0; i < PEERS; i++) {
        jobs[i] = (struct job){peer_at(s->url, NULL), 20, 0};
        group_spawn(loop, &g, get_some, &jobs[i]);
    }
    group_wait(loop, &g);
    struct httpc_stats st;
    httpc_stats(client, &st);
    assert_int_equal(s->accepted, PEERS);
    assert_int_equal(st.connects, PEERS);
    assert_int_equal(s->requests, PEERS * 20);
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(jobs[i].failed, 0);
        httpc_peer_free(&jobs[i].peer);
    }
    loop_step(loop, mono_now());
    for (int i = 0; i < 100; i++) { /* peers come and go: nothing piles up */
        struct job one = {peer_at(s->url, NULL), 1, 0};
        get_some(&one);
        assert_int_equal(one.failed, 0);
        httpc_peer_free(&one.peer);
    }
    stub_stop(s);
}

/* ---- connections that are kept ---- */

struct gated {
    sem_t let; /* how many requests for /held may be answered */
    atomic_int ended;
};

static void gate(struct stub *s, int fd, int number)
{
    struct gated *g = s->arg;
    char head[8192];
    (void)number;
    while (stub_head(s, fd, head, sizeof head)) {
        if (strncmp(head, "GET /held ", 10) == 0)
            sem_wait(&g->let);
        stub_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
    g->ended++;
}

static void get_held(void *arg)
{
    struct job *j = arg;
    struct http_req req = get_of("/held");
    struct http_resp r;
    j->failed += httpc_perform(j->peer, &req, &r, NULL) != ERR_OK || r.status != 200;
    http_resp_done(&r);
}

static void step_until(const atomic_int *n, int want)
{
    struct mono limit = mono_add(mono_now(), 10 * US_PER_S);
    while (*n < want && !mono_passed(limit))
        loop_step(loop, mono_add(mono_now(), 1000));
    assert_int_equal(*n, want);
}

/* What a request needs beside a long one is opened once, used as long as the two are at work, and one is left. */
static void one_connection_is_kept(void **state)
{
    (void)state;
    struct gated gated = {0};
    struct group g = {0};
    sem_init(&gated.let, 0, 0);
    struct httpc_peer *p = served_by(gate, &gated);
    struct job some = {p, 3, 0}, held = {p, 1, 0};
    httpc_peer_keep(p, 1);
    get_some(&some);
    for (int round = 1; round <= 3; round++) {
        group_spawn(loop, &g, get_held, &held);
        step_until(&server->requests, 7 * round - 3);
        get_some(&some);
        assert_int_equal(server->accepted, 1 + round);
        assert_int_equal(gated.ended, round - 1);
        sem_post(&gated.let);
        group_wait(loop, &g);
        step_until(&gated.ended, round);
        get_some(&some);
        assert_int_equal(server->accepted, 1 + round);
    }
    /* The others last longer, and are cut. */
    for (int i = 0; i < 3; i++)
        group_spawn(loop, &g, get_held, &held);
    step_until(&server->requests, 3 + 21 + 3);
    assert_int_equal(held.failed, 0);
    httpc_cancel(client, p);
    group_wait(loop, &g);
    assert_int_equal(held.failed, 3);
    for (int i = 0; i < 3; i++)
        sem_post(&gated.let);
    step_until(&gated.ended, server->accepted);
    get_some(&some);
    get_some(&some);
    assert_int_equal(server->accepted, gated.ended + 1);
    assert_int_equal(some.failed, 0);
    httpc_peer_free(&peer);
    stub_stop(server);
    server = NULL;
    sem_destroy(&gated.let);
}

/* ---- names and addresses ---- */

/* L16: peers spread over a name's addresses, resolved once. */
static void peers_spread_over_addresses(void **state)
{
    (void)state;
    struct stub *a = stub_start_on("127.0.0.1", 0, echo, NULL), *b = stub_start_on("127.0.0.2", a->port, echo, NULL);
    char url[64];
    snprintf(url, sizeof url, "http://two.test:%d", a->port);
    lookups = 0;
    struct job jobs[10];
    for (int i = 0; i < 10; i++) {
        jobs[i] = (struct job){peer_at(url, NULL), 2, 0};
        get_some(&jobs[i]);
        assert_int_equal(jobs[i].failed, 0);
    }
    assert_int_equal(lookups, 1);
    assert_int_equal(a->accepted, 5);
    assert_int_equal(b->accepted, 5);
    stub_stop(b); /* one node gone: its peers reach the other */
    for (int i = 0; i < 10; i++) {
        get_some(&jobs[i]);
        assert_int_equal(jobs[i].failed, 0);
        httpc_peer_free(&jobs[i].peer);
    }
    stub_stop(a);
}

static void ipv6_first_with_an_ipv4_server_costs_no_time(void **state)
{
    (void)state;
    struct stub *s = stub_start(echo, NULL);
    char url[64];
    snprintf(url, sizeof url, "http://six.test:%d", s->port);
    int64_t least = INT64_MAX; /* of several: a wait for the other address would be in each */
    for (int i = 0; i < 10 && least >= 150; i++) {
        struct job j = {peer_at(url, NULL), 3, 0};
        struct mono from = mono_now();
        get_some(&j);
        least = ms_since(from) < least ? ms_since(from) : least;
        assert_int_equal(j.failed, 0);
        assert_non_null(strstr(stub_last_head(s), "Host: six.test:"));
        httpc_peer_free(&j.peer);
    }
    assert_true(least < 150);
    stub_stop(s);
}

/* X06 */
static void ipv6_hosts_keep_their_brackets(void **state)
{
    (void)state;
    struct stub *s = stub_start_on("::1", 0, echo, NULL);
    if (s == NULL)
        skip();
    char host[64];
    snprintf(host, sizeof host, "Host: [::1]:%d\r\n", s->port);
    struct job j = {peer_at(s->url, NULL), 1, 0};
    get_some(&j);
    assert_int_equal(j.failed, 0);
    assert_non_null(strstr(stub_last_head(s), host));
    httpc_peer_free(&j.peer);
    stub_stop(s);
}

static void tell_client_address(struct stub *s, int fd, int number)
{
    char head[8192], out[200], addr[64];
    struct sockaddr_in from;
    socklen_t n = sizeof from;
    (void)number;
    getpeername(fd, (struct sockaddr *)&from, &n);
    inet_ntop(AF_INET, &from.sin_addr, addr, sizeof addr);
    while (stub_head(s, fd, head, sizeof head)) {
        snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(addr), addr);
        stub_send(fd, out);
    }
}

static void source_addresses_are_used(void **state)
{
    (void)state;
    struct stub *s = stub_start(tell_client_address, NULL);
    static const char *const addrs[] = {"127.0.3.7", "127.0.3.8", "127.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
        struct httpc_peer *p = peer_at(s->url, addrs[i]);
        struct http_req req = get_of("/");
        struct http_resp r;
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        assert_string_equal(buf_cstr(&r.body), addrs[i]);
        http_resp_done(&r);
        httpc_peer_free(&p);
    }
    struct httpc_peer *p = peer_at(s->url, "192.0.2.1"); /* not ours */
    struct http_req req = get_of("/");
    struct http_resp r;
    assert_int_equal(perform(p, &req, &r), ERR_LOCAL);
    assert_non_null(strstr(ei.msg, "source address"));
    assert_false(r.request_sent);
    http_resp_done(&r);
    httpc_peer_free(&p);
    stub_stop(s);
}

/* L17 */
static void proxy_variables_are_ignored(void **state)
{
    (void)state;
    static const char *const names[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        setenv(names[i], "http://127.0.0.1:9", 1);
    setenv("no_proxy", "", 1);
    struct stub *s = stub_start(echo, NULL);
    struct job j = {peer_at(s->url, NULL), 2, 0};
    get_some(&j);
    assert_int_equal(j.failed, 0);
    assert_non_null(strstr(stub_last_head(s), "GET /x HTTP/1.1"));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    unsetenv("no_proxy");
    httpc_peer_free(&j.peer);
    stub_stop(s);
}

/* ---- odd and bad answers ---- */

static void answers_as_they_come(void **state)
{
    (void)state;
    static const struct {
        struct stub_script script;
        enum err err;
        int status;
        const char *body, *message;
    } rows[] = {
        {{"HTTP/1.1 200 OK\r\n\r\nto the end", false}, ERR_OK, 200, "to the end", ""},
        {{"HTTP/1.1 204 No Content\r\n\r\n", false}, ERR_OK, 204, "", ""},
        {{"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n", false}, ERR_OK, 304, "", ""},
        {{"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 4\r\n\r\nover", false},
         ERR_OK,
         302,
         "over",
         ""}, /* X08 */
        {{"HTTP/1.1 100 Continue\r\nX: 1\r\n\r\nHTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
          "1\r\n\r\nx",
          false},
         ERR_OK,
         200,
         "x",
         ""},
        {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n", false},
         ERR_OK,
         200,
         "abcde",
         ""},
        {{"HTTP/1.1 503 Busy\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nno", false}, ERR_OK, 503, "no", ""},
        {{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", false}, ERR_OK, 200, "hi", ""},
        {{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\ncut", false}, ERR_CLOSED, 200, "cut", "closed in mid-answer"},
        {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", false},
         ERR_CLOSED,
         200,
         "ab",
         "closed in mid-answer"},
        {{"HTTP/1.1 404 No\r\nContent-Length: 10\r\n\r\ncut", false}, ERR_CLOSED, 404, "cut", "closed in mid-answer"},
        {{"", false}, ERR_CLOSED, 0, "", "closed without an answer"},
        {{"", true}, ERR_RESET, 0, "", "connection reset"},
        {{"ceci n'est pas HTTP\r\n\r\n", false}, ERR_PROTO, 0, "", "no usable answer"},
        {{"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", false}, ERR_PROTO, 0, "", "no usable answer"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stub_script script = rows[i].script;
        struct stub *s = stub_start(stub_play, &script);
        struct httpc_peer *p = peer_at(s->url, NULL);
        struct http_req req = get_of("/");
        struct http_resp r;
        enum err err = perform(p, &req, &r);
        if (err != rows[i].err || r.status != rows[i].status || strcmp(buf_cstr(&r.body), rows[i].body) != 0 ||
            strstr(ei.msg, rows[i].message) == NULL)
            fail_msg("row %zu: %s, status %d, body %s, %s", i, err_symbol(err), r.status, buf_cstr(&r.body), ei.msg);
        assert_true(r.request_sent);
        assert_int_equal(s->accepted, 1);
        if (r.status == 503)
            assert_true(sv_eq_cstr(http_resp_header(&r, "Retry-After"), "3"));
        assert_null(http_resp_header(&r, "X").p); /* of the interim answer */
        http_resp_done(&r);
        httpc_peer_free(&p);
        stub_stop(s);
    }
}

static void nothing_listening(void **state)
{
    (void)state;
    struct stub *s = stub_start(echo, NULL);
    char url[64];
    snprintf(url, sizeof url, "%s", s->url);
    stub_stop(s);
    struct httpc_peer *p = peer_at(url, NULL);
    for (int i = 0; i < 2; i++) {
        struct http_req req = get_of("/");
        struct http_resp r;
        assert_int_equal(perform(p, &req, &r), ERR_CONNECT);
        assert_non_null(strstr(ei.msg, "cannot connect to 127.0.0.1:"));
        assert_non_null(strstr(ei.msg, "refused"));
        assert_null(strstr(ei.msg, "invalid"));
        assert_int_equal(ei.os_errno, ECONNREFUSED);
        assert_int_equal(r.status, 0);
        assert_false(r.request_sent);
        http_resp_done(&r);
    }
    httpc_peer_free(&p);
    assert_int_equal(httpc_peer_new(&p, client, "http://elsewhere.invalid", NULL, &ei), ERR_SAFETY);
    assert_int_equal(httpc_peer_new(&p, client, "http://no-such-host.invalid", NULL, &ei), ERR_RESOLVE);
    assert_non_null(strstr(ei.msg, "no-such-host.invalid"));
}

/* ---- limits of time ---- */

/* L07 */
static void a_server_that_never_answers(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(stub_only_read, NULL);
    struct http_req req = get_of("/");
    struct http_resp r;
    struct mono from = mono_now();
    req.timeout_us = 200 * US_PER_MS;
    assert_int_equal(perform(p, &req, &r), ERR_TIMEOUT);
    assert_in_range(ms_since(from), 195, 20000);
    assert_non_null(strstr(ei.msg, "no answer"));
    assert_true(r.request_sent);
    assert_int_equal(r.first_byte.us, 0);
    http_resp_done(&r);
}

/* A listener whose queue is full swallows connection attempts. */
static void a_connection_that_is_never_accepted(void **state)
{
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0), fill[8];
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof sa;
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, n) | listen(fd, 0), 0);
    getsockname(fd, (struct sockaddr *)&sa, &n);
    for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&sa, n);
    }
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(sa.sin_port));
    struct httpc_peer *p = peer_at(url, NULL);
    struct http_req req = get_of("/");
    struct http_resp r;
    req.timeout_us = 200 * US_PER_MS;
    assert_int_equal(perform(p, &req, &r), ERR_TIMEOUT);
    assert_false(r.request_sent);
    http_resp_done(&r);
    struct mono from = mono_now();
    req.timeout_us = 20 * US_PER_S; /* connecting has a limit of its own: 5 s */
    assert_int_equal(perform(p, &req, &r), ERR_CONNECT);
    assert_in_range(ms_since(from), 4900, 19000);
    assert_non_null(strstr(ei.msg, "within 5 s"));
    assert_false(r.request_sent);
    http_resp_done(&r);
    httpc_peer_free(&p);
    for (size_t i = 0; i < ARRAY_LEN(fill); i++)
        close(fill[i]);
    close(fd);
}

static void trickle_then_stop(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    if (!stub_head(s, fd, head, sizeof head))
        return;
    stub_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    for (int i = 0; i < 8; i++) {
        stub_send(fd, "x");
        usleep(100000);
    }
    stub_drain(fd);
}

static void a_transfer_that_stalls(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(trickle_then_stop, NULL);
    struct http_req req = get_of("/");
    struct http_resp r;
    struct mono from = mono_now();
    req.stall_us = 600 * US_PER_MS; /* longer than the gaps, shorter than the whole */
    assert_int_equal(perform(p, &req, &r), ERR_TIMEOUT);
    assert_in_range(ms_since(from), 1200, 20000);
    assert_non_null(strstr(ei.msg, "no byte moved"));
    assert_int_equal(r.body.len, 8);
    http_resp_done(&r);
}

/* L14: also when head and body are separate writes, as those of a multipart body are. */
static void small_requests_are_not_delayed(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(echo, NULL);
    enum { EACH = 10 };
    int slow[3] = {0};
    char body[4000];
    memset(body, 'x', sizeof body);
    struct http_part part = {.name = "f", .value = {body, 300}};
    for (int i = 0; i < 3 * EACH; i++) {
        struct http_req req = get_of("/");
        struct http_resp r;
        req.method = i % 3 == 0 ? "GET" : i % 3 == 1 ? "PUT" : "POST";
        if (i % 3 == 1)
            req.body = (struct sv){body, sizeof body};
        req.parts = &part;
        req.n_parts = i % 3 == 2;
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        slow[i % 3] += mono_diff(r.done, r.sent) > 30 * US_PER_MS;
        http_resp_done(&r);
    }
    for (int k = 0; k < 3; k++)
        assert_true(slow[k] <= EACH / 2); /* a delayed acknowledgement would hit nearly all of one kind */
}

/* ---- reused connections ---- */

/* Answers the first request of each connection but the last; closes when the second one arrives. */
static void close_on_reuse(struct stub *s, int fd, int number)
{
    const int *dead_conns = s->arg;
    char head[8192];
    for (int i = 0; stub_head(s, fd, head, sizeof head); i++) {
        if (i == 1 && number < *dead_conns) {
            if (number % 2 == 0)
                stub_reset(fd);
            return;
        }
        stub_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
}

/* U10 */
static void a_connection_that_breaks_on_reuse(void **state)
{
    (void)state;
    static const struct {
        const char *method, *body;
        bool retried;
    } rows[] = {
        {"GET", "", true},   {"HEAD", "", true},   {"OPTIONS", "", true}, {"PROPFIND", "<x/>", true},
        {"POST", "", false}, {"POST", "x", false}, {"PUT", "x", false},   {"DELETE", "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int reset = 0; reset < 2; reset++) {
            int dead = 1 + reset; /* connection 0 is reset; connection 1, when it is dead too, is closed */
            struct stub *s = stub_start(close_on_reuse, &dead);
            struct httpc_peer *p = peer_at(s->url, NULL);
            struct http_req first = get_of("/"), req = get_of("/");
            struct http_resp r;
            assert_int_equal(perform(p, &first, &r), ERR_OK);
            http_resp_done(&r);
            req.method = rows[i].method;
            req.body = sv_of(rows[i].body);
            enum err err = perform(p, &req, &r);
            assert_int_equal(err == ERR_OK, rows[i].retried);
            assert_int_equal(r.retries, rows[i].retried);
            assert_int_equal(s->requests, rows[i].retried ? 3 : 2);
            assert_int_equal(s->accepted, rows[i].retried ? 2 : 1);
            if (!rows[i].retried) {
                assert_true(err == ERR_RESET || err == ERR_CLOSED);
                assert_true(r.request_sent && r.reused);
            }
            http_resp_done(&r);
            httpc_peer_free(&p);
            stub_stop(s);
        }
    }
}

static void answer_once_and_close(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    if (stub_head(s, fd, head, sizeof head))
        stub_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

/* The server closed the idle connection: noticed before anything is sent, whatever the method. */
static void a_connection_closed_while_idle(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(answer_once_and_close, NULL);
    for (int i = 0; i < 5; i++) {
        struct http_req req = get_of("/");
        struct http_resp r;
        req.method = "POST";
        req.body = SV("x");
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        http_resp_done(&r);
        coro_sleep_until(loop, mono_add(mono_now(), 20 * US_PER_MS));
        assert_int_equal(server->accepted, i + 1);
    }
    int64_t cpu = clock_thread_cpu_us(); /* and the loop does not spin on the dead descriptor */
    coro_sleep_until(loop, mono_add(mono_now(), 100 * US_PER_MS));
    assert_true(clock_thread_cpu_us() - cpu < 20 * US_PER_MS);
}

/* ---- ends from our side ---- */

static void get_cancelled(void *arg)
{
    struct job *j = arg;
    struct http_req req = get_of("/");
    struct http_resp r;
    j->failed = (int)httpc_perform(j->peer, &req, &r, NULL);
    http_resp_done(&r);
}

static void cancelling(void **state)
{
    (void)state;
    struct stub *s = stub_start(stub_only_read, NULL);
    struct httpc_peer *a = peer_at(s->url, NULL), *b = peer_at(s->url, NULL);
    struct job jobs[] = {{a, 0, 0}, {a, 0, 0}, {b, 0, 0}, {b, 0, 0}};
    for (int early = 0; early < 2; early++) {
        struct group g = {0};
        for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
            group_spawn(loop, &g, get_cancelled, &jobs[i]);
        if (early == 0)
            while (s->accepted < 4)
                loop_step(loop, mono_add(mono_now(), 1000));
        httpc_cancel(client, a);
        for (int i = 0; i < 5; i++)
            loop_step(loop, mono_now());
        if (early == 0) {
            assert_int_equal(jobs[0].failed, ERR_CANCELLED);
            assert_int_equal(jobs[1].failed, ERR_CANCELLED);
            assert_int_equal(g.running, 2);
        }
        httpc_cancel(client, NULL);
        httpc_cancel(client, NULL);
        group_wait(loop, &g);
        for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
            assert_int_equal(jobs[i].failed, ERR_CANCELLED);
    }
    httpc_peer_free(&a);
    httpc_peer_free(&b);
    stub_stop(s);
}

/* ---- sinks and limits ---- */

static void send_much(struct stub *s, int fd, int number)
{
    char head[8192], piece[65536];
    (void)number;
    while (stub_head(s, fd, head, sizeof head)) {
        long status = 200, n = 0;
        sscanf(head, "GET /%ld/%ld", &status, &n);
        snprintf(piece, sizeof piece, "HTTP/1.1 %ld X\r\nContent-Length: %ld\r\n\r\n", status, n);
        stub_send(fd, piece);
        memset(piece, 'x', sizeof piece);
        for (ssize_t sent; n > 0; n -= sent) {
            sent = send(fd, piece, n < (long)sizeof piece ? (size_t)n : sizeof piece, MSG_NOSIGNAL);
            if (sent <= 0)
                return;
        }
    }
}

struct swallowed {
    uint64_t n, stop_at;
};

static int swallow(void *arg, const char *p, size_t n)
{
    struct swallowed *sw = arg;
    for (size_t i = 0; i < n; i++)
        if (p[i] != 'x')
            return 1;
    sw->n += n;
    return sw->stop_at != 0 && sw->n >= sw->stop_at;
}

static void bodies_into_sinks_and_limits(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(send_much, NULL);
    static const struct {
        const char *path;
        size_t max_body;
        bool sink;
        uint64_t stop_at;
        enum err err;
        size_t kept, swallowed;
    } rows[] = {
        {"/200/100000", 0, false, 0, ERR_OK, 100000, 0},
        {"/200/1000", 1000, false, 0, ERR_OK, 1000, 0},
        {"/200/1001", 1000, false, 0, ERR_LIMIT, 1001, 0},
        {"/200/30000000", 0, false, 0, ERR_LIMIT, 16 << 20, 0},
        {"/200/64000000", 1000, true, 0, ERR_OK, 0, 64000000},
        {"/206/100000", 1000, true, 0, ERR_OK, 0, 100000},
        {"/404/500", 1000, true, 0, ERR_OK, 500, 0}, /* the reason, not the file */
        {"/200/64000000", 1000, true, 1000000, ERR_WRONG, 0, 1000000},
    };
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_req req = get_of(rows[i].path);
        struct http_resp r;
        struct swallowed sw = {0, rows[i].stop_at};
        req.timeout_us = 120 * US_PER_S;
        req.max_body = rows[i].max_body;
        req.sink = rows[i].sink ? swallow : NULL;
        req.sink_arg = &sw;
        assert_int_equal(perform(p, &req, &r), rows[i].err);
        assert_true(r.body.len <= rows[i].kept);
        if (rows[i].err == ERR_OK) {
            assert_int_equal(r.body.len, rows[i].kept);
            assert_int_equal(sw.n, rows[i].swallowed);
            assert_int_equal(r.bytes_down, r.body.len + sw.n);
        }
        http_resp_done(&r);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss <
                100 * 1024); /* 64 MB twice, never held; 16 MiB held, grown by doubling */
}

static void endless_head(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    if (!stub_head(s, fd, head, sizeof head))
        return;
    stub_send(fd, "HTTP/1.1 200 OK\r\n");
    char line[1000];
    memset(line, 'a', sizeof line);
    memcpy(line, "X-Long: ", 8);
    memcpy(line + sizeof line - 3, "\r\n", 3);
    for (int i = 0; i < 5000; i++)
        stub_send(fd, line);
}

static void an_endless_head_is_refused(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(endless_head, NULL);
    struct http_req req = get_of("/");
    struct http_resp r;
    enum err err = perform(p, &req, &r);
    assert_true(err == ERR_LIMIT || err == ERR_PROTO);
    assert_true(r.headers.cap < 600 << 10);
    http_resp_done(&r);
}

/* ---- L13: no descriptors left ---- */

static void out_of_descriptors(void **state)
{
    (void)state;
    struct stub *s = stub_start(echo, NULL);
    struct httpc_peer *p = peer_at(s->url, NULL), *q = peer_at(s->url, NULL);
    struct job warm = {q, 1, 0};
    get_some(&warm);
    assert_int_equal(warm.failed, 0);
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &low);
    int64_t cpu = clock_thread_cpu_us();
    struct http_req req = get_of("/");
    struct http_resp r;
    enum err err = perform(p, &req, &r);
    char message[256];
    snprintf(message, sizeof message, "%s", ei.msg);
    bool sent = r.request_sent;
    http_resp_done(&r);
    get_some(&warm); /* what is connected goes on working */
    cpu = clock_thread_cpu_us() - cpu;
    setrlimit(RLIMIT_NOFILE, &old);

    assert_int_equal(err, ERR_LOCAL);
    assert_non_null(strstr(message, "ulimit -n"));
    assert_false(sent);
    assert_int_equal(warm.failed, 0);
    assert_true(cpu < 100 * US_PER_MS);
    struct job again = {p, 1, 0};
    get_some(&again);
    assert_int_equal(again.failed, 0);
    httpc_peer_free(&p);
    httpc_peer_free(&q);
    stub_stop(s);
}

/* ---- changes while requests run ---- */

static void a_header_changes_under_way(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(stub_only_read, NULL);
    httpc_peer_header(p, "Cookie", "old");
    struct job j = {p, 0, 0};
    struct group g = {0};
    group_spawn(loop, &g, get_cancelled, &j);
    while (server->accepted < 1)
        loop_step(loop, mono_add(mono_now(), 1000));
    httpc_peer_header(p, "Cookie", "new");
    httpc_peer_header(p, "Cookie", NULL);
    httpc_cancel(client, p);
    group_wait(loop, &g);
}

int main(void)
{
    static const char *names[] = {"two.test,six.test", "no-such-host.invalid"};
    static const struct opt_list hosts = {names, ARRAY_LEN(names)};
    guard_allow(&hosts);
    const struct CMUnitTest tests[] = {
        CASE(methods_bodies_and_reuse),
        CASE(a_requests_header_replaces_the_peers),
        CASE(malformed_requests_are_usage_errors),
        CASE(peers_share_no_connection),
        CASE(one_connection_is_kept),
        CASE(peers_spread_over_addresses),
        CASE(ipv6_first_with_an_ipv4_server_costs_no_time),
        CASE(ipv6_hosts_keep_their_brackets),
        CASE(source_addresses_are_used),
        CASE(proxy_variables_are_ignored),
        CASE(answers_as_they_come),
        CASE(nothing_listening),
        CASE(a_server_that_never_answers),
        CASE(a_connection_that_is_never_accepted),
        CASE(a_transfer_that_stalls),
        CASE(small_requests_are_not_delayed),
        CASE(a_connection_that_breaks_on_reuse),
        CASE(a_connection_closed_while_idle),
        CASE(cancelling),
        CASE(bodies_into_sinks_and_limits),
        CASE(an_endless_head_is_refused),
        CASE(out_of_descriptors),
        CASE(a_header_changes_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
