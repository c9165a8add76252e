#include "sim/app/remover.h"
#include "base/rng.h"
#include "drive/api/budget.h"
#include "sim/app/pace.h"

static const bool never = false;

static struct api *begin(void *arg)
{
    return ((struct remover *)arg)->api;
}

static MAY_YIELD bool sleep_unless_stopped(void *arg, int64_t us)
{
    struct remover *m = arg;
    return !m->spent && coro_sleep_unless(m->ctx->loop, mono_add(mono_now(), us), m->stop ? m->stop : &never);
}

/* A spent budget is waited out. */
static MAY_YIELD bool again(void *arg, enum drive_op op, const struct api_job *job, const struct api_result *r)
{
    struct remover *m = arg;
    const bool *stop = m->stop ? m->stop : m->hurried ? m->hurried : &never;
    struct rng rng;
    (void)op;
    (void)job;
    m->spent = r->outcome == OUT_THROTTLED && *stop;
    if (r->outcome != OUT_THROTTLED || *stop) {
        m->tries = 0;
        return false;
    }
    rng_init(&rng, (uint64_t)m->ctx->common->seed, 11);
    int64_t wait = pace_throttle_wait_us(r->retry_after_us, m->tries++, &rng);
    return budget_wait(m->ctx->loop, mono_add(mono_now(), wait), r->reason, stop);
}

struct job_caller remover_caller(struct remover *m)
{
    return (struct job_caller){.begin = begin,
                               .again = again,
                               .pause = sleep_unless_stopped,
                               .arg = m,
                               .limit_us = m->limit_us,
                               .away_us = m->away_us};
}
