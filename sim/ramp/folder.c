/* A folder of the ramp's own in each account that it works in, where the server knows folders; taken away at the end.
 * The logins' own clients make them: one more connection would take a place that --limit counts. */
#include "base/mem.h"
#include "sim/app/run_folders.h"
#include "sim/ramp/impl.h"

#define HURRY_US (1500 * US_PER_MS)

struct ramp_folders {
    struct run_folders in;
    struct app makers[]; /* one an account */
};

/* Each account's first login makes its folder: logins are taken from the accounts in turn (logins.c). */
enum err ramp_make_folders(struct ramp *r, struct errinfo *ei)
{
    struct worker *w = r->w;
    enum err e = ERR_OK;
    r->folders = mem_zalloc(sizeof(*r->folders) + w->roster.n_accounts * sizeof(struct app));
    run_folders_init(&r->folders->in, w, "Ramp");
    r->folders->in.unseeded = true;
    for (uint32_t i = 0; i < w->roster.n_accounts && e == ERR_OK; i++) {
        struct app *a = &r->folders->makers[i];
        app_init_shared(a, w, &w->roster.logins[i]);
        e = run_folders_make(&r->folders->in, a, ei);
    }
    return e;
}

const char *ramp_folder_of(const struct ramp *r, const struct login *l)
{
    const char *id = run_folders_id(&r->folders->in, &r->folders->makers[l->account - r->w->roster.accounts]);
    return id[0] ? id : NULL;
}

struct hurry {
    struct timer timer;
    struct ramp *r;
};

static void on_hurry(struct timer *t)
{
    struct ramp *r = container_of(t, struct hurry, timer)->r;
    worker_set_phase(r->w, PHASE_CUT);
    for (uint32_t i = 0; i < r->w->roster.n_accounts; i++)
        api_cancel(r->w->roster.logins[i].api);
}

/* At the end of a ramp that was stopped they get a moment: a server that does not answer keeps them. */
void ramp_remove_folders(struct ramp *r)
{
    struct hurry h = {.timer.fn = on_hurry, .r = r};
    if (!r->folders)
        return;
    if (worker_draining(r->w))
        loop_timer_set(r->w->loop, &h.timer, mono_add(mono_now(), HURRY_US));
    if (!r->conf->keep)
        run_folders_remove(&r->folders->in, "ramp");
    loop_timer_stop(&h.timer);
    run_folders_done(&r->folders->in);
    MEM_FREE(r->folders);
}
