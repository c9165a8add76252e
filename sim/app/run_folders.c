#include "sim/app/run_folders.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/app/errand.h"

#include <stdio.h>
#include <string.h>

#define AGAIN_US (500 * US_PER_MS)

void run_folders_init(struct run_folders *f, struct worker *w, const char *title)
{
    *f = (struct run_folders){.w = w, .of = mem_zalloc(w->roster.n_accounts * sizeof(*f->of))};
    snprintf(f->name, sizeof(f->name), "%s %08x", title, (unsigned)(w->run_key >> 16));
}

void run_folders_done(struct run_folders *f)
{
    MEM_FREE(f->of);
}

static struct run_folder *folder_of(const struct run_folders *f, const struct app *a)
{
    return &f->of[a->login->account - f->w->roster.accounts];
}

static bool is_absent(const struct api_result *r)
{
    return strcmp(r->code, API_CODE_ABSENT) == 0;
}

/* False: with the reason in r. */
static MAY_YIELD bool claim(struct app *a, struct api_result *r)
{
    struct call c = CALL(a, CAUSE_SETUP);
    if (!target_logins_given(a->w->ctx->target))
        return true;
    do
        api_claim(a->api, r);
    while (call_again(&c, r));
    return r->outcome == OUT_OK || is_absent(r);
}

static MAY_YIELD void create(struct app *a, const char *name, struct arena *mem, struct drive_file *made,
                             struct api_result *r)
{
    struct mono began = mono_now();
    do {
        struct call c = CALL(a, CAUSE_SETUP);
        do
            api_folder_create(a->api, NULL, name, mem, made, r);
        while (call_again(&c, r));
    } while (r->status == 503 && mono_diff(mono_now(), began) <= JOB_AWAY_US &&
             worker_sleep(a->w, AGAIN_US, PHASE_DRAIN));
}

static enum err cannot_make(const struct app *a, const struct api_result *r, struct errinfo *ei)
{
    enum err e = r->err == ERR_CANCELLED ? ERR_INTERRUPTED : r->outcome == OUT_REFUSED ? ERR_SAFETY : ERR_ENV;
    char status[16] = ""; /* of HTTP; other protocols have none */
    if (r->status)
        snprintf(status, sizeof(status), "%d ", r->status);
    return err_set(ei, e, "%s cannot make a folder: %s%s", a->login->email, status, r->reason);
}

enum err run_folders_make(struct run_folders *f, struct app *a, struct errinfo *ei)
{
    struct run_folder *folder = folder_of(f, a);
    if (folder->app)
        return ERR_OK;
    struct arena *mem = arena_new(4096);
    struct drive_file made = {.id = NULL};
    struct api_result r = {.outcome = OUT_OK};
    enum err e = ERR_OK;
    folder->app = a;
    app_take_session(a);
    if (!f->unseeded || claim(a, &r))
        create(a, f->name, mem, &made, &r);
    if (r.outcome == OUT_OK)
        snprintf(folder->id, sizeof(folder->id), "%s", made.id);
    else if (!f->unseeded || !is_absent(&r))
        e = cannot_make(a, &r, ei);
    arena_free(&mem);
    return e;
}

const char *run_folders_id(const struct run_folders *f, const struct app *a)
{
    return folder_of(f, a)->id;
}

bool run_folders_remove(struct run_folders *f, const char *module)
{
    bool all = true;
    char why[200];
    for (uint32_t i = 0; f->of && i < f->w->roster.n_accounts; i++) {
        struct run_folder *folder = &f->of[i];
        const char *id = folder->id;
        if (!id[0])
            continue;
        app_take_session(folder->app);
        if (errand_remove(folder->app, &id, 1, CAUSE_SETUP, why, sizeof(why))) {
            folder->id[0] = '\0';
            continue;
        }
        LOGW(module, "left behind: folder \"%s\" (%s) of %s: %s", f->name, id, folder->app->login->email, why);
        all = false;
    }
    return all;
}
