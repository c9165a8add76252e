/* What the server holds, level by level, compared with the plan by path, size and time. The same question serves before
 * the work (what is there already), between rounds (what became of writes without an answer) and at the end (is it all
 * there). Folders that the plan does not know are counted and not entered. */
#include "base/mem.h"
#include "drive/api/api.h"
#include "drive/path.h"
#include "seed/crew.h"
#include <stdio.h>
#include <string.h>

struct scan_item {
    uint32_t account, folder; /* folder SHAPE_ROOT: the top */
};
struct scan {
    struct scan_item *items;
    size_t n, cap;
    struct crew crew;
};

static void note_file(const struct planned *t, struct found *f, uint32_t at, const struct drive_file *item)
{
    const struct planned_file *plan = &t->files[at];
    struct found_file *seen = &f->files[at];
    if (seen->state != FOUND_NO) {
        f->twice++;
        return;
    }
    bool size = item->size == (int64_t)plan->size, time = item->modified.us == plan->modified_s * US_PER_S;
    *seen = (struct found_file){
        .state = size && time ? FOUND_YES : FOUND_CHANGED, .size = item->size, .modified_us = item->modified.us};
    snprintf(seen->id, sizeof seen->id, "%s", item->id);
    f->resized += !size;
    f->retimed += !time;
    f->n_files++;
    f->bytes = (uint64_t)drive_sum((int64_t)f->bytes, item->size > 0 ? item->size : 0);
}

static void note_folder(struct found *f, uint32_t at, const struct drive_file *item)
{
    if (f->folder_ids[at]) {
        f->twice++;
        return;
    }
    f->folder_ids[at] = arena_strdup(f->mem, item->id);
    f->n_folders++;
}

/* "stem (12).ext" -> "stem.ext"; false when name has no such number. */
static bool unnumbered(const char *name, char *dst, size_t n)
{
    struct sv ext = path_extension(sv_of(name));
    size_t tail = ext.n ? ext.n + 1 : 0, end = strlen(name) - tail, at = end;
    if (at == 0 || name[--at] != ')')
        return false;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at < 3 || at + 1 == end || name[at - 1] != '(' || name[at - 2] != ' ')
        return false;
    return (size_t)snprintf(dst, n, "%.*s%s", (int)(at - 2), name, name + end) < n;
}

static void note_other(const struct planned *t, struct found *f, uint32_t folder, const struct drive_file *item)
{
    char base[DRIVE_NAME_MAX + 1];
    f->other_folders += item->folder;
    f->other_files += !item->folder;
    if (item->folder || !unnumbered(item->name, base, sizeof base))
        return;
    uint32_t e = planned_lookup(t, folder, base);
    if (e == PLANNED_NONE || !(e & PLANNED_FILE))
        return;
    if (f->n_twins == f->cap_twins) {
        f->cap_twins = f->cap_twins ? f->cap_twins * 2 : 16;
        f->twins = mem_realloc_array(f->twins, f->cap_twins, sizeof *f->twins);
    }
    struct found_twin *w = &f->twins[f->n_twins++];
    *w = (struct found_twin){.file = e & ~PLANNED_FILE, .size = item->size, .modified_us = item->modified.us};
    snprintf(w->id, sizeof w->id, "%s", item->id);
}

static void note_listing(const struct planned *t, struct found *f, uint32_t folder, const struct drive_listing *listing)
{
    for (size_t i = 0; i < listing->n; i++) {
        const struct drive_file *item = &listing->items[i];
        uint32_t e = planned_lookup(t, folder, item->name);
        if (e == PLANNED_NONE || item->folder == !!(e & PLANNED_FILE)) {
            note_other(t, f, folder, item);
        } else if (item->folder) {
            note_folder(f, e, item);
        } else {
            note_file(t, f, e & ~PLANNED_FILE, item);
        }
    }
}

static MAY_YIELD void scan_one(struct seeder *s, void *arg, size_t i)
{
    struct scan *scan = arg;
    struct scan_item it = scan->items[i];
    struct found *f = &s->founds[it.account];
    struct arena *mem = arena_new(32 * 1024);
    struct drive_listing listing;
    struct api_result r;
    struct seed_login *l;
    bool again = true;
    while (again && (l = seed_login_take(s, it.account))) {
        arena_reset(mem);
        api_list(l->api, it.folder == SHAPE_ROOT ? NULL : f->folder_ids[it.folder], mem, &listing, &r);
        again = seed_login_give(s, l, OP_LIST, &r);
        if (!again && r.outcome == OUT_OK)
            note_listing(&s->trees[it.account], f, it.folder, &listing);
        else if (!again && !s->stop)
            seed_fail(s, ERR_ENV, "a folder of %s cannot be listed: %s", s->trees[it.account].email, r.reason);
    }
    scan->crew.done++;
    arena_free(&mem);
}

static void add(struct scan *scan, uint32_t account, uint32_t folder)
{
    if (scan->n == scan->cap) {
        scan->cap = scan->cap ? scan->cap * 2 : 256;
        scan->items = mem_realloc_array(scan->items, scan->cap, sizeof *scan->items);
    }
    scan->items[scan->n++] = (struct scan_item){account, folder};
}

/* The folders of one depth that are there, the accounts taking turns. */
static void gather(struct seeder *s, struct scan *scan, unsigned depth)
{
    scan->n = 0;
    for (uint32_t a = 0; a < s->n_accounts; a++) {
        const struct planned *t = &s->trees[a];
        if (depth == 0)
            add(scan, a, SHAPE_ROOT);
        for (uint32_t i = 0; depth && i < t->counts.folders; i++) {
            if (t->folders[i].depth == depth && s->founds[a].folder_ids[i])
                add(scan, a, i);
        }
    }
}

/* A server that keeps no times returns none of them. */
static void judge_times(struct seeder *s)
{
    uint64_t files = 0, retimed = 0;
    for (size_t a = 0; a < s->n_accounts; a++) {
        files += s->founds[a].n_files;
        retimed += s->founds[a].retimed;
    }
    s->times_kept = files == 0 || retimed < files;
    if (s->times_kept)
        return;
    for (size_t a = 0; a < s->n_accounts; a++) {
        for (uint32_t i = 0; i < s->trees[a].counts.files; i++) {
            struct found_file *f = &s->founds[a].files[i];
            if (f->state == FOUND_CHANGED && f->size == (int64_t)s->trees[a].files[i].size)
                f->state = FOUND_YES;
        }
    }
}

/* Folders to look into: those of the plan once something is there, and the top of each account. */
static uint64_t units_of(const struct seeder *s)
{
    uint64_t n = 0;
    for (size_t a = 0; a < s->n_accounts; a++)
        n += s->founds[a].n_folders + 1;
    return n > s->n_accounts ? n : 0;
}

void seed_scan(struct seeder *s, const char *what)
{
    struct scan scan = {0};
    if (s->stop)
        return;
    scan.crew =
        (struct crew){.what = what, .units = units_of(s), .least = 4, .most = 16, .one = scan_one, .arg = &scan};
    for (size_t a = 0; a < s->n_accounts; a++)
        found_reset(&s->founds[a], &s->trees[a]);
    crew_begin(s, &scan.crew);
    for (unsigned depth = 0; depth <= SHAPE_DEPTH_MAX && !s->stop; depth++) {
        gather(s, &scan, depth);
        if (scan.n == 0)
            break;
        crew_run(s, &scan.crew, scan.n);
    }
    crew_end(&scan.crew);
    mem_free(scan.items);
    judge_times(s);
}

bool seed_complete(const struct seeder *s)
{
    for (size_t a = 0; a < s->n_accounts; a++) {
        const struct shape_counts *c = &s->trees[a].counts;
        if (s->founds[a].n_folders < c->folders || s->founds[a].n_files < c->files)
            return false;
    }
    return true;
}
