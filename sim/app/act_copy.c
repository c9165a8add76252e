#include "sim/app/actions.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <string.h>

/* Its source may have been trashed between the request and the work: a conflict, when the listing agrees. */
static MAY_YIELD void judge_failed_job(struct action *x, const struct api_job *job, struct api_result *r,
                                       const struct picked *t)
{
    struct app *a = x->app;
    if (job->failed && sync_list(a, t->at, OP_LIST, CAUSE_RELIST) && !view_has(&a->view, t->at, t->id, NULL))
        r->outcome = OUT_CONFLICT;
}

/* The copy's time is that of the whole: from the request to the job's end. */
void action_copy(struct action *x)
{
    struct app *a = x->app;
    struct picked t;
    struct api_job job = {.done = false};
    struct api_result r;
    struct ledger_record rec = {0};
    uint32_t to = action_pick_folder(x, x->plan->pick2, VIEW_NONE);
    if (to == VIEW_NONE || !action_pick_file(x, x->plan->pick, &t)) {
        action_nothing_to_do(x);
        return;
    }
    const char *ids[] = {t.id};
    action_text(rec.other_id, sizeof(rec.other_id), view_id(&a->view, to));
    action_intend(x, &rec, OP_COPY, &t);
    struct call c = CALL(a, CAUSE_ACTION);
    do
        api_copy(a->api, ids, 1, rec.other_id, &job, &r);
    while (call_again(&c, &r));
    if (r.outcome == OUT_OK && job.id[0] && !action_job(x, &job, &r))
        judge_failed_job(x, &job, &r, &t);
    /* Not every server names the copy: then the record names none, rather than its source. */
    struct drive_file made = {.id = job.n_ids ? job.ids[0] : ""};
    made.name = api_placed_name(a->api, made.id);
    action_told(x, &rec, &r, &made);
    a->foreground.surplus += r.outcome == OUT_OK;
    if (r.outcome == OUT_OK && !(a->w->server.caps & API_CAP_EVENTS))
        sync_soon(a, to);
    if (call_is_404(&r))
        action_judge_folder(x, &r, to);
    action_finish(x, &c, OP_COPY, &r, &t);
}
