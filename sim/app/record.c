#include "sim/app/record.h"
#include "sim/app/pick.h"
#include "sim/app/witness.h"

#include <string.h>

void action_intend(struct action *x, struct ledger_record *rec, enum drive_op op, const struct picked *t)
{
    struct worker *w = x->app->w;
    rec->op = (uint8_t)op;
    rec->seq = ++w->ledger.seq;
    if (t) {
        action_text(rec->file_id, sizeof(rec->file_id), t->id);
        action_text(rec->parent_id, sizeof(rec->parent_id), t->folder);
        action_text(rec->version_before, sizeof(rec->version_before), t->version);
        if (!rec->name[0] && op != OP_DOWNLOAD)
            action_text(rec->name, sizeof(rec->name), t->name);
    }
    witness_stamp(x->app, rec, LEDGER_INTENT);
    if (w->ledger.file)
        ledger_append(w->ledger.file, rec);
}

void action_answer(struct action *x, const struct ledger_record *rec, struct ledger_record *told,
                   const struct api_result *r)
{
    struct worker *w = x->app->w;
    if (!w->ledger.file)
        return;
    told->op = rec->op;
    told->seq = rec->seq;
    told->outcome = (uint8_t)r->outcome;
    told->status = (uint16_t)r->status;
    witness_stamp(x->app, told, LEDGER_OUTCOME);
    ledger_append(w->ledger.file, told);
}

void action_told(struct action *x, const struct ledger_record *rec, const struct api_result *r,
                 const struct drive_file *f)
{
    struct ledger_record told = {0};
    if (r->outcome == OUT_OK && f && f->id) {
        if (strcmp(f->id, rec->file_id) != 0)
            action_text(told.file_id, sizeof(told.file_id), f->id);
        if (f->name && (rec->op == OP_COPY || strcmp(f->name, rec->name) != 0)) /* the intent has the source's */
            action_text(told.name, sizeof(told.name), f->name);
        if (rec->op == OP_RENAME && f->parent_id && strcmp(f->parent_id, rec->parent_id) != 0) /* others moved it */
            action_text(told.parent_id, sizeof(told.parent_id), f->parent_id);
        action_text(told.version_after, sizeof(told.version_after), f->version);
    }
    action_answer(x, rec, &told, r);
    if (r->outcome == OUT_OK && rec->op != OP_LOCK && rec->op != OP_UNLOCK && rec->op != OP_DOWNLOAD)
        delivery_told(x->app, (enum drive_op)rec->op, told.file_id[0] ? told.file_id : rec->file_id);
}

void action_content(struct ledger_record *rec, const struct content *c)
{
    rec->content_key = c->key;
    rec->revision = c->revision;
    rec->parent_revision = c->parent_revision;
    rec->size = c->size;
}
