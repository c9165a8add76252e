/* What becomes of an action, and the table of all of them. A target that is gone or changed meanwhile is a conflict:
 * the server working as designed, and the app learns better by listing again. But "not found" is believed only when the
 * listing agrees. */
#include "sim/app/actions.h"
#include "base/mem.h"
#include "sim/app/errand.h"
#include "sim/app/pick.h"

#include <stdio.h>

#define ANSWER_BLOCK   (4u << 10)
#define JOB_MOST_US    (2 * US_PER_S)
#define JOB_GIVE_UP_US (600 * US_PER_S)

/* ---- the end of an action ---- */

void action_tally(struct app *a, enum drive_op op, enum outcome o)
{
    struct tally *t = &a->w->meter.actions;
    a->login->account->writes += o == OUT_OK && op != OP_DOWNLOAD;
    if (o == OUT_OK)
        t->done++;
    else if (o == OUT_CONFLICT || o == OUT_THROTTLED)
        t->conflicts++;
    else if (o == OUT_UNFINISHED || o == OUT_LOCAL)
        t->unfinished++;
    else if (o == OUT_OUTAGE)
        t->outage++;
    else
        t->failed++;
}

void action_judge_missing(struct action *x, struct api_result *r, const struct picked *t)
{
    struct app *a = x->app;
    if (!sync_list(a, t->at, OP_LIST, CAUSE_RELIST))
        return; /* the listing failed: the 404 stands as it is */
    if (!view_has(&a->view, t->at, t->id, NULL))
        r->outcome = OUT_CONFLICT;
    else
        action_text(r->reason, sizeof(r->reason), "not found, yet its folder lists it");
}

void action_judge_folder(struct action *x, struct api_result *r, uint32_t at)
{
    struct app *a = x->app;
    if (sync_list(a, at, OP_LIST, CAUSE_RELIST) && a->view.open[at].gone)
        r->outcome = OUT_CONFLICT;
}

void action_finish(struct action *x, const struct call *c, enum drive_op op, struct api_result *r,
                   const struct picked *t)
{
    struct app *a = x->app;
    if (t && call_is_404(r) && r->outcome != OUT_CONFLICT)
        action_judge_missing(x, r, t);
    else if (t && (r->outcome == OUT_CONFLICT || r->outcome == OUT_UNKNOWN || r->outcome == OUT_TIMEOUT))
        sync_soon(a, t->at);
    meter_excuse(&a->w->meter, r);
    call_record(c, op, r, mono_add(x->due, x->waited_us));
    action_tally(a, op, r->outcome);
}

void action_nothing_to_do(struct action *x)
{
    x->app->w->meter.actions.empty++;
}

/* ---- jobs ---- */

bool action_job(struct action *x, struct api_job *job, struct api_result *r)
{
    struct errand e = {.app = x->app,
                       .cause = CAUSE_ACTION,
                       .limit_us = JOB_GIVE_UP_US,
                       .away_us = JOB_GIVE_UP_US,
                       .pause_most_us = JOB_MOST_US,
                       .record_all = true};
    enum job_fate fate = errand_wait(&e, job, x->mem);
    x->waited_us += e.waited_us;
    r->sent = mono_add(r->sent, e.waited_us);
    if (fate == JOB_DONE || fate == JOB_FAILED)
        r->done = e.end.told;
    if (fate == JOB_DONE)
        return true;
    r->outcome = fate == JOB_FAILED ? OUT_SERVER : OUT_UNKNOWN;
    r->status = fate == JOB_FAILED ? 0 : r->status;
    snprintf(r->reason, sizeof(r->reason), "%.*s", (int)sizeof(r->reason) - 1, e.end.why);
    return false;
}

/* ---- the table ---- */

static const struct {
    enum drive_op op;
    MAY_YIELD void (*run)(struct action *x);
} actions[] = {
    {OP_DOWNLOAD, action_download},     {OP_SAVE, action_save},     {OP_UPLOAD, action_upload},
    {OP_TRASH, action_trash},           {OP_RENAME, action_rename}, {OP_COPY, action_copy},
    {OP_NEW_FOLDER, action_new_folder}, {OP_MOVE, action_move},
};

void action_run(struct app *a, const struct planned *p, struct mono due)
{
    struct action x = {.app = a, .plan = p, .due = due, .mem = arena_new(ANSWER_BLOCK)};
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (actions[i].op == p->op)
            actions[i].run(&x);
    arena_free(&x.mem);
}
