/* What every action needs: a target out of the app's view, the ledger's two records, the verdict over its end. What is
 * needed after a yield is copied out of the view first. A target that is gone or changed meanwhile is a conflict: the
 * server working as designed, and the app learns better by listing again. But "not found" is believed only when the
 * listing agrees. */
#include "sim/app/actions.h"
#include "base/mem.h"
#include "drive/path.h"
#include "sim/app/witness.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_BLOCK   (4u << 10)
#define JOB_FIRST_US   (20 * US_PER_MS)
#define JOB_MOST_US    (2 * US_PER_S)
#define JOB_GIVE_UP_US (600 * US_PER_S)

void action_text(char *dst, size_t n, const char *src)
{
    snprintf(dst, n, "%s", src ? src : "");
}

bool action_pick_file(struct action *x, uint64_t pick, struct picked *t)
{
    const struct view *v = &x->app->view;
    if (v->files == 0)
        return false;
    struct view_item it = view_file(v, pick % v->files, &t->at);
    action_text(t->folder, sizeof(t->folder), view_id(v, t->at));
    action_text(t->id, sizeof(t->id), it.id);
    action_text(t->version, sizeof(t->version), it.version);
    action_text(t->name, sizeof(t->name), it.name);
    t->size = it.size;
    return true;
}

uint32_t action_pick_folder(const struct action *x, uint64_t pick, uint32_t but)
{
    const struct view *v = &x->app->view;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t at = (uint32_t)((pick + i) % v->n);
        if (at != but && v->open[at].snap)
            return at;
    }
    return VIEW_NONE;
}

uint32_t action_pick_busy_folder(const struct action *x, uint64_t pick)
{
    const struct view *v = &x->app->view;
    uint32_t at = VIEW_NONE;
    if (v->files == 0)
        return action_pick_folder(x, pick, VIEW_NONE);
    view_file(v, pick % v->files, &at);
    return at;
}

/* ---- the end of an action ---- */

void action_tally(struct app *a, enum drive_op op, enum outcome o)
{
    struct tally *t = &a->w->meter.actions;
    a->login->account->writes += o == OUT_OK && op != OP_DOWNLOAD;
    if (o == OUT_OK)
        t->done++;
    else if (o == OUT_CONFLICT || o == OUT_THROTTLED)
        t->conflicts++;
    else if (o == OUT_UNFINISHED)
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

const char *action_extension(struct action *x, const char *name)
{
    struct sv ext = path_extension(sv_of(name));
    return arena_strndup(x->mem, ext.p, ext.n);
}

void action_new_name(struct action *x, const char *verb, const char *ext, char dst[DRIVE_NAME_MAX + 1])
{
    struct app *a = x->app;
    snprintf(dst, DRIVE_NAME_MAX + 1, "%s %04x-%u-%u%s%s", verb, (unsigned)(a->w->run_key & 0xffff), a->index,
             ++a->made, ext[0] ? "." : "", ext);
}

/* ---- the ledger ---- */

void action_intend(struct action *x, struct ledger_record *rec, enum drive_op op, const struct picked *t)
{
    struct worker *w = x->app->w;
    rec->op = (uint8_t)op;
    rec->seq = ++w->ledger_seq;
    if (t) {
        action_text(rec->file_id, sizeof(rec->file_id), t->id);
        action_text(rec->parent_id, sizeof(rec->parent_id), t->folder);
        action_text(rec->version_before, sizeof(rec->version_before), t->version);
        if (!rec->name[0] && op != OP_DOWNLOAD)
            action_text(rec->name, sizeof(rec->name), t->name);
    }
    witness_stamp(x->app, rec, LEDGER_INTENT);
    if (w->ledger)
        ledger_append(w->ledger, rec);
}

void action_answer(struct action *x, const struct ledger_record *rec, struct ledger_record *told,
                   const struct api_result *r)
{
    struct worker *w = x->app->w;
    if (!w->ledger)
        return;
    told->op = rec->op;
    told->seq = rec->seq;
    told->outcome = (uint8_t)r->outcome;
    told->status = (uint16_t)r->status;
    witness_stamp(x->app, told, LEDGER_OUTCOME);
    ledger_append(w->ledger, told);
}

void action_told(struct action *x, const struct ledger_record *rec, const struct api_result *r,
                 const struct drive_file *f)
{
    struct ledger_record told = {0};
    if (r->outcome == OUT_OK && f && f->id) {
        if (strcmp(f->id, rec->file_id) != 0)
            action_text(told.file_id, sizeof(told.file_id), f->id);
        if (f->name && strcmp(f->name, rec->name) != 0)
            action_text(told.name, sizeof(told.name), f->name);
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

/* ---- jobs ---- */

/* Polls until the job has ended; its end is the action's. False when it failed or was given up. */
bool action_job(struct action *x, struct api_job *job, struct api_result *r)
{
    struct app *a = x->app;
    struct mono began = mono_now();
    int64_t wait = JOB_FIRST_US;
    struct api_result poll;
    while (!job->done) {
        if (!worker_sleep(a->w, wait, PHASE_CUT)) {
            r->outcome = OUT_UNKNOWN;
            return false;
        }
        struct call c = CALL(a, CAUSE_ACTION);
        do
            api_job_poll(a->api, job, x->mem, &poll);
        while (call_again(&c, &poll));
        x->waited_us += c.waited_us;
        r->sent = mono_add(r->sent, c.waited_us);
        if (!job->failed)
            call_record(&c, OP_JOB, &poll, (struct mono){0});
        wait = wait * 3 / 2 < JOB_MOST_US ? wait * 3 / 2 : JOB_MOST_US;
        bool lost = call_is_404(&poll), late = mono_diff(mono_now(), began) > JOB_GIVE_UP_US;
        if (lost || late || a->w->phase >= PHASE_CUT) {
            r->outcome = OUT_UNKNOWN;
            action_text(r->reason, sizeof(r->reason), lost ? "its job is not known any more" : "its job did not end");
            return false;
        }
    }
    r->done = poll.done;
    if (job->failed) {
        r->outcome = OUT_SERVER;
        r->status = 0;
        snprintf(r->reason, sizeof(r->reason), "its job failed: %.150s", poll.reason);
    }
    return !job->failed;
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
