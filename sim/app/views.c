#include "sim/app/views.h"
#include "base/hash.h"
#include "base/mem.h"
#include "drive/ledger.h"

#include <string.h>

void view_init(struct view *v, struct folders *f, const uint32_t *folders, uint32_t n)
{
    *v = (struct view){.folders = f, .n = n, .open = mem_zalloc((n + 1) * sizeof(*v->open))};
    for (uint32_t i = 0; i < n; i++)
        v->open[i].folder = folders[i];
}

void view_done(struct view *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        snap_give(v->folders, v->open[i].snap);
    MEM_FREE(v->open);
    v->n = 0;
    v->files = 0;
}

uint32_t view_find(const struct view *v, const char *folder_id)
{
    uint32_t folder = folders_find(v->folders, folder_id), low = 0, high = v->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (v->open[middle].folder < folder)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->n && v->open[low].folder == folder ? low : VIEW_NONE;
}

const char *view_id(const struct view *v, uint32_t at)
{
    return folders_id(v->folders, v->open[at].folder);
}

static void set_snap(struct view *v, uint32_t at, struct snap *s)
{
    struct view_folder *o = &v->open[at];
    v->files += snap_files(s);
    v->files -= snap_files(o->snap);
    snap_give(v->folders, o->snap);
    o->snap = s;
}

void view_list(struct view *v, uint32_t at, const struct drive_listing *l)
{
    set_snap(v, at, snap_take(v->folders, v->open[at].folder, l));
    v->open[at].gone = false;
}

void view_gone(struct view *v, uint32_t at)
{
    set_snap(v, at, NULL);
    v->open[at].gone = true;
    v->open[at].dirty = false;
}

/* The snapshot as a listing without item `id`, with room for one more item; *was is where id stood. */
static struct drive_listing listing_without(const struct snap *s, const char *id, size_t *was)
{
    struct drive_listing l = {.items = mem_zalloc((snap_items(s) + 1) * sizeof(*l.items))};
    *was = snap_files(s);
    for (uint32_t k = 0; k < snap_items(s); k++) {
        struct view_item it = snap_item(s, k);
        if (strcmp(it.id, id) == 0) {
            *was = l.n;
            continue;
        }
        l.items[l.n++] = (struct drive_file){
            .id = it.id, .name = it.name, .version = it.version, .size = it.size, .folder = it.folder};
    }
    if (*was > l.n)
        *was = l.n;
    return l;
}

void view_put(struct view *v, uint32_t at, const struct drive_file *file)
{
    const struct snap *s = v->open[at].snap;
    size_t place;
    struct drive_listing l = listing_without(s, file->id, &place);
    memmove(&l.items[place + 1], &l.items[place], (l.n - place) * sizeof(*l.items));
    l.items[place] = *file;
    l.n++;
    set_snap(v, at, snap_take(v->folders, v->open[at].folder, &l));
    v->open[at].changes++;
    mem_free(l.items);
}

void view_drop(struct view *v, uint32_t at, const char *id)
{
    size_t place;
    struct drive_listing l = listing_without(v->open[at].snap, id, &place);
    set_snap(v, at, snap_take(v->folders, v->open[at].folder, &l));
    v->open[at].changes++;
    mem_free(l.items);
}

uint32_t view_items(const struct view *v, uint32_t at)
{
    return snap_items(v->open[at].snap);
}

uint32_t view_files(const struct view *v, uint32_t at)
{
    return snap_files(v->open[at].snap);
}

struct view_item view_file_at(const struct view *v, uint32_t at, uint32_t k)
{
    return snap_item(v->open[at].snap, k);
}

struct view_item view_file(const struct view *v, uint64_t k, uint32_t *at)
{
    uint32_t i = 0;
    while (k >= view_files(v, i))
        k -= view_files(v, i++);
    *at = i;
    return view_file_at(v, i, (uint32_t)k);
}

uint64_t view_hash(const struct view *v, uint32_t at, uint64_t *versions)
{
    const struct snap *s = v->open[at].snap;
    uint64_t sum = 0;
    *versions = 0;
    for (uint32_t k = 0; k < snap_items(s); k++) {
        struct view_item it = snap_item(s, k);
        sum += ledger_entry_hash(it.id, it.name);
        if (!it.folder)
            *versions += ledger_version_hash(it.id, it.version ? hash_str(it.version) : 0);
    }
    return sum;
}

bool view_has(const struct view *v, uint32_t at, const char *id, struct view_item *out)
{
    const struct snap *s = v->open[at].snap;
    for (uint32_t k = 0; k < snap_items(s); k++) {
        struct view_item it = snap_item(s, k);
        if (strcmp(it.id, id) != 0)
            continue;
        if (out)
            *out = it;
        return true;
    }
    return false;
}
