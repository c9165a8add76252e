/* Fills the gap between plan and server. Small files of one folder travel together, since what costs is the request and
 * its commit, not the bytes; large ones alone, so that the server streams them. */
#include "base/mem.h"
#include "base/rng.h"
#include "drive/api/api.h"
#include "seed/crew.h"
#include <string.h>

#define BULK_FILES     40
#define BULK_BYTES     (4 * 1024 * 1024)
#define BULK_FILE_MOST (256 * 1024)
#define MOST_AT_ONCE   48

/* ---- folders ---- */

struct folder_item {
    uint32_t account, folder;
};
struct folder_load {
    struct folder_item *items;
    struct crew crew;
};

static MAY_YIELD void make_folder(struct seeder *s, void *arg, size_t i)
{
    struct folder_load *load = arg;
    struct folder_item it = load->items[i];
    const struct planned_folder *d = &s->trees[it.account].folders[it.folder];
    struct found *f = &s->founds[it.account];
    const char *parent = d->parent == SHAPE_ROOT ? NULL : f->folder_ids[d->parent];
    struct arena *mem = arena_new(1024);
    struct drive_file made;
    struct api_result r = {.outcome = OUT_UNFINISHED};
    struct seed_login *l;
    bool again = true;
    while (again && (l = seed_login_take(s, it.account))) {
        api_folder_create(l->api, parent, d->name, mem, &made, &r);
        again = seed_login_give(s, l, OP_NEW_FOLDER, &r);
    }
    if (r.outcome == OUT_OK) {
        f->folder_ids[it.folder] = arena_strdup(f->mem, made.id);
        f->n_folders++;
        s->folders_made++;
    } else {
        s->failed++; /* a taken name too: the next scan finds out by whom */
    }
    load->crew.done++;
    arena_free(&mem);
}

/* The folders of one depth that are missing and whose parent is there. */
static size_t gather_folders(const struct seeder *s, struct folder_item *items, unsigned depth)
{
    size_t n = 0;
    for (uint32_t a = 0; a < s->n_accounts; a++) {
        const struct planned *t = &s->trees[a];
        const struct found *f = &s->founds[a];
        for (uint32_t i = 0; i < t->counts.folders; i++) {
            uint32_t parent = t->folders[i].parent;
            if (t->folders[i].depth == depth && !f->folder_ids[i] && (parent == SHAPE_ROOT || f->folder_ids[parent]))
                items[n++] = (struct folder_item){a, i};
        }
    }
    return n;
}

/* One depth after the other: a folder needs its parent's id. A folder whose parent failed waits for the next round. */
void seed_load_folders(struct seeder *s)
{
    uint64_t all = 0;
    for (size_t a = 0; a < s->n_accounts; a++)
        all += s->trees[a].counts.folders - s->founds[a].n_folders;
    if (all == 0 || s->stop)
        return;
    struct folder_load load = {.items = mem_alloc(all * sizeof *load.items)};
    load.crew = (struct crew){.what = "folders",
                              .units = all,
                              .least = 4,
                              .most = MOST_AT_ONCE,

                              .one = make_folder,
                              .arg = &load};
    crew_begin(s, &load.crew);
    for (unsigned depth = 1; depth <= SHAPE_DEPTH_MAX && !s->stop; depth++)
        crew_run(s, &load.crew, gather_folders(s, load.items, depth));
    crew_end(&load.crew);
    mem_free(load.items);
}

/* ---- files ---- */

/* Files of one folder that travel in one request: files[first … first + n) of the load. */
struct batch {
    uint32_t account, n;
    size_t first;
};
struct file_load {
    uint32_t *files;
    struct batch *batches;
    size_t n_files, n_batches;
    struct crew crew;
};

static void add_file(struct file_load *load, uint32_t account, uint32_t file, const struct planned *t, uint64_t *bytes)
{
    const struct planned_file *f = &t->files[file];
    struct batch *b = load->n_batches ? &load->batches[load->n_batches - 1] : NULL;
    bool large = f->size > BULK_FILE_MOST;
    bool fits = b && b->account == account && !large && b->n < BULK_FILES && *bytes + f->size <= BULK_BYTES &&
                t->files[load->files[b->first]].folder == f->folder &&
                t->files[load->files[b->first]].size <= BULK_FILE_MOST;
    if (!fits) {
        b = &load->batches[load->n_batches++];
        *b = (struct batch){.account = account, .first = load->n_files};
        *bytes = 0;
    }
    load->files[load->n_files++] = file;
    b->n++;
    *bytes += f->size;
}

/* In random order, so that large and small, this account and that are under way together and the rate tells the end. */
static void shuffle(struct file_load *load, uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed, 99);
    for (size_t i = load->n_batches; i > 1; i--) {
        size_t j = rng_below(&r, i);
        struct batch t = load->batches[i - 1];
        load->batches[i - 1] = load->batches[j];
        load->batches[j] = t;
    }
}

static void plan_batches(struct seeder *s, struct file_load *load)
{
    size_t all = 0;
    for (size_t a = 0; a < s->n_accounts; a++)
        all += s->trees[a].counts.files - s->founds[a].n_files;
    load->files = mem_alloc((all + 1) * sizeof *load->files);
    load->batches = mem_alloc((all + 1) * sizeof *load->batches);
    for (uint32_t a = 0; a < s->n_accounts; a++) {
        const struct planned *t = &s->trees[a];
        const struct found *f = &s->founds[a];
        uint64_t bytes = 0;
        for (int large = 0; large < 2; large++) { /* the large ones apart: they would cut the batches short */
            for (uint32_t i = 0; i < t->counts.files; i++) {
                if ((t->files[i].size > BULK_FILE_MOST) == large && f->files[i].state == FOUND_NO &&
                    f->folder_ids[t->files[i].folder])
                    add_file(load, a, i, t, &bytes);
            }
        }
    }
    shuffle(load, s->ctx->common->seed > 0 ? (uint64_t)s->ctx->common->seed : 0);
}

static MAY_YIELD void settle_file(struct seeder *s, const struct batch *b, uint32_t file, const struct drive_file *made)
{
    const struct planned_file *f = &s->trees[b->account].files[file];
    if (!made->id) {
        s->failed++;
    } else if (strcmp(made->name, f->name) != 0) {
        s->failed++; /* the name was taken meanwhile, by a request of a seeder that was killed for one */
        s->twins_undone += seed_remove(s, b->account, made->id);
    } else {
        s->founds[b->account].files[file].state = FOUND_YES;
        s->founds[b->account].n_files++;
        s->files_made++;
    }
}

struct cargo { /* what one batch sends and gets back */
    struct content *contents;
    struct api_upload *uploads;
    struct drive_file *made;
    struct arena *mem;
};

static void cargo_init(struct cargo *c, struct seeder *s, const struct file_load *load, const struct batch *b)
{
    const struct planned *t = &s->trees[b->account];
    c->contents = mem_zalloc(b->n * sizeof *c->contents);
    c->uploads = mem_zalloc(b->n * sizeof *c->uploads);
    c->made = mem_zalloc(b->n * sizeof *c->made);
    c->mem = arena_new(4096);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct planned_file *f = &t->files[load->files[b->first + i]];
        c->contents[i] = (struct content){.key = f->key, .revision = 1, .size = f->size, .ext = f->ext};
        c->uploads[i] = (struct api_upload){.parent_id = s->founds[b->account].folder_ids[f->folder],
                                            .name = f->name,
                                            .content = &c->contents[i],
                                            .modified = {f->modified_s * US_PER_S}};
    }
}

static void cargo_done(struct cargo *c)
{
    mem_free(c->contents);
    mem_free(c->uploads);
    mem_free(c->made);
    arena_free(&c->mem);
}

/* n files in one request, or one alone. False when the server seems to have no bulk upload: nothing was done. */
static MAY_YIELD bool send(struct seeder *s, uint32_t account, struct cargo *c, size_t at, size_t n)
{
    struct api_result r = {.outcome = OUT_UNFINISHED};
    struct seed_login *l;
    bool again = true, missing = false;
    while (again && (l = seed_login_take(s, account))) {
        if (n > 1)
            api_upload_bulk(l->api, c->uploads + at, n, c->mem, c->made + at, &r);
        else
            api_upload(l->api, c->uploads + at, c->mem, c->made + at, &r);
        missing = n > 1 && (r.status == 404 || r.status == 405);
        again = seed_login_give(s, l, n > 1 ? OP_BULK_UPLOAD : OP_UPLOAD, &r);
        if (r.outcome == OUT_WRONG && r.err == ERR_WRONG) /* taken, and something else stored: no server to test with */
            seed_fail(s, ERR_WRONG, "%s: %s", c->uploads[at].name, r.reason);
        if (r.outcome == OUT_OK && r.reason[0])
            stats_reason_add(s->stats, OP_BULK_UPLOAD, r.reason);
    }
    if (r.outcome != OUT_OK)
        memset(c->made + at, 0, n * sizeof *c->made);
    return !missing;
}

static MAY_YIELD void send_batch(struct seeder *s, void *arg, size_t i)
{
    struct file_load *load = arg;
    const struct batch *b = &load->batches[i];
    struct cargo c;
    cargo_init(&c, s, load, b);
    bool one_by_one = b->n > 1 && (s->no_bulk || !send(s, b->account, &c, 0, b->n));
    if (b->n == 1)
        send(s, b->account, &c, 0, 1);
    for (uint32_t k = 0; one_by_one && k < b->n && !s->stop; k++) {
        send(s, b->account, &c, k, 1);
        s->no_bulk = s->no_bulk || c.made[k].id; /* the folder is there, so it was the call that is not */
    }
    for (uint32_t k = 0; k < b->n; k++)
        settle_file(s, b, load->files[b->first + k], &c.made[k]);
    load->crew.done += b->n;
    cargo_done(&c);
}

uint64_t seed_requests_left(const struct seeder *s, unsigned account)
{
    const struct planned *t = &s->trees[account];
    const struct found *f = &s->founds[account];
    uint64_t n = t->counts.folders - f->n_folders;
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        uint32_t small = 0;
        for (uint32_t k = t->folders[i].first_file; k < t->folders[i].first_file + t->folders[i].n_files; k++) {
            bool missing = f->files[k].state == FOUND_NO, large = t->files[k].size > BULK_FILE_MOST;
            n += missing && large;
            small += missing && !large;
        }
        n += s->no_bulk ? small : (small + BULK_FILES - 1) / BULK_FILES;
    }
    return n ? n + t->counts.folders : 0;
}

void seed_load_files(struct seeder *s)
{
    struct file_load load = {0};
    if (s->stop)
        return;
    plan_batches(s, &load);
    load.crew = (struct crew){.what = "files",
                              .units = load.n_files,
                              .least = 4,
                              .most = MOST_AT_ONCE,

                              .one = send_batch,
                              .arg = &load};
    if (load.n_files) {
        crew_begin(s, &load.crew);
        crew_run(s, &load.crew, load.n_batches);
        crew_end(&load.crew);
    }
    mem_free(load.files);
    mem_free(load.batches);
}
