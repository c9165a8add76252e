/* Every folder draws its names, and every file its key and time, from a random stream of its own: a tree made at
 * another time, in another order or by another version of the loader is the same tree. */
#include "seed/planned.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "drive/model.h"
#include "seed/names.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times end here and reach ten years back, most of them recent: a fixed day, since the manifest holds them. */
#define NEWEST_S            INT64_C(1780272000) /* 2026-06-01T00:00:00Z */
#define AGE_MEAN_S          (2.5 * 365 * 86400)
#define AGE_MOST_S          (10.0 * 365 * 86400)
#define STREAM_FOLDER_NAMES (UINT64_C(1) << 32)
#define STREAM_FILES        (UINT64_C(2) << 32)

void planned_owner_email(char dst[64], unsigned account)
{
    if (account == 0)
        snprintf(dst, 64, "owner" DRIVE_EMAIL_DOMAIN);
    else
        snprintf(dst, 64, "owner-%u" DRIVE_EMAIL_DOMAIN, account + 1);
}

void planned_user_email(char dst[64], unsigned account, unsigned user)
{
    if (account == 0)
        snprintf(dst, 64, "user-%u" DRIVE_EMAIL_DOMAIN, user + 1);
    else
        snprintf(dst, 64, "owner-%u-user-%u" DRIVE_EMAIL_DOMAIN, account + 1, user + 1);
}

static uint64_t entry_hash(uint32_t parent, const char *name)
{
    return rng_mix64(hash_str(name) ^ ((uint64_t)parent << 20));
}

static void index_add(struct planned *t, uint32_t parent, const char *name, uint32_t entry)
{
    size_t i = entry_hash(parent, name) & (t->index_cap - 1);
    while (t->index[i] != PLANNED_NONE)
        i = (i + 1) & (t->index_cap - 1);
    t->index[i] = entry;
}

uint32_t planned_lookup(const struct planned *t, uint32_t parent, const char *name)
{
    size_t i = entry_hash(parent, name) & (t->index_cap - 1);
    for (; t->index[i] != PLANNED_NONE; i = (i + 1) & (t->index_cap - 1)) {
        uint32_t e = t->index[i], at = e & ~PLANNED_FILE;
        bool file = e & PLANNED_FILE;
        uint32_t its_parent = file ? t->files[at].folder : t->folders[at].parent;
        if (its_parent == parent && strcmp(file ? t->files[at].name : t->folders[at].name, name) == 0)
            return e;
    }
    return PLANNED_NONE;
}

static struct rng stream_of(const struct planned *t, uint64_t stream)
{
    struct rng r;
    rng_init(&r, t->stream_seed, stream + ((uint64_t)t->conf.account << 34));
    return r;
}

static void make_file(struct planned *t, struct planned_file *f, uint32_t at, struct names *names, struct rng *r)
{
    double age = rng_exp(r, AGE_MEAN_S);
    f->name = names_file(names, r, t->mem, t->conf.name_max, &f->ext);
    f->modified_s = NEWEST_S - (int64_t)(age < AGE_MOST_S ? age : fmod(age, AGE_MOST_S));
    f->key = rng_mix64(t->stream_seed ^ rng_mix64(((uint64_t)t->conf.account << 32 | at) + 1));
    f->key += f->key == 0;
    t->bytes += f->size;
}

/* A folder's subfolders are spread over the array, so the names of each parent are kept until the end. */
static void make_names(struct planned *t)
{
    struct names *of = mem_zalloc((t->counts.folders + 1) * sizeof *of), *top = &of[t->counts.folders];
    names_init(top, 64);
    for (uint32_t i = 0; i < t->counts.folders; i++)
        names_init(&of[i], t->folders[i].n_files + 8);
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        struct planned_folder *d = &t->folders[i];
        struct rng r = stream_of(t, STREAM_FOLDER_NAMES + i);
        d->name = names_folder(d->parent == SHAPE_ROOT ? top : &of[d->parent], &r, t->mem);
        index_add(t, d->parent, d->name, i);
    }
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        struct rng r = stream_of(t, STREAM_FILES + i);
        for (uint32_t k = 0; k < t->folders[i].n_files; k++) {
            uint32_t at = t->folders[i].first_file + k;
            make_file(t, &t->files[at], at, &of[i], &r);
            index_add(t, i, t->files[at].name, at | PLANNED_FILE);
        }
        names_done(&of[i]);
    }
    names_done(top);
    mem_free(of);
}

static void lay_out(struct planned *t, const struct shape *s)
{
    uint64_t *sizes = mem_alloc((t->counts.files + 1) * sizeof *sizes);
    uint32_t at = 0;
    shape_sizes(sizes, t->counts.files, t->conf.preset, t->conf.bytes_scale, t->stream_seed, t->conf.account);
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        const struct shape_folder *f = &s->folders[i];
        t->folders[i] = (struct planned_folder){
            .parent = f->parent, .first_file = at, .n_files = f->files, .depth = f->depth, .hot = f->hot};
        for (uint32_t k = 0; k < f->files; k++, at++)
            t->files[at] = (struct planned_file){.folder = i, .size = sizes[at]};
    }
    mem_free(sizes);
}

void planned_make(struct planned *t, const struct planned_conf *conf)
{
    struct shape s;
    *t = (struct planned){.conf = *conf, .mem = arena_new(64 * 1024)};
    /* Another scale is another tree, not a part of this one: no file of it shall stand in for one of ours. */
    t->stream_seed = rng_mix64(conf->seed ^ (uint64_t)(conf->scale * 1e6 + 0.5) << 20);
    shape_make(&s, conf->scale, t->stream_seed, conf->account);
    t->counts = s.counts;
    t->depth = s.depth;
    planned_owner_email(t->email, conf->account);
    t->folders = mem_zalloc(t->counts.folders * sizeof *t->folders);
    t->files = mem_zalloc((t->counts.files + 1) * sizeof *t->files);
    for (t->index_cap = 64; t->index_cap < 2 * ((size_t)t->counts.folders + t->counts.files);)
        t->index_cap *= 2;
    t->index = mem_alloc(t->index_cap * sizeof *t->index);
    memset(t->index, 0xff, t->index_cap * sizeof *t->index);
    lay_out(t, &s);
    make_names(t);
    shape_done(&s);
}

void planned_done(struct planned *t)
{
    MEM_FREE(t->folders);
    MEM_FREE(t->files);
    MEM_FREE(t->index);
    arena_free(&t->mem);
}

/* ---- found ---- */

void found_init(struct found *f, const struct planned *t)
{
    *f = (struct found){.mem = arena_new(64 * 1024)};
    f->folder_ids = mem_zalloc((t->counts.folders + 1) * sizeof *f->folder_ids);
    f->files = mem_zalloc((t->counts.files + 1) * sizeof *f->files);
}

void found_reset(struct found *f, const struct planned *t)
{
    found_done(f);
    found_init(f, t);
}

void found_done(struct found *f)
{
    mem_free(f->folder_ids);
    mem_free(f->files);
    mem_free(f->twins);
    arena_free(&f->mem);
    *f = (struct found){0};
}

/* ---- manifest ---- */

struct lines {
    char **at;
    size_t n;
    struct arena *mem;
};

static const char **folder_paths(const struct planned *t, struct arena *mem)
{
    const char **paths = mem_alloc((t->counts.folders + 1) * sizeof *paths);
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        const struct planned_folder *d = &t->folders[i];
        const char *above = d->parent == SHAPE_ROOT ? t->email : paths[d->parent];
        paths[i] = arena_printf(mem, "%s/%s", above, d->name);
    }
    return paths;
}

static char *file_line(struct arena *mem, const char *folder, const struct planned_file *p, const struct found_file *f,
                       bool times)
{
    char stamp[32] = "-";
    long long size = f ? (long long)f->size : (long long)p->size;
    struct wall at = {f ? f->modified_us : p->modified_s * US_PER_S};
    if (times)
        wall_format(stamp, sizeof stamp, at);
    return arena_printf(mem, "%s/%s\t%lld\t%s\n", folder, p->name, size, stamp);
}

static void add_lines(struct lines *l, const struct planned *t, const struct found *f, bool times)
{
    const char **paths = folder_paths(t, l->mem);
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        if (!f || f->folder_ids[i])
            l->at[l->n++] = arena_printf(l->mem, "%s\tfolder\n", paths[i]);
    }
    for (uint32_t i = 0; i < t->counts.files; i++) {
        if (!f || f->files[i].state != FOUND_NO)
            l->at[l->n++] = file_line(l->mem, paths[t->files[i].folder], &t->files[i], f ? &f->files[i] : NULL, times);
    }
    mem_free(paths);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void planned_manifest(const struct planned *trees, const struct found *found, size_t n, bool times, char dst[65])
{
    struct lines l = {.mem = arena_new(256 * 1024)};
    unsigned char sum[DIGEST_SHA256_LEN];
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        most += (size_t)trees[i].counts.folders + trees[i].counts.files;
    l.at = mem_alloc((most + 1) * sizeof *l.at);
    for (size_t i = 0; i < n; i++)
        add_lines(&l, &trees[i], found ? &found[i] : NULL, times);
    qsort(l.at, l.n, sizeof *l.at, by_bytes);
    struct digest *d = digest_new();
    for (size_t i = 0; i < l.n; i++)
        digest_update(d, l.at[i], strlen(l.at[i]));
    digest_final(d, sum);
    digest_hex(dst, sum, sizeof sum);
    digest_free(&d);
    mem_free(l.at);
    arena_free(&l.mem);
}
