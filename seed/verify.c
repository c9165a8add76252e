/* The end: some files are read back and judged by their bytes, and the tree is told as the server returned it. */
#include "base/mem.h"
#include "base/rng.h"
#include "drive/api/api.h"
#include "seed/crew.h"
#include <stdio.h>
#include <string.h>

#define SAMPLE      64
#define SAMPLE_MOST (256 * 1024) /* of each file, from its start */

struct pick {
    uint32_t account, file;
};
struct sample {
    struct pick *picks;
    struct crew crew;
};

/* One file on its way in. A run may have saved it since with another revision: the head says which one it is. */
struct reading {
    struct content want;
    struct content_check check;
    char head[CONTENT_HEAD_MAX];
    size_t head_n;
    bool begun, first; /* first: the first revision alone is right */
};

static bool begin(struct reading *in)
{
    struct content c;
    in->begun = true;
    if (!in->first && content_identify((struct sv){in->head, in->head_n}, in->want.ext, &c) && c.key == in->want.key &&
        c.size == in->want.size)
        in->want = c;
    content_check_init(&in->check, &in->want, 0);
    return content_check_feed(&in->check, in->head, in->head_n);
}

static int take(void *arg, const char *p, size_t n)
{
    struct reading *in = arg;
    if (!in->begun) {
        size_t room = sizeof in->head - in->head_n, part = n < room ? n : room;
        memcpy(in->head + in->head_n, p, part);
        in->head_n += part;
        if (in->head_n < sizeof in->head)
            return 0;
        if (!begin(in))
            return 1;
        p += part;
        n -= part;
    }
    return n == 0 || content_check_feed(&in->check, p, n) ? 0 : 1;
}

static bool read_right(struct reading *in, uint64_t size)
{
    if (!in->begun && !begin(in))
        return false;
    return !in->check.wrong && in->check.offset == (size < SAMPLE_MOST ? size : SAMPLE_MOST);
}

bool seed_reads_as(struct seeder *s, unsigned account, const char *id, uint32_t file, bool first, struct api_result *r)
{
    const struct planned_file *f = &s->trees[account].files[file];
    struct reading *in = mem_zalloc(sizeof *in);
    struct seed_login *l;
    bool again = true;
    *r = (struct api_result){.outcome = OUT_UNFINISHED};
    while (again && (l = seed_login_take(s, account))) {
        *in = (struct reading){.want = {.key = f->key, .revision = 1, .size = f->size, .ext = f->ext}, .first = first};
        api_download(l->api, id, 0, f->size > SAMPLE_MOST ? SAMPLE_MOST : 0, take, in, NULL, 0, r);
        again = seed_login_give(s, l, OP_DOWNLOAD, r);
    }
    bool right = r->outcome == OUT_OK && read_right(in, f->size);
    mem_free(in);
    return right;
}

static MAY_YIELD void read_one(struct seeder *s, void *arg, size_t i)
{
    struct sample *sample = arg;
    struct pick p = sample->picks[i];
    struct api_result r;
    if (seed_reads_as(s, p.account, s->founds[p.account].files[p.file].id, p.file, false, &r))
        s->contents_checked++;
    else if (r.outcome == OUT_OK || r.outcome == OUT_WRONG)
        seed_fail(s, ERR_WRONG, "the server returned other bytes than it was sent: %s of %s",
                  s->trees[p.account].files[p.file].name, s->trees[p.account].email);
    else if (!s->stop)
        seed_fail(s, ERR_ENV, "a file cannot be read back: %s", r.reason);
    sample->crew.done++;
}

void seed_verify_content(struct seeder *s)
{
    struct sample sample = {.picks = mem_alloc(SAMPLE * sizeof *sample.picks)};
    struct rng rng;
    size_t n = 0;
    rng_init(&rng, (uint64_t)s->ctx->common->seed, 77);
    for (unsigned tries = 0; tries < 4 * SAMPLE && n < SAMPLE; tries++) {
        struct pick p = {.account = (uint32_t)rng_below(&rng, s->n_accounts)};
        p.file = (uint32_t)rng_below(&rng, s->trees[p.account].counts.files);
        const struct found_file *f = &s->founds[p.account].files[p.file];
        if (f->state == FOUND_YES && f->id[0])
            sample.picks[n++] = p;
    }
    sample.crew =
        (struct crew){.what = "files read back", .units = n, .least = 4, .most = 4, .one = read_one, .arg = &sample};
    crew_begin(s, &sample.crew);
    crew_run(s, &sample.crew, n);
    crew_end(&sample.crew);
    mem_free(sample.picks);
}

struct totals {
    uint64_t other_folders, other_files, twice, resized, retimed;
};

static void say_differences(struct seeder *s, const struct totals *t)
{
    char b[32];
    if (t->other_files || t->other_folders)
        seed_say(s, "not part of this plan: %s and %s on the server (another seed or scale, or a run since)",
                 COUNTED(t->other_files, "file"), COUNTED(t->other_folders, "folder"));
    if (t->resized || (t->retimed && s->times_kept))
        seed_say(s, "changed since they were made: %s by size, %s by time; they are left as they are",
                 COUNTED(t->resized, "file"), str_thousands(b, sizeof b, t->retimed));
    if (t->twice)
        seed_say(s, "listed twice: %s, which no server should have in one folder", COUNTED(t->twice, "name"));
    if (!s->times_kept)
        seed_say(s, "the server keeps no modification times: the manifest is without them");
    if (s->twins_undone)
        seed_say(s, "removed: %s of our files, made by uploads that outlived their seeder",
                 COUNTED(s->twins_undone, "second copy"));
}

static unsigned depth_found(const struct planned *t, const struct found *f)
{
    unsigned depth = 0;
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        if (f->folder_ids[i] && t->folders[i].depth > depth)
            depth = t->folders[i].depth;
    }
    return depth;
}

static void add_hot(struct tree_summary *sum, const struct planned *t, const struct found *f)
{
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        const struct planned_folder *d = &t->folders[i];
        if (!d->hot || !f->folder_ids[i])
            continue;
        sum->hot_folders++;
        for (uint32_t k = d->first_file; k < d->first_file + d->n_files; k++)
            sum->hot_files += f->files[k].state != FOUND_NO;
    }
}

void seed_summarise(struct seeder *s)
{
    struct tree_summary *sum = &s->ctx->result->tree;
    struct totals t = {0};
    *sum = (struct tree_summary){.known = true};
    for (size_t a = 0; a < s->n_accounts; a++) {
        const struct found *f = &s->founds[a];
        unsigned depth = depth_found(&s->trees[a], f);
        sum->folders += f->n_folders;
        sum->files += f->n_files;
        sum->bytes += f->bytes;
        sum->depth = depth > sum->depth ? depth : sum->depth;
        add_hot(sum, &s->trees[a], f);
        t.other_folders += f->other_folders;
        t.other_files += f->other_files;
        t.twice += f->twice;
        t.resized += f->resized;
        t.retimed += f->retimed;
    }
    planned_manifest(s->trees, s->founds, s->n_accounts, s->times_kept, sum->manifest_sha256);
    say_differences(s, &t);
}
