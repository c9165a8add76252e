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
    w->fleet.apps = mem_zalloc(w->conf.apps * sizeof(*w->fleet.apps));
    while (e == ERR_OK && w->fleet.n < w->conf.apps) {
        e = app_init(&w->fleet.apps[w->fleet.n], w, w->fleet.n, ei);
        w->fleet.n += e == ERR_OK;
    }
    return e;
}

void fleet_free(struct worker *w)
{
    for (uint32_t i = 0; i < w->fleet.n; i++)
        app_done(&w->fleet.apps[i]);
    MEM_FREE(w->fleet.apps);
    w->fleet.n = 0;
}
