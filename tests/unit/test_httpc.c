/* The HTTP client against a scripted server in a thread (stub.h). */
#include "base/mem.h"
#include "net/httpc.h"
#include "stub.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/resource.h>

static struct loop *loop;
static struct httpc *client;
static struct errinfo ei;

static int setup(void **state)
{
    (void)state;
    memset(&ei, 0, sizeof ei);
    if (loop_new(&loop, &ei) != ERR_OK || httpc_new(&client, loop, NULL, &ei) != ERR_OK)
        return -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct httpc_stats st;
    httpc_stats(client, &st);
    assert_int_equal(st.in_flight, 0);
    httpc_free(&client);
    coro_pool_trim();
    loop_free(&loop);
    return 0;
}

static struct httpc_peer *peer_of(const struct stub *s)
{
    struct httpc_peer *p = NULL;
    if (httpc_peer_new(&p, client, s->url, NULL, &ei) != ERR_OK)
        fail_msg("%s", ei.msg);
    return p;
}

static struct http_req get_of(const char *path)
{
    return (struct http_req){.method = "GET", .path = path, .timeout_us = 5 * US_PER_S};
}

static enum err perform(struct httpc_peer *p, const struct http_req *req, struct http_resp *resp)
{
    memset(&ei, 0, sizeof ei);
    return httpc_perform(p, req, resp, &ei);
}

/* ---- plain answers ---- */

/* Answers each request with its method, path and body; keeps the connection. */
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
    struct stub *s = stub_start(echo, NULL);
    struct httpc_peer *p = peer_of(s);
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
        if (strstr(s->last_head, rows[i].has) == NULL || strstr(s->last_head, rows[i].hasnt) != NULL)
            fail_msg("row %zu: %s", i, s->last_head);
        assert_int_equal(r.reused, i > 0);
        assert_int_equal(r.connect_us > 0, i == 0);
        assert_true(r.request_sent);
        assert_true(!mono_before(r.first_byte, r.sent) && !mono_before(r.done, r.first_byte));
        assert_true(sv_eq_cstr(http_resp_header(&r, "x-ONE"), "1"));
        assert_true(sv_eq_cstr(http_resp_header(&r, "Set-Cookie"), "b=2"));
        assert_null(http_resp_header(&r, "X-Two").p);
        http_resp_done(&r);
    }
    assert_int_equal(s->accepted, 1);
    struct httpc_stats st;
    httpc_stats(client, &st);
    assert_int_equal(st.connects, 1);
    assert_int_equal(st.requests, ARRAY_LEN(rows));
    httpc_peer_free(&p);
    stub_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(methods_bodies_and_reuse, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
