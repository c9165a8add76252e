#ifndef SERVICES_H
#define SERVICES_H
/* A loop, an HTTP client and worker threads for the tests of src/store: one of each a program. */
#include "net/httpc.h"
#include "net/work.h"
#include "unit.h"

static struct loop *loop;
static struct httpc *http;
static struct work *work;

static int services_up(void **state)
{
    struct httpc_conf conf = {0};
    (void)state;
    if (loop_new(&loop, NULL) || httpc_new(&http, loop, &conf, NULL))
        return 1;
    work = work_new(loop, 8);
    return 0;
}

static int services_down(void **state)
{
    (void)state;
    work_free(&work);
    httpc_free(&http);
    coro_pool_trim();
    loop_free(&loop);
    return 0;
}
#endif
