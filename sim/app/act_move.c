#include "sim/app/actions.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <string.h>

void action_move(struct action *x)
{
    struct app *a = x->app;
    struct picked t;
    struct api_result r;
    struct ledger_record rec = {0};
    if (!action_pick_file(x, x->plan->pick, &t)) {
        action_nothing_to_do(x);
        return;
    }
    uint32_t to = action_pick_folder(x, x->plan->pick2, t.at);
    if (to == VIEW_NONE) {
        action_nothing_to_do(x);
        return;
    }
    const char *ids[] = {t.id};
    action_text(rec.other_id, sizeof(rec.other_id), view_id(&a->view, to));
    action_intend(x, &rec, OP_MOVE, &t);
    struct call c = CALL(a, CAUSE_ACTION);
    do
        api_move(a->api, ids, 1, rec.other_id, &r);
    while (call_again(&c, &r));
    action_told(x, &rec, &r, &(struct drive_file){.id = t.id, .name = api_placed_name(a->api, t.id)});
    if (r.outcome == OUT_OK && a->view.open[t.at].snap)
        view_drop(&a->view, t.at, t.id);
    if (r.outcome == OUT_OK && !(a->w->server.caps & API_CAP_EVENTS))
        sync_soon(a, to);
    if (call_is_404(&r))
        action_judge_folder(x, &r, to);
    action_finish(x, &c, OP_MOVE, &r, &t);
}
