#include "sim/app/errand.h"

#include <stdio.h>
#include <string.h>

#define REMOVE_US (600 * US_PER_S)

/* ---- the calls of an app, as job.h has them made ---- */

static MAY_YIELD struct api *begin(void *arg)
{
    return ((struct errand *)arg)->app->api;
}

static MAY_YIELD bool again(void *arg, enum drive_op op, const struct api_job *job, const struct api_result *r)
{
    struct errand *e = arg;
    if (call_again(&e->call, r))
        return true;
    if (op == OP_JOB && !job->failed && (e->record_all || (!job->done && r->outcome != OUT_OK)))
        call_record(&e->call, OP_JOB, r, (struct mono){0});
    e->waited_us += e->call.waited_us;
    e->call = (struct call)CALL(e->app, e->cause);
    return false;
}

static MAY_YIELD bool sleep_unless_cut(void *arg, int64_t us)
{
    return worker_sleep(((struct errand *)arg)->app->w, us, PHASE_CUT);
}

static void tell_progress(void *arg, const struct api_job *job)
{
    struct errand *e = arg;
    if (e->progress)
        e->progress(e->arg, job);
}

static struct job_caller caller_of(struct errand *e)
{
    e->call = (struct call)CALL(e->app, e->cause);
    return (struct job_caller){.begin = begin,
                               .again = again,
                               .pause = sleep_unless_cut,
                               .progress = tell_progress,
                               .arg = e,
                               .limit_us = e->limit_us,
                               .away_us = e->away_us ? e->away_us : JOB_AWAY_US,
                               .pause_most_us = e->pause_most_us};
}

enum job_fate errand_wait(struct errand *e, struct api_job *job, struct arena *mem)
{
    const struct job_caller c = caller_of(e);
    return job_wait(&c, job, mem, &e->end);
}

bool errand_remove(struct app *a, const char *const *ids, size_t n, enum cause cause, char *why, size_t why_n)
{
    struct errand e = {.app = a, .cause = cause, .limit_us = REMOVE_US};
    const struct job_caller c = caller_of(&e);
    return job_remove(&c, ids, n, why, why_n);
}
