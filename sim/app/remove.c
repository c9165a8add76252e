#include "sim/app/remove.h"
#include "base/rng.h"
#include "sim/app/pace.h"

#include <stdio.h>
#include <string.h>

#define POLL_FIRST_US (20 * US_PER_MS)
#define POLL_MOST_US  (500 * US_PER_MS)

static MAY_YIELD bool throttled(struct remover *m, const struct api_result *r, unsigned *tries)
{
    struct rng rng;
    rng_init(&rng, (uint64_t)m->ctx->common->seed, 11);
    m->requests++;
    if (r->outcome != OUT_THROTTLED || *m->stop)
        return false;
    struct mono again = mono_add(mono_now(), pace_throttle_wait_us(r->retry_after_us, (*tries)++, &rng));
    return coro_sleep_unless(m->ctx->loop, again, m->stop);
}

static MAY_YIELD bool wait_for_job(struct remover *m, struct api_job *job, char *why, size_t n)
{
    struct mono until = m->limit_us ? mono_add(mono_now(), m->limit_us) : MONO_NEVER;
    struct arena *mem = arena_new(4096);
    int64_t pause = POLL_FIRST_US;
    bool ok = true;
    while (ok && job->id[0] && !job->done) {
        struct api_result r;
        unsigned tries = 0;
        do
            ok = api_job_poll(m->api, job, mem, &r) == ERR_OK && (r.outcome == OUT_OK || r.outcome == OUT_THROTTLED);
        while (throttled(m, &r, &tries));
        if (m->progress)
            m->progress(m->arg);
        if (!ok || job->failed) {
            str_format(why, n, "the server's job failed: %d %s", r.status, r.reason);
            ok = false;
        } else if (!job->done && (*m->stop || mono_passed(until))) {
            str_format(why, n, "the server's job is still at it");
            ok = false;
        } else if (!job->done) {
            coro_sleep_until(m->ctx->loop, mono_add(mono_now(), pause));
            pause = 2 * pause < POLL_MOST_US ? 2 * pause : POLL_MOST_US;
        }
        arena_reset(mem);
    }
    arena_free(&mem);
    return ok;
}

static MAY_YIELD bool carry_out(struct remover *m,
                                MAY_YIELD enum err (*call)(struct api *, const char *const *, size_t, struct api_job *,
                                                           struct api_result *),
                                const char *const *ids, size_t n, char *why, size_t why_n)
{
    struct api_job job = {0};
    struct api_result r;
    unsigned tries = 0;
    bool ok;
    do
        ok = call(m->api, ids, n, &job, &r) == ERR_OK &&
             (r.outcome == OUT_OK || (call == api_purge && strcmp(r.code, API_CODE_ABSENT) == 0)); /* gone already */
    while (throttled(m, &r, &tries));
    if (!ok)
        str_format(why, why_n, "%d %s", r.status, r.reason);
    return ok && wait_for_job(m, &job, why, why_n);
}

bool remove_to_trash(struct remover *m, const char *const *ids, size_t n, char *why, size_t why_n)
{
    return carry_out(m, api_trash, ids, n, why, why_n);
}

bool remove_from_trash(struct remover *m, const char *const *ids, size_t n, char *why, size_t why_n)
{
    return carry_out(m, api_purge, ids, n, why, why_n);
}
