#include "sim/app/fleet.h"

#include "base/mem.h"
#include "sim/app/logins.h"

enum err fleet_find(struct worker *w, struct errinfo *ei)
{
    enum err e = logins_discover(w, ei);
    return e == ERR_OK ? logins_read_trees(w, ei) : e;
}

enum err fleet_make(struct worker *w, struct errinfo *ei)
{
    enum err e = ERR_OK;
    w->apps = mem_zalloc(w->conf.apps * sizeof(*w->apps));
    while (e == ERR_OK && w->n_apps < w->conf.apps) {
        e = app_init(&w->apps[w->n_apps], w, w->n_apps, ei);
        w->n_apps += e == ERR_OK;
    }
    return e;
}

void fleet_free(struct worker *w)
{
    for (uint32_t i = 0; i < w->n_apps; i++)
        app_done(&w->apps[i]);
    MEM_FREE(w->apps);
    w->n_apps = 0;
}
