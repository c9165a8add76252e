#include "sim/app/actions.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <stdio.h>

void action_upload(struct action *x)
{
    struct app *a = x->app;
    struct picked like = {.name = "file.txt", .size = 4096}; /* in a view without any file */
    struct picked into = {.at = action_pick_busy_folder(x, x->plan->pick)};
    struct drive_file f = {0};
    struct api_result r;
    struct ledger_record rec = {0};
    if (into.at == VIEW_NONE) {
        action_nothing_to_do(x);
        return;
    }
    action_pick_file(x, x->plan->pick2, &like);
    action_text(into.folder, sizeof(into.folder), view_id(&a->view, into.at));
    const char *ext = action_extension(x, like.name);
    action_new_name(x, "Upload", ext, rec.name);
    struct content content = {.key = rng_mix64(a->w->run_key ^ (a->w->ledger.seq + 1)),
                              .revision = 1,
                              .size = (uint64_t)(like.size < 0                 ? 0
                                                 : like.size > ACTION_SIZE_MAX ? ACTION_SIZE_MAX
                                                                               : like.size),
                              .ext = ext};
    action_content(&rec, &content);
    action_text(rec.parent_id, sizeof(rec.parent_id), into.folder);
    action_intend(x, &rec, OP_UPLOAD, NULL);
    struct api_upload u = {
        .parent_id = into.folder, .name = arena_strdup(x->mem, rec.name), .content = &content, .modified = wall_now()};
    struct call c = CALL(a, CAUSE_ACTION);
    do
        api_upload(a->api, &u, x->mem, &f, &r);
    while (call_again(&c, &r));
    action_told(x, &rec, &r, &f);
    if (r.outcome == OUT_OK && a->view.open[into.at].snap)
        view_put(&a->view, into.at, &f);
    a->foreground.surplus += r.outcome == OUT_OK;
    if (call_is_404(&r))
        action_judge_folder(x, &r, into.at);
    action_finish(x, &c, OP_UPLOAD, &r, NULL);
}
