#ifndef LIVE_API_H
#define LIVE_API_H
/* The same for a dialect: one client, the answer to its last call. */
#include "drive/api/api.h"
#include "drive/target.h"
#include "live.h"

static struct loop *loop;
static struct httpc *http;
static struct arena *mem;
static struct api *app;
static struct target target;
static struct target_login login;
static struct errinfo why;
static struct api_result r;

/* The call was answered with this status. */
#define ANSWERS(call, want)                                                                                            \
    do {                                                                                                               \
        (void)(call);                                                                                                  \
        if (r.status != (want))                                                                                        \
            fail_msg("%s: %d %s %s", #call, r.status, outcome_key(r.outcome), r.reason);                               \
    } while (0)

/* What is left when the client is gone: how many coroutines. */
static inline int live_api_down(void)
{
    arena_free(&mem);
    int left = (int)coro_count();
    httpc_free(&http);
    coro_pool_trim();
    loop_free(&loop);
    return left;
}
#endif
