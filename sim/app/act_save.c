#include "base/hash.h"
#include "sim/app/actions.h"
#include "sim/app/errand.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <string.h>

#define LOCK_TTL_S      120
#define UNLOCK_TRIES    3
#define UNLOCK_AGAIN_US (250 * US_PER_MS)

/* 1: held; 0: the server has no locks; -1: not granted, and the action is over. */
static MAY_YIELD int take_lock(struct action *x, const struct picked *t, struct api_lock *lock, struct api_result *r)
{
    struct app *a = x->app;
    struct call c = CALL(a, CAUSE_ACTION);
    struct ledger_record rec = {0}, told = {0};
    if (!(a->w->server.caps & API_CAP_LOCKS))
        return 0;
    action_intend(x, &rec, OP_LOCK, t);
    do
        api_lock(a->api, t->id, LOCK_TTL_S, NULL, lock, r);
    while (call_again(&c, r));
    action_text(told.other_id, sizeof(told.other_id), r->outcome == OUT_OK ? lock->id : NULL);
    action_answer(x, &rec, &told, r);
    x->waited_us += c.waited_us;
    if (strcmp(r->code, API_CODE_ABSENT) == 0)
        return 0;
    if (call_is_404(r))
        action_judge_missing(x, r, t);
    meter_excuse(&a->w->meter, r);
    call_record(&c, OP_LOCK, r, (struct mono){0});
    if (r->outcome == OUT_OK)
        return 1;
    /* The lock's row tells a failure; a conflict is also one of the save that it was for. */
    if (r->outcome == OUT_CONFLICT) {
        meter_record(&a->w->meter, OP_SAVE, r, mono_add(x->due, x->waited_us));
        sync_soon(a, t->at);
    }
    action_tally(a, OP_SAVE, r->outcome);
    return -1;
}

/* Tried again where no answer comes, also in the last seconds of a run that is cut: the lock would keep others waiting
 * until it lapses. */
static MAY_YIELD void let_go(struct action *x, const struct picked *t, const struct api_lock *lock)
{
    struct app *a = x->app;
    struct call c = CALL(a, CAUSE_ACTION);
    struct api_result r;
    struct ledger_record rec = {0};
    bool in_doubt = false;
    action_text(rec.other_id, sizeof(rec.other_id), lock->id);
    action_intend(x, &rec, OP_UNLOCK, t);
    for (unsigned tries = 1;; tries++) {
        do
            api_unlock(a->api, t->id, lock->id, &r);
        while (call_again(&c, &r));
        if (tries == UNLOCK_TRIES || !api_transient(&r))
            break;
        in_doubt = true;
        (void)!worker_sleep(a->w, UNLOCK_AGAIN_US, PHASE_CUT);
    }
    if (in_doubt && r.outcome == OUT_CONFLICT)
        r.outcome = OUT_OK; /* lost it has by now: a try whose answer was lost had been heard */
    action_told(x, &rec, &r, NULL);
    if (call_is_404(&r))
        r.outcome = OUT_CONFLICT; /* the file was trashed meanwhile, the lock went with it */
    call_record(&c, OP_UNLOCK, &r, (struct mono){0});
}

/* The next revision of a file: about as large, and naming the version that it was made from. */
static struct content next_revision(struct action *x, const struct picked *t)
{
    struct worker *w = x->app->w;
    double factor = 0.95 + 0.1 * (double)(x->plan->pick2 >> 11) / (double)(UINT64_C(1) << 53);
    int64_t size = (int64_t)((double)(t->size > 0 ? t->size : 0) * factor) + (int64_t)(x->plan->pick2 % 17);
    return (struct content){.key = rng_mix64(hash_str(t->id)),
                            .revision = rng_mix64(w->run_key + w->ledger.seq + 1) | 1,
                            .parent_revision = t->version[0] ? hash_str(t->version) : 0,
                            .size = (uint64_t)(size < ACTION_SIZE_MAX ? size : ACTION_SIZE_MAX),
                            .ext = action_extension(x, t->name)};
}

/* lock, replace with If-Match of the listed version, unlock: the unlock also after a failure. The save's latency is
 * from the lock's send to the replacement's answer; letting go afterwards keeps nobody waiting. */
void action_save(struct action *x)
{
    struct app *a = x->app;
    struct picked t;
    struct api_lock lock = {.id = ""};
    struct api_result r, lock_r;
    struct drive_file f = {0};
    struct ledger_record rec = {0};
    if (!action_pick_file(x, x->plan->pick, &t)) {
        action_nothing_to_do(x);
        return;
    }
    if (!t.version[0] && (a->w->server.caps & API_CAP_VERSIONS)) { /* what another app saved meanwhile would be lost */
        stats_reason_add(&a->w->meter.interval, OP_SAVE, "no version is listed for the file: not saved blindly");
        action_nothing_to_do(x);
        return;
    }
    int locked = take_lock(x, &t, &lock, &lock_r);
    if (locked < 0)
        return;
    struct content content = next_revision(x, &t);
    const char *version = t.version[0] ? t.version : NULL;
    action_content(&rec, &content);
    action_text(rec.other_id, sizeof(rec.other_id), lock.id);
    action_intend(x, &rec, OP_SAVE, &t);
    struct call c = CALL(a, CAUSE_ACTION);
    do
        api_replace(a->api, t.id, t.name, version, locked ? lock.id : NULL, &content, x->mem, &f, &r);
    while (call_again(&c, &r));
    action_told(x, &rec, &r, &f);
    if (locked)
        let_go(x, &t, &lock);
    if (r.outcome == OUT_OK && view_has(&a->view, t.at, t.id, NULL))
        view_put(&a->view, t.at, &f);
    if (locked)
        r.sent = mono_add(lock_r.sent, c.waited_us);
    action_finish(x, &c, OP_SAVE, &r, &t);
}
