#include "sim/app/errand.h"

#include <stdio.h>
#include <string.h>

#define POLL_FIRST_US (20 * US_PER_MS)
#define POLL_MOST_US  (500 * US_PER_MS)
#define AGAIN_US      (500 * US_PER_MS)
#define REMOVE_US     (600 * US_PER_S)

bool errand_transient(const struct api_result *r)
{
    return r->status == 0 || r->status == 429 || r->status == 502 || r->status == 503 || r->status == 504;
}

/* ---- jobs ---- */

static enum job_fate fate(struct errand *e, enum job_fate f, const char *why, const char *detail)
{
    snprintf(e->why, sizeof(e->why), "%s%s%s", why, detail[0] ? ": " : "", detail);
    return f;
}

static bool passed(struct mono from, int64_t us)
{
    return mono_diff(mono_now(), from) > us;
}

enum job_fate errand_wait(struct errand *e, struct api_job *job, struct arena *mem)
{
    struct app *a = e->app;
    struct mono began = mono_now(), heard = began;
    int64_t pause = POLL_FIRST_US;
    struct api_result r = {.outcome = OUT_OK};
    e->why[0] = '\0';
    while (!job->done) {
        if (e->limit_us && passed(began, e->limit_us))
            return fate(e, FATE_TIMED_OUT, "timed out, outcome unknown", "");
        int64_t left = e->limit_us ? e->limit_us - mono_diff(mono_now(), began) + 1 : pause;
        if (!worker_sleep(a->w, left < pause ? left : pause, PHASE_CUT))
            return fate(e, FATE_CUT, "cut before its job had ended", "");
        struct call c = CALL(a, e->cause);
        do
            api_job_poll(a->api, job, mem, &r);
        while (call_again(&c, &r));
        pause = pause * 3 / 2 < POLL_MOST_US ? pause * 3 / 2 : POLL_MOST_US;
        if (job->started && e->started.us == 0)
            e->started = mono_now();
        if (errand_transient(&r)) {
            call_record(&c, OP_JOB, &r, (struct mono){0});
            if (passed(heard, ERRAND_AWAY_US))
                return fate(e, FATE_AWAY, "the server was away for too long, outcome unknown", r.reason);
            continue;
        }
        heard = mono_now();
        if (!job->done && r.outcome != OUT_OK) {
            call_record(&c, OP_JOB, &r, (struct mono){0});
            return fate(e, FATE_LOST, "its job cannot be asked for any more, outcome unknown", r.reason);
        }
        if (e->progress)
            e->progress(e->arg, job);
    }
    return job->failed ? fate(e, FATE_FAILED, "its job failed", r.reason) : FATE_DONE;
}

/* ---- removal ---- */

typedef enum err (*removal)(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r);

static MAY_YIELD bool wait_for_removal(struct app *a, struct api_job *job, enum cause cause, char *why, size_t why_n)
{
    struct errand e = {.app = a, .cause = cause, .limit_us = REMOVE_US};
    struct arena *mem = arena_new(16 << 10);
    bool ok = errand_wait(&e, job, mem) == FATE_DONE;
    snprintf(why, why_n, "%s", e.why);
    arena_free(&mem);
    return ok;
}

/* One of the two calls, until it is done or was not to be. A repeated one may find that the first was done after all:
 * then there is nothing (404), which is what is wanted. */
static MAY_YIELD bool insist(struct app *a, removal fn, const char *const *ids, size_t n, enum cause cause, char *why,
                             size_t why_n)
{
    struct mono began = mono_now();
    for (;;) {
        struct api_job job;
        struct api_result r;
        struct call c = CALL(a, cause);
        do
            fn(a->api, ids, n, &job, &r);
        while (call_again(&c, &r));
        if (r.outcome == OUT_OK)
            return !job.id[0] || wait_for_removal(a, &job, cause, why, why_n);
        if (r.status == 404)
            return true;
        snprintf(why, why_n, "%s", r.reason);
        if (!errand_transient(&r) || passed(began, ERRAND_AWAY_US) || !worker_sleep(a->w, AGAIN_US, PHASE_CUT))
            return false;
    }
}

bool errand_remove(struct app *a, const char *const *ids, size_t n, enum cause cause, char *why, size_t why_n)
{
    why[0] = '\0';
    return insist(a, api_trash, ids, n, cause, why, why_n) && insist(a, api_purge, ids, n, cause, why, why_n);
}

enum err errand_folder(struct app *a, const char *name, char id[DRIVE_ID_MAX + 1], struct errinfo *ei)
{
    struct arena *mem = arena_new(4096);
    struct drive_file made;
    struct api_result r;
    struct mono began = mono_now();
    app_take_session(a);
    do {
        struct call c = CALL(a, CAUSE_SETUP);
        do
            api_folder_create(a->api, NULL, name, mem, &made, &r);
        while (call_again(&c, &r));
    } while (r.status == 503 && !passed(began, ERRAND_AWAY_US) && worker_sleep(a->w, AGAIN_US, PHASE_DRAIN));
    enum err e = ERR_OK;
    if (r.outcome == OUT_OK)
        snprintf(id, DRIVE_ID_MAX + 1, "%s", made.id);
    else
        e = err_set(ei, r.err == ERR_CANCELLED ? ERR_INTERRUPTED : ERR_ENV, "%s cannot make a folder: %d %s",
                    a->login->email, r.status, r.reason);
    arena_free(&mem);
    return e;
}
