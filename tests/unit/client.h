#ifndef CLIENT_H
#define CLIENT_H
/* A loop, a client and, where a test asks for it, a server and a peer of it, for the tests of src/net/httpc*: one of
 * each a test, checked for leftovers at its end. */
#include "base/mem.h"
#include "net/httpc.h"
#include "stub.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct loop *loop;
static struct httpc *client;
static struct errinfo ei;
static struct stub *server; /* of served_by, as is peer */
static struct httpc_peer *peer;

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
    if (server) {
        httpc_peer_free(&peer);
        stub_stop(server);
        server = NULL;
    }
    httpc_stats(client, &st);
    int left = (int)st.in_flight + (int)coro_count();
    httpc_free(&client);
    coro_pool_trim();
    loop_free(&loop);
    return left;
}

static inline struct httpc_peer *peer_at(const char *url, const char *source)
{
    struct httpc_peer *p = NULL;
    if (httpc_peer_new(&p, client, url, source, &ei) != ERR_OK)
        fail_msg("%s", ei.msg);
    return p;
}

/* A peer of a server that runs serve; both end with the test. */
static inline struct httpc_peer *served_by(stub_serve *serve, void *arg)
{
    server = stub_start(serve, arg);
    return peer = peer_at(server->url, NULL);
}

static inline struct http_req get_of(const char *path)
{
    return (struct http_req){.method = "GET", .path = path, .timeout_us = 10 * US_PER_S};
}

static inline enum err perform(struct httpc_peer *p, const struct http_req *req, struct http_resp *resp)
{
    memset(&ei, 0, sizeof ei);
    return httpc_perform(p, req, resp, &ei);
}

static inline int64_t ms_since(struct mono t)
{
    return mono_diff(mono_now(), t) / US_PER_MS;
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#endif
