#include "sim/app/actions.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <stdio.h>
#include <string.h>

static void remember_own_folder(struct app *a, const char *id)
{
    for (int i = 0; i < APP_OWN_FOLDERS; i++)
        if (!a->foreground.own_folders[i][0]) {
            action_text(a->foreground.own_folders[i], sizeof(a->foreground.own_folders[i]), id);
            return;
        }
}

void action_new_folder(struct action *x)
{
    struct app *a = x->app;
    struct picked into = {.at = action_pick_folder(x, x->plan->pick, VIEW_NONE)};
    struct drive_file f = {0};
    struct api_result r;
    struct ledger_record rec = {0};
    if (into.at == VIEW_NONE) {
        action_nothing_to_do(x);
        return;
    }
    action_text(into.folder, sizeof(into.folder), view_id(&a->view, into.at));
    action_new_name(x, "New folder", "", rec.name);
    action_text(rec.parent_id, sizeof(rec.parent_id), into.folder);
    action_intend(x, &rec, OP_NEW_FOLDER, NULL);
    const char *name = arena_strdup(x->mem, rec.name);
    struct call c = CALL(a, CAUSE_ACTION);
    do
        api_folder_create(a->api, into.folder, name, x->mem, &f, &r);
    while (call_again(&c, &r));
    action_told(x, &rec, &r, &f);
    if (r.outcome == OUT_OK && f.id) {
        remember_own_folder(a, f.id);
        if (a->view.open[into.at].snap)
            view_put(&a->view, into.at, &f);
    }
    if (call_is_404(&r))
        action_judge_folder(x, &r, into.at);
    action_finish(x, &c, OP_NEW_FOLDER, &r, NULL);
}
