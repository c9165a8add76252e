/* A snapshot is one block: its head, its entries (files before folders, each in the server's order), its strings. Being
 * one block it is compared, shared and freed as one; an app whose listing equals the latest one of its account costs
 * nothing, which is what makes 150 apps with 1,000 folders each fit. */
#include "sim/app/folders.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    int64_t size;
    uint32_t id, name, version; /* offsets into the strings; version 0: none */
    uint32_t folder;
};
struct snap {
    uint32_t refs, folder;
    uint32_t n, n_files;
    uint64_t hash;
    size_t bytes; /* of entries and strings */
    struct entry entry[];
};
struct folders {
    char **ids;
    struct snap **latest; /* the newest listing of each, not counted in its refs */
    uint32_t n, cap;
    uint32_t *slots; /* open addressing: number + 1, 0 is free */
    uint32_t n_slots;
    size_t snapshots;
    char *scratch; /* where a listing is laid out before it is known to be new */
    size_t scratch_cap;
};

struct folders *folders_new(void)
{
    return mem_zalloc(sizeof(struct folders));
}

void folders_free(struct folders **fp)
{
    struct folders *f = *fp;
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n; i++)
        mem_free(f->ids[i]);
    mem_free(f->ids);
    mem_free(f->latest);
    mem_free(f->slots);
    mem_free(f->scratch);
    MEM_FREE(*fp);
}

/* The slot that holds id, or the free one where it belongs. */
static uint32_t *slot_of(const struct folders *f, const char *id)
{
    uint32_t mask = f->n_slots - 1;
    for (uint32_t i = (uint32_t)hash_str(id) & mask;; i = (i + 1) & mask)
        if (f->slots[i] == 0 || strcmp(f->ids[f->slots[i] - 1], id) == 0)
            return &f->slots[i];
}

static void rehash(struct folders *f, uint32_t n_slots)
{
    mem_free(f->slots);
    f->slots = mem_zalloc(n_slots * sizeof(*f->slots));
    f->n_slots = n_slots;
    for (uint32_t i = 0; i < f->n; i++)
        *slot_of(f, f->ids[i]) = i + 1;
}

uint32_t folders_find(const struct folders *f, const char *id)
{
    if (f->n_slots == 0)
        return VIEW_NONE;
    uint32_t slot = *slot_of(f, id);
    return slot ? slot - 1 : VIEW_NONE;
}

uint32_t folders_add(struct folders *f, const char *id)
{
    uint32_t known = folders_find(f, id);
    if (known != VIEW_NONE)
        return known;
    if (f->n == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 64;
        f->ids = mem_realloc_array(f->ids, f->cap, sizeof(*f->ids));
        f->latest = mem_realloc_array(f->latest, f->cap, sizeof(struct snap *));
        rehash(f, f->cap * 2);
    }
    f->ids[f->n] = mem_strdup(id);
    f->latest[f->n] = NULL;
    *slot_of(f, id) = f->n + 1;
    return f->n++;
}

const char *folders_id(const struct folders *f, uint32_t folder)
{
    return f->ids[folder];
}

uint32_t folders_count(const struct folders *f)
{
    return f->n;
}

size_t folders_snapshots(const struct folders *f)
{
    return f->snapshots;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void folders_sort(struct folders *f)
{
    if (f->n == 0)
        return;
    qsort(f->ids, f->n, sizeof(*f->ids), by_text);
    rehash(f, f->n_slots);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The first n of a shuffle. */
void folders_choose(struct rng *r, uint32_t total, uint32_t n, uint32_t *out)
{
    uint32_t *all = mem_realloc_array(NULL, total ? total : 1, sizeof(*all));
    for (uint32_t i = 0; i < total; i++)
        all[i] = i;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = i + (uint32_t)rng_below(r, total - i), x = all[j];
        all[j] = all[i];
        all[i] = out[i] = x;
    }
    mem_free(all);
    qsort(out, n, sizeof(*out), by_number);
}

/* ---- snapshots ---- */

void snap_give(struct folders *f, struct snap *s)
{
    if (!s || --s->refs > 0)
        return;
    if (f->latest[s->folder] == s)
        f->latest[s->folder] = NULL;
    f->snapshots--;
    mem_free(s);
}

static size_t snap_size(const struct drive_listing *l)
{
    size_t n = sizeof(struct snap) + l->n * sizeof(struct entry) + 1;
    for (size_t i = 0; i < l->n; i++)
        n += strlen(l->items[i].id) + strlen(l->items[i].name) + 2 +
             (l->items[i].version ? strlen(l->items[i].version) + 1 : 0);
    return n;
}

static uint32_t put_string(char *strings, size_t *at, const char *s)
{
    size_t n = strlen(s) + 1, here = *at;
    memcpy(strings + here, s, n);
    *at += n;
    return (uint32_t)here;
}

/* Lays the listing out in f->scratch. */
static struct snap *lay_out(struct folders *f, uint32_t folder, const struct drive_listing *l)
{
    size_t size = snap_size(l), at = 1;
    if (size > f->scratch_cap) {
        f->scratch_cap = size * 2;
        mem_free(f->scratch);
        f->scratch = mem_alloc(f->scratch_cap);
    }
    memset(f->scratch, 0, sizeof(struct snap));
    struct snap *s = (struct snap *)(void *)f->scratch;
    *s = (struct snap){.folder = folder, .n = (uint32_t)l->n, .bytes = size - sizeof(struct snap)};
    char *strings = (char *)&s->entry[l->n];
    strings[0] = '\0';
    uint32_t k = 0;
    for (int folders = 0; folders < 2; folders++) {
        for (size_t i = 0; i < l->n; i++) {
            const struct drive_file *d = &l->items[i];
            if (d->folder != (folders == 1))
                continue;
            struct entry *e = &s->entry[k++];
            e->size = d->size;
            e->folder = d->folder;
            e->id = put_string(strings, &at, d->id);
            e->name = put_string(strings, &at, d->name);
            e->version = d->version ? put_string(strings, &at, d->version) : 0;
        }
        if (folders == 0)
            s->n_files = k;
    }
    s->hash = hash_bytes(s->entry, s->bytes);
    return s;
}

struct snap *snap_take(struct folders *f, uint32_t folder, const struct drive_listing *l)
{
    const struct snap *made = lay_out(f, folder, l);
    struct snap *s = f->latest[folder];
    if (!s || s->hash != made->hash || s->bytes != made->bytes || memcmp(s->entry, made->entry, s->bytes) != 0) {
        s = mem_alloc(sizeof(*s) + made->bytes);
        memcpy(s, made, sizeof(*s) + made->bytes);
        f->latest[folder] = s;
        f->snapshots++;
    }
    s->refs++;
    return s;
}

uint32_t snap_items(const struct snap *s)
{
    return s ? s->n : 0;
}

uint32_t snap_files(const struct snap *s)
{
    return s ? s->n_files : 0;
}

struct view_item snap_item(const struct snap *s, uint32_t k)
{
    const struct entry *e = &s->entry[k];
    const char *strings = (const char *)&s->entry[s->n];
    return (struct view_item){.id = strings + e->id,
                              .name = strings + e->name,
                              .version = e->version ? strings + e->version : NULL,
                              .size = e->size,
                              .folder = e->folder};
}
