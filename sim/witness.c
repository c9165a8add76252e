#include "sim/witness.h"
#include "base/hash.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdio.h>

static void note(struct app *a, struct ledger_record *rec)
{
    rec->kind = LEDGER_NOTE;
    rec->app = a->index;
    rec->login = a->login->index;
    rec->mono_us = mono_now().us;
    rec->wall_us = wall_now().us;
    ledger_append(a->w->ledger, rec);
}

void witness_stream(struct app *a, enum ledger_stream what, const struct api_event *ev)
{
    struct ledger_record rec = {.op = OP_STREAM, .flags = (uint8_t)what};
    if (!a->w->ledger || (what == LEDGER_EVENT && !ev->file_id))
        return;
    if (what == LEDGER_EVENT) {
        snprintf(rec.file_id, sizeof(rec.file_id), "%s", ev->file_id);
        rec.revision = hash_str(ev->cursor);
    }
    note(a, &rec);
}

static void witness_folder(struct app *a, uint32_t at, struct map *seen)
{
    const struct view_folder *o = &a->view.open[at];
    struct ledger_record rec = {
        .op = OP_LIST, .flags = o->dirty, .revision = view_hash(&a->view, at), .size = view_items(&a->view, at)};
    char key[DRIVE_ID_MAX + 40];
    snprintf(rec.file_id, sizeof(rec.file_id), "%s", view_id(&a->view, at));
    snprintf(key, sizeof(key), "%s %" PRIx64 " %u", rec.file_id, rec.revision, rec.flags);
    if (map_get(seen, sv_of(key)))
        return;
    map_put(seen, sv_of(key), a);
    note(a, &rec);
}

void witness_views(struct worker *w)
{
    struct map *seen = map_new();
    for (uint32_t i = 0; w->ledger && i < w->n_apps; i++)
        for (uint32_t at = 0; at < w->apps[i].view.n; at++)
            if (w->apps[i].view.open[at].snap)
                witness_folder(&w->apps[i], at, seen);
    map_free(&seen);
}
