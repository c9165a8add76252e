#include "sim/app/actions.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <string.h>

#define TRASH_MAX 5

/* As many as the app has added lately, so that a long run keeps the tree's size: the picked file and those after it. */
static size_t gather_trash(struct action *x, struct picked *t, size_t most)
{
    struct app *a = x->app;
    if (!action_pick_file(x, x->plan->pick, &t[0]))
        return 0;
    uint32_t files = view_files(&a->view, t[0].at), first = 0;
    while (strcmp(view_file_at(&a->view, t[0].at, first).id, t[0].id) != 0)
        first++;
    size_t n = a->foreground.surplus > 1 ? (size_t)a->foreground.surplus : 1;
    n = n < most ? n : most;
    n = n < files ? n : files;
    for (size_t i = 1; i < n; i++) {
        struct view_item it = view_file_at(&a->view, t[0].at, (first + (uint32_t)i) % files);
        t[i] = t[0];
        action_text(t[i].id, sizeof(t[i].id), it.id);
        action_text(t[i].version, sizeof(t[i].version), it.version);
        action_text(t[i].name, sizeof(t[i].name), it.name);
    }
    return n;
}

/* A folder that this app made goes along, one at a time, once there are several. */
static bool own_folder_to_trash(struct app *a, char id[DRIVE_ID_MAX + 1])
{
    char(*own)[DRIVE_ID_MAX + 1] = a->foreground.own_folders;
    if (!own[APP_OWN_FOLDERS - 1][0])
        return false;
    memcpy(id, own[0], DRIVE_ID_MAX + 1);
    memmove(own[0], own[1], sizeof(own[0]) * (APP_OWN_FOLDERS - 1));
    own[APP_OWN_FOLDERS - 1][0] = '\0';
    return true;
}

/* One of several that is gone keeps all of them: a conflict when a fresh listing lacks one. */
static MAY_YIELD void judge_missing_one(struct action *x, struct api_result *r, const struct picked *t, size_t n)
{
    struct app *a = x->app;
    if (!sync_list(a, t[0].at, OP_LIST, CAUSE_RELIST))
        return;
    for (size_t i = 0; i < n; i++)
        if (!view_has(&a->view, t[i].at, t[i].id, NULL))
            r->outcome = OUT_CONFLICT;
}

void action_trash(struct action *x)
{
    struct app *a = x->app;
    struct picked *t = arena_alloc(x->mem, TRASH_MAX * sizeof(*t));
    struct ledger_record *recs = arena_alloc(x->mem, (TRASH_MAX + 1) * sizeof(*recs));
    const char *ids[TRASH_MAX + 1];
    struct picked own = {.at = VIEW_NONE};
    struct api_job job = {.done = false};
    struct api_result r;
    bool batch = a->w->server.caps & API_CAP_BATCH;
    size_t n = gather_trash(x, t, batch ? TRASH_MAX : 1), n_ids = n;
    if (n == 0) {
        action_nothing_to_do(x);
        return;
    }
    bool folder = own_folder_to_trash(a, own.id);
    if (folder && !batch)
        n = n_ids = 0; /* one at a time: this time the folder */
    n_ids += folder;
    for (size_t i = 0, first = a->w->ledger.seq + 1; i < n_ids; i++) {
        ids[i] = i < n ? t[i].id : own.id;
        recs[i].revision = first;
        action_intend(x, &recs[i], OP_TRASH, i < n ? &t[i] : &own);
    }
    struct call c = CALL(a, CAUSE_ACTION);
    do
        api_trash(a->api, ids, n_ids, &job, &r);
    while (call_again(&c, &r));
    if (r.outcome == OUT_OK && job.id[0])
        action_job(x, &job, &r);
    for (size_t i = 0; i < n_ids; i++)
        action_told(x, &recs[i], &r, NULL);
    for (size_t i = 0; i < n; i++)
        if (r.outcome == OUT_OK && a->view.open[t[i].at].snap)
            view_drop(&a->view, t[i].at, t[i].id);
    if (r.outcome == OUT_OK)
        a->foreground.surplus -= (int32_t)n;
    if (call_is_404(&r))
        judge_missing_one(x, &r, t, n);
    action_finish(x, &c, OP_TRASH, &r, NULL);
    if (r.outcome != OUT_OK)
        sync_soon(a, t[0].at);
}
