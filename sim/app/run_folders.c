#include "sim/app/run_folders.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/app/errand.h"

#include <stdio.h>

void run_folders_init(struct run_folders *f, struct worker *w, const char *title)
{
    *f = (struct run_folders){.w = w, .of = mem_zalloc(w->n_accounts * sizeof(*f->of))};
    snprintf(f->name, sizeof(f->name), "%s %08x", title, (unsigned)(w->run_key >> 16));
}

void run_folders_done(struct run_folders *f)
{
    MEM_FREE(f->of);
}

static struct run_folder *folder_of(const struct run_folders *f, const struct app *a)
{
    return &f->of[a->login->account - f->w->accounts];
}

enum err run_folders_make(struct run_folders *f, struct app *a, struct errinfo *ei)
{
    struct run_folder *folder = folder_of(f, a);
    if (folder->app)
        return ERR_OK;
    folder->app = a;
    return errand_folder(a, f->name, folder->id, ei);
}

const char *run_folders_id(const struct run_folders *f, const struct app *a)
{
    return folder_of(f, a)->id;
}

bool run_folders_remove(struct run_folders *f, const char *module)
{
    bool all = true;
    char why[200];
    for (uint32_t i = 0; f->of && i < f->w->n_accounts; i++) {
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
