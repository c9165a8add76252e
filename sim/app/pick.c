#include "sim/app/pick.h"
#include "drive/path.h"

#include <stdio.h>

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

const char *action_extension(struct action *x, const char *name)
{
    struct sv ext = path_extension(sv_of(name));
    return arena_strndup(x->mem, ext.p, ext.n);
}

void action_new_name(struct action *x, const char *verb, const char *ext, char dst[DRIVE_NAME_MAX + 1])
{
    struct app *a = x->app;
    snprintf(dst, DRIVE_NAME_MAX + 1, "%s %04x-%u-%u%s%s", verb, (unsigned)(a->w->run_key & 0xffff), a->index,
             ++a->foreground.made, ext[0] ? "." : "", ext);
}
