#include "sim/app/actions.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <stdio.h>
#include <string.h>

void action_rename(struct action *x)
{
    struct app *a = x->app;
    struct picked t;
    struct drive_file f = {0};
    struct api_result r;
    struct ledger_record rec = {0};
    if (!action_pick_file(x, x->plan->pick, &t)) {
        action_nothing_to_do(x);
        return;
    }
    const char *ext = action_extension(x, t.name);
    action_new_name(x, "Renamed", ext, rec.name);
    action_text(rec.old_name, sizeof(rec.old_name), t.name);
    action_intend(x, &rec, OP_RENAME, &t);
    const char *name = arena_strdup(x->mem, rec.name);
    struct call c = CALL(a, CAUSE_ACTION);
    do
        api_rename(a->api, t.id, name, x->mem, &f, &r);
    while (call_again(&c, &r));
    action_told(x, &rec, &r, &f);
    if (r.outcome == OUT_OK && f.id && view_has(&a->view, t.at, t.id, NULL))
        view_put(&a->view, t.at, &f);
    action_finish(x, &c, OP_RENAME, &r, &t);
}
