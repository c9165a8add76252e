/* Reads which folders the accounts have, level by level: a listing tells the next level's folders. It is set-up: its
 * requests have a cause of their own, and no latency of it enters the report. */
#include "base/mem.h"
#include "drive/api/budget.h"
#include "drive/path.h"
#include "sim/app/logins.h"
#include "sim/app/pace.h"

#define READERS_PER_LOGIN 4
#define READERS_MOST      32
#define SAMPLES           5

struct level_item {
    uint32_t account;
    char *folder; /* NULL: the root */
};
struct crawl {
    struct worker *w;
    struct level_item *level, *below; /* being read; found meanwhile */
    size_t n, next, n_below, cap_below;
    uint32_t turn; /* which login reads next */
    struct sample {
        uint32_t account;
        char *id, *ext;
    } samples[SAMPLES]; /* files large enough to say whose content they hold */
    unsigned n_samples;
    struct rng rng;
    struct progress *progress;
    uint64_t done; /* folders read */
    struct errinfo *ei;
    enum err err;
};

static void found(struct crawl *c, uint32_t account, const char *id)
{
    struct folders *f = c->w->roster.accounts[account].folders;
    if (folders_find(f, id) != VIEW_NONE)
        return;
    folders_add(f, id);
    if (c->n_below == c->cap_below) {
        c->cap_below = c->cap_below ? c->cap_below * 2 : 256;
        c->below = mem_realloc_array(c->below, c->cap_below, sizeof(*c->below));
    }
    c->below[c->n_below++] = (struct level_item){account, mem_strdup(id)};
}

/* The next login of the account, in turn, so that no budget is spent alone. */
static struct login *reader_of(struct crawl *c, uint32_t account)
{
    for (;;) {
        struct login *l = &c->w->roster.logins[c->turn++ % c->w->roster.n_logins];
        if (l->account == &c->w->roster.accounts[account])
            return l;
    }
}

/* At most one of each folder. */
static void take_sample(struct crawl *c, uint32_t account, const struct drive_listing *l)
{
    for (size_t i = 0; i < l->n && c->n_samples < SAMPLES; i++) {
        const struct drive_file *f = &l->items[i];
        struct sv ext = path_extension(sv_of(f->name));
        if (f->folder || f->size < CONTENT_HEAD_MAX)
            continue;
        c->samples[c->n_samples++] =
            (struct sample){.account = account, .id = mem_strdup(f->id), .ext = mem_strndup(ext.p, ext.n)};
        return;
    }
}

static MAY_YIELD enum err read_folder(struct crawl *c, const struct level_item *it, struct arena *mem)
{
    struct worker *w = c->w;
    struct login *l = reader_of(c, it->account);
    struct drive_listing listing;
    struct api_result r;
    enum err e;
    for (unsigned tries = 0;; tries++) {
        e = api_list(l->api, it->folder, mem, &listing, &r);
        if (r.outcome != OUT_THROTTLED)
            break;
        int64_t wait = pace_throttle_wait_us(r.retry_after_us, tries, &c->rng);
        budget_wait_begin(w->loop, mono_add(mono_now(), wait), r.reason);
        bool on = worker_sleep(w, wait, PHASE_DRAIN);
        budget_wait_end();
        if (!on)
            break;
    }
    w->server.caps &= api_caps(l->api);
    if (worker_draining(w) || e == ERR_CANCELLED)
        return err_set(c->ei, ERR_INTERRUPTED, "interrupted while reading the tree");
    if (e == ERR_OK && r.status == 404)
        return ERR_OK; /* gone since its parent was read */
    if (e != ERR_OK || r.outcome != OUT_OK)
        return err_set(c->ei, ERR_ENV, "cannot read the tree as %s: %d %s", l->email, r.status, r.reason);
    for (size_t i = 0; i < listing.n; i++)
        if (listing.items[i].folder)
            found(c, it->account, listing.items[i].id);
    take_sample(c, it->account, &listing);
    return ERR_OK;
}

static int on_head(void *arg, const char *p, size_t n)
{
    struct buf *head = arg;
    size_t room = CONTENT_HEAD_MAX - head->len;
    return buf_append(head, p, n < room ? n : room) == ERR_OK ? 0 : 1;
}

/* Whether the files here are the seeder's, whose content proves itself; of others only the length can be checked, and
 * the report says so. One of a few is enough. */
static MAY_YIELD void judge_samples(struct crawl *c)
{
    struct worker *w = c->w;
    w->server.foreign = c->n_samples > 0;
    for (unsigned i = 0; i < c->n_samples && w->server.foreign && !worker_draining(w); i++) {
        const struct sample *s = &c->samples[i];
        struct buf head = BUF_INIT(CONTENT_HEAD_MAX);
        struct content content;
        struct api_result r;
        api_download(reader_of(c, s->account)->api, s->id, 0, CONTENT_HEAD_MAX, on_head, &head, NULL, 0, &r);
        w->server.foreign = !content_identify((struct sv){buf_cstr(&head), head.len}, s->ext, &content);
        buf_done(&head);
    }
}

static void reader(void *arg)
{
    struct crawl *c = arg;
    struct arena *mem = arena_new(16 << 10);
    while (c->next < c->n && c->err == ERR_OK) {
        enum err e = read_folder(c, &c->level[c->next++], mem);
        if (e != ERR_OK)
            c->err = e;
        progress_set(c->progress, ++c->done, NULL);
        arena_reset(mem);
    }
    arena_free(&mem);
}

static void free_level(struct crawl *c)
{
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->level[i].folder);
    mem_free(c->level);
}

enum err logins_read_trees(struct worker *w, struct errinfo *ei)
{
    struct crawl c = {.w = w, .ei = ei, .n = w->roster.n_accounts};
    uint32_t used = 0;
    rng_init(&c.rng, w->conf.seed, 4);
    c.level = mem_zalloc(w->roster.n_accounts * sizeof(*c.level));
    for (uint32_t a = 0; a < w->roster.n_accounts; a++) /* fewer apps than accounts: the rest is not looked at */
        if (w->roster.accounts[a].n_logins)
            c.level[used++].account = a;
    c.n = used;
    c.progress = progress_new(w->ctx->common->quiet ? NULL : w->ctx->out, w->ctx->tty, "folders read", 0);
    while (c.n > 0 && c.err == ERR_OK) {
        struct group readers = {0};
        for (size_t i = 0; i < READERS_PER_LOGIN * w->roster.n_logins && i < READERS_MOST && i < c.n; i++)
            group_spawn(w->loop, &readers, reader, &c);
        group_wait(w->loop, &readers);
        free_level(&c);
        c.level = c.below;
        c.n = c.n_below;
        c.next = c.n_below = c.cap_below = 0;
        c.below = NULL;
    }
    free_level(&c);
    progress_drop(&c.progress);
    if (c.err == ERR_OK)
        judge_samples(&c);
    for (unsigned i = 0; i < c.n_samples; i++) {
        mem_free(c.samples[i].id);
        mem_free(c.samples[i].ext);
    }
    for (uint32_t a = 0; a < w->roster.n_accounts && c.err == ERR_OK; a++) {
        folders_sort(w->roster.accounts[a].folders);
        if (w->roster.accounts[a].n_logins && folders_count(w->roster.accounts[a].folders) == 0)
            c.err = err_set(ei, ERR_ENV, "an account has no folders to open: fill the server first with sim seed");
    }
    for (uint32_t i = 0; i < w->roster.n_logins; i++)
        api_set_caps(w->roster.logins[i].api, w->server.caps);
    return c.err;
}
