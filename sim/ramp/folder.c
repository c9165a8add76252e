/* A folder of the ramp's own in each account that it works in, where the server knows folders; taken away at the end.
 */
#include "base/mem.h"
#include "sim/app/remove.h"
#include "sim/ramp/impl.h"

#include <string.h>

#define HURRY_US (1500 * US_PER_MS)

static const struct login *first_login(const struct worker *w, uint32_t account)
{
    for (uint32_t i = 0; i < w->n_logins; i++)
        if (w->logins[i].account == &w->accounts[account])
            return &w->logins[i];
    return NULL;
}

const char *ramp_folder_of(const struct ramp *r, const struct login *l)
{
    const char *id = r->folders[l->account - r->w->accounts].id;
    return id[0] ? id : NULL;
}

static MAY_YIELD enum err make(struct ramp *r, const struct login *l, struct ramp_folder *out, struct errinfo *ei)
{
    struct arena *mem = arena_new(2048);
    struct drive_file made = {.id = NULL};
    struct api_result res = {.outcome = OUT_OK};
    char name[60];
    enum err e = ERR_OK;
    if (target_logins_given(r->w->ctx->target) && api_claim(l->api, &res) == ERR_OK &&
        strcmp(res.code, API_CODE_ABSENT) == 0)
        res.outcome = OUT_OK;
    snprintf(name, sizeof(name), "Ramp %08x", (unsigned)(r->w->run_key >> 16));
    if (res.outcome == OUT_OK)
        api_folder_create(l->api, NULL, name, mem, &made, &res);
    if (res.outcome == OUT_OK)
        snprintf(out->id, sizeof(out->id), "%s", made.id);
    else if (strcmp(res.code, API_CODE_ABSENT) != 0)
        e = err_set(ei, res.outcome == OUT_REFUSED ? ERR_SAFETY : ERR_ENV, "%s cannot make a folder: %s", l->email,
                    res.reason);
    arena_free(&mem);
    return e;
}

enum err ramp_make_folders(struct ramp *r, struct errinfo *ei)
{
    enum err e = ERR_OK;
    r->folders = mem_zalloc(r->w->n_accounts * sizeof(*r->folders));
    for (uint32_t i = 0; i < r->w->n_accounts && e == ERR_OK; i++) {
        const struct login *l = first_login(r->w, i);
        e = l ? make(r, l, &r->folders[i], ei) : ERR_OK;
    }
    return e;
}

struct hurry {
    struct timer timer;
    struct api *api; /* NULL: not now */
    bool late;
};

static void on_hurry(struct timer *t)
{
    struct hurry *h = container_of(t, struct hurry, timer);
    h->late = true;
    if (h->api)
        api_cancel(h->api);
}

static MAY_YIELD void remove_one(struct ramp *r, const struct login *l, const char *id, struct hurry *h)
{
    int64_t limit_us = worker_draining(r->w) ? HURRY_US : r->conf->drain_us;
    struct remover m = {.ctx = r->w->ctx, .api = l->api, .stop = &h->late, .limit_us = limit_us};
    char why[200] = "no time was left for it";
    h->api = l->api;
    if (h->late || !remove_to_trash(&m, &id, 1, why, sizeof(why)) || !remove_from_trash(&m, &id, 1, why, sizeof(why)))
        ramp_say(r, "ramp: left behind: folder %s of %s: %s", id, l->email, why);
    h->api = NULL;
}

/* At the end of a ramp that was stopped they get a moment: a server that does not answer keeps them. */
void ramp_remove_folders(struct ramp *r)
{
    struct hurry h = {.timer.fn = on_hurry};
    if (!r->folders)
        return;
    if (worker_draining(r->w))
        loop_timer_set(r->w->loop, &h.timer, mono_add(mono_now(), HURRY_US));
    for (uint32_t i = 0; i < r->w->n_accounts && !r->conf->keep; i++)
        if (r->folders[i].id[0])
            remove_one(r, first_login(r->w, i), r->folders[i].id, &h);
    loop_timer_stop(&h.timer);
    MEM_FREE(r->folders);
}
