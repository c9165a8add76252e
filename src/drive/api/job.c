#include "drive/api/job.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

#define PAUSE_FIRST_US (20 * US_PER_MS)
#define PAUSE_MOST_US  (500 * US_PER_MS)
#define AGAIN_US       (500 * US_PER_MS) /* after an answer that the server cannot now */

bool api_transient(const struct api_result *r)
{
    return r->status == 0 || r->status == 429 || r->status == 502 || r->status == 503 || r->status == 504;
}

/* One call, until its maker has what it wants. False: the work has stopped. */
static MAY_YIELD bool make_call(const struct job_caller *c, enum drive_op op, const char *const *ids, size_t n,
                                struct api_job *job, struct arena *mem, struct api_result *r)
{
    struct api *api;
    do {
        if (!(api = c->begin(c->arg)))
            return false;
        if (op == OP_JOB)
            api_job_poll(api, job, mem, r);
        else if (op == OP_TRASH)
            api_trash(api, ids, n, job, r);
        else
            api_purge(api, ids, n, job, r);
    } while (c->again(c->arg, op, job, r));
    return true;
}

static bool away_for_long(const struct job_caller *c, struct mono heard)
{
    return mono_diff(mono_now(), heard) >= c->away_us;
}

/* ---- waiting ---- */

static enum job_fate end_with(struct job_end *end, enum job_fate fate, const char *detail)
{
    static const char *const texts[] = {[JOB_DONE] = "",
                                        [JOB_FAILED] = "its job failed",
                                        [JOB_LATE] = "timed out, outcome unknown",
                                        [JOB_LOST] = "its job cannot be asked for any more, outcome unknown",
                                        [JOB_AWAY] = "the server was away for too long, outcome unknown",
                                        [JOB_CUT] = "cut before its job had ended"};
    end->fate = fate;
    str_format(end->why, sizeof(end->why), "%s%s%s", texts[fate], detail[0] ? ": " : "", detail);
    return fate;
}

enum job_fate job_wait(const struct job_caller *c, struct api_job *job, struct arena *mem, struct job_end *end)
{
    struct mono began = mono_now(), heard = began;
    int64_t pause = PAUSE_FIRST_US, most = c->pause_most_us ? c->pause_most_us : PAUSE_MOST_US;
    struct api_result r = {.outcome = OUT_OK};
    *end = (struct job_end){.fate = JOB_DONE};
    while (!job->done) {
        int64_t left = c->limit_us ? c->limit_us - mono_diff(mono_now(), began) : pause;
        if (left < 0)
            return end_with(end, JOB_LATE, "");
        if (!c->pause(c->arg, left < pause ? left + 1 : pause) || !make_call(c, OP_JOB, NULL, 0, job, mem, &r))
            return end_with(end, JOB_CUT, "");
        pause = pause * 3 / 2 < most ? pause * 3 / 2 : most;
        end->told = r.done;
        if (job->started && end->started.us == 0)
            end->started = mono_now();
        if (api_transient(&r)) {
            if (away_for_long(c, heard))
                return end_with(end, JOB_AWAY, r.reason);
            continue;
        }
        heard = mono_now();
        if (!job->done && r.outcome != OUT_OK)
            return end_with(end, JOB_LOST, r.reason);
        if (c->progress)
            c->progress(c->arg, job);
    }
    return job->failed ? end_with(end, JOB_FAILED, r.reason) : JOB_DONE;
}

/* ---- removing ---- */

/* A repeated call may find that the first was done after all; and without a trash (ABSENT) what was trashed is gone. */
static bool gone(enum drive_op op, const struct api_result *r)
{
    bool absent = strcmp(r->code, API_CODE_ABSENT) == 0;
    return absent ? op == OP_PURGE : r->status == 404;
}

static MAY_YIELD bool carry_out(const struct job_caller *c, enum drive_op op, const char *const *ids, size_t n,
                                char *why, size_t why_n)
{
    struct mono began = mono_now();
    for (;;) {
        struct api_job job = {0};
        struct api_result r;
        if (!make_call(c, op, ids, n, &job, NULL, &r)) {
            str_format(why, why_n, "the work was stopped");
            return false;
        }
        if (r.outcome == OUT_OK && job.id[0]) {
            struct arena *mem = arena_new(1024);
            struct job_end end;
            bool ok = job_wait(c, &job, mem, &end) == JOB_DONE;
            str_format(why, why_n, "%s", end.why);
            arena_free(&mem);
            return ok;
        }
        if (r.outcome == OUT_OK || gone(op, &r))
            return true;
        char status[16] = ""; /* of HTTP; other protocols have none */
        if (r.status)
            str_format(status, sizeof(status), "%d ", r.status);
        str_format(why, why_n, "%s%s", status, r.reason);
        if (!api_transient(&r) || away_for_long(c, began) || !c->pause(c->arg, AGAIN_US))
            return false;
    }
}

bool job_trash(const struct job_caller *c, const char *const *ids, size_t n, char *why, size_t why_n)
{
    return carry_out(c, OP_TRASH, ids, n, why, why_n);
}

bool job_purge(const struct job_caller *c, const char *const *ids, size_t n, char *why, size_t why_n)
{
    return carry_out(c, OP_PURGE, ids, n, why, why_n);
}

bool job_remove(const struct job_caller *c, const char *const *ids, size_t n, char *why, size_t why_n)
{
    return job_trash(c, ids, n, why, why_n) && job_purge(c, ids, n, why, why_n);
}
