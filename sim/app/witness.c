#include "sim/app/witness.h"
#include "base/map.h"
#include "base/mem.h"
#include "sim/app/delivery.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void witness_stamp(const struct app *a, struct ledger_record *rec, enum ledger_kind kind)
{
    rec->kind = (uint8_t)kind;
    rec->app = a->index;
    rec->login = a->login->index;
    rec->mono_us = mono_now().us;
    rec->wall_us = wall_now().us;
}

static void note(struct app *a, struct ledger_record *rec, enum ledger_kind kind)
{
    witness_stamp(a, rec, kind);
    ledger_append(a->w->ledger.file, rec);
}

/* Cursors are opaque, but those that end in a number tell the order of what they stand for. */
static uint64_t trailing_number(const char *cursor)
{
    size_t n = strlen(cursor), from = n;
    uint64_t v = 0;
    while (from > 0 && n - from < 18 && cursor[from - 1] >= '0' && cursor[from - 1] <= '9')
        from--;
    for (; from < n; from++)
        v = v * 10 + (uint64_t)(cursor[from] - '0');
    return v;
}

void witness_stream(struct app *a, enum ledger_stream what, const struct api_event *ev)
{
    struct ledger_record rec = {.op = OP_STREAM, .flags = (uint8_t)what};
    if (!a->w->ledger.file || (what == LEDGER_EVENT && !ev->file_id))
        return;
    if (what == LEDGER_EVENT) {
        snprintf(rec.file_id, sizeof(rec.file_id), "%s", ev->file_id);
        rec.status = (uint16_t)ev->op;
        rec.revision = delivery_identity(ev);
        rec.size = trailing_number(ev->cursor);
    } else if (what == LEDGER_STREAM_UP) {
        rec.size = (uint64_t)a->stream.bytes_per_s;
    }
    note(a, &rec, LEDGER_NOTE);
}

/* -1: it was answered, or never asked. */
static int silence_of(const struct api_result *r)
{
    static const struct {
        enum err err;
        enum ledger_silence how;
    } rows[] = {
        {ERR_TIMEOUT, LEDGER_TIMED_OUT}, {ERR_CONNECT, LEDGER_NO_CONNECTION}, {ERR_RESOLVE, LEDGER_NO_CONNECTION},
        {ERR_TLS, LEDGER_NO_CONNECTION}, {ERR_RESET, LEDGER_CLOSED},          {ERR_CLOSED, LEDGER_CLOSED},
        {ERR_CANCELLED, LEDGER_CUT},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].err == r->err)
            return (int)rows[i].how;
    return -1;
}

void witness_silence(struct app *a, enum drive_op op, const struct api_result *r)
{
    int how = silence_of(r);
    struct ledger_record rec = {.op = (uint8_t)op, .outcome = (uint8_t)r->outcome, .status = (uint16_t)r->status};
    struct api_result excused = *r;
    if (how < 0 || !a->w->ledger.file || r->sent.us == 0)
        return;
    meter_excuse(&a->w->meter, &excused);
    if (excused.outcome == OUT_OUTAGE)
        return;
    rec.flags = (uint8_t)how;
    rec.seq = (uint64_t)mono_diff(mono_now(), r->sent);
    snprintf(rec.name, sizeof(rec.name), "%s", r->reason);
    note(a, &rec, LEDGER_UNANSWERED);
}

void witness_still(struct worker *w, int64_t age_us, const char *what)
{
    struct ledger_record rec = {
        .kind = LEDGER_STOOD_STILL, .mono_us = mono_now().us, .wall_us = wall_now().us, .seq = (uint64_t)age_us};
    if (!w->ledger.file)
        return;
    snprintf(rec.name, sizeof(rec.name), "%s", what);
    ledger_append(w->ledger.file, &rec);
}

static void witness_folder(struct app *a, uint32_t at, struct map *seen)
{
    const struct view_folder *o = &a->view.open[at];
    struct ledger_record rec = {
        .op = OP_LIST, .flags = o->dirty || app_deaf(a) || a->stream.bytes_per_s > 0, .size = view_items(&a->view, at)};
    char key[DRIVE_ID_MAX + 60];
    rec.revision = view_hash(&a->view, at, &rec.content_key);
    snprintf(rec.file_id, sizeof(rec.file_id), "%s", view_id(&a->view, at));
    snprintf(key, sizeof(key), "%s %" PRIx64 " %" PRIx64 " %u", rec.file_id, rec.revision, rec.content_key, rec.flags);
    if (map_get(seen, sv_of(key)))
        return;
    map_put(seen, sv_of(key), a);
    note(a, &rec, LEDGER_NOTE);
}

void witness_views(struct worker *w)
{
    struct map *seen = map_new();
    for (uint32_t i = 0; w->ledger.file && i < w->fleet.n; i++)
        for (uint32_t at = 0; at < w->fleet.apps[i].view.n; at++)
            if (w->fleet.apps[i].view.open[at].snap)
                witness_folder(&w->fleet.apps[i], at, seen);
    map_free(&seen);
}
