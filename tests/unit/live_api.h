#ifndef LIVE_API_H
#define LIVE_API_H
/* The same for a dialect: one client, the answer to its last call, and files whose contents tell their key. */
#include "drive/api/api.h"
#include "drive/target.h"
#include "live.h"
#include <string.h>

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

/* The call went well; servers differ in which 2xx they answer. */
#define GOES_WELL(call)                                                                                                \
    do {                                                                                                               \
        (void)(call);                                                                                                  \
        if (r.outcome != OUT_OK)                                                                                       \
            fail_msg("%s: %d %s %s", #call, r.status, outcome_key(r.outcome), r.reason);                               \
    } while (0)

static inline struct content body_of(uint64_t key)
{
    return (struct content){.key = key, .revision = 1, .size = 70000 + 1000 * key, .ext = "txt"};
}

/* ANSWERS or GOES_WELL is the caller's. */
static inline struct drive_file try_upload(const char *parent, const char *name, uint64_t key)
{
    const struct content c = body_of(key);
    const struct api_upload u = {.parent_id = parent, .name = name, .content = &c, .modified = {1700000000 * US_PER_S}};
    struct drive_file f = {.id = NULL};
    (void)api_upload(app, &u, mem, &f, &r);
    return f;
}

static inline struct drive_file upload(const char *parent, const char *name, uint64_t key)
{
    struct drive_file f;
    GOES_WELL(f = try_upload(parent, name, key));
    return f;
}

static inline int feed_check(void *arg, const char *p, size_t n)
{
    return content_check_feed(arg, p, n) ? 0 : 1;
}

static inline void holds(const char *id, uint64_t key)
{
    const struct content c = body_of(key);
    struct content_check k;
    content_check_init(&k, &c, 0);
    ANSWERS(api_download(app, id, 0, 0, feed_check, &k, NULL, 0, &r), 200);
    assert_true(content_check_complete(&k));
}

/* How many entries of that name are in the folder; NULL: of any. */
static inline size_t entries(const char *folder, const char *name)
{
    struct drive_listing l;
    size_t n = 0;
    GOES_WELL(api_list(app, folder, mem, &l, &r));
    for (size_t i = 0; i < l.n; i++)
        n += !name || strcmp(l.items[i].name, name) == 0;
    return n;
}

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
