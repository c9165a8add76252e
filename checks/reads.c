/* What apps read is what was written: the bytes are whole, they are of a revision that was written to that very file
 * and not refused, the version told with them is that revision's, and an app that saved a file never reads an older
 * revision of it afterwards. Content describes itself (drive/content.h), so each download tells which revision it is;
 * the ledger tells who wrote that one and what became of it. */
#include "base/mem.h"
#include "base/sorted.h"
#include "checks/check.h"
#include "checks/evidence/look.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEEDED 1 /* the revision of what seed loads, and of each upload */

struct judge {
    const struct check_ctx *c;
    const struct journal *j;
    struct check_result *r;
    const struct journal_op **writes; /* uploads and saves, by file and revision */
    const struct journal_op **own;    /* those acknowledged, by app, file and time */
    const struct journal_op **any;    /* saves, by revision: theirs are drawn from 64 bits */
    size_t n, n_own, n_any;
    bool versions_told; /* the version told with a download is what the answer to a write told */
    uint64_t ours, after_own;
};

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_file_and_revision(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    int c = strcmp(x->file_id, y->file_id);
    return c ? c : compare(x->revision, y->revision);
}

static int by_app_file_time(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    int c = x->app == y->app ? strcmp(x->file_id, y->file_id) : compare(x->app, y->app);
    return c ? c : compare((uint64_t)x->told_us, (uint64_t)y->told_us);
}

static int by_revision(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    return compare(x->revision, y->revision);
}

typedef int compare_fn(const void *a, const void *b);

static const struct journal_op *find(const struct journal_op **list, size_t n, const struct journal_op *key,
                                     compare_fn *cmp)
{
    size_t at = sorted_place(&key, list, n, sizeof(*list), cmp);
    return at < n && cmp(&list[at], &key) == 0 ? list[at] : NULL;
}

/* The app's last acknowledged write of the file before it asked for it; NULL: none. */
static const struct journal_op *own_write(const struct judge *k, const struct journal_read *rd)
{
    const struct journal_op key = {.app = rd->app, .file_id = rd->file_id, .told_us = rd->sent_us}, *asked = &key;
    size_t at = sorted_place(&asked, k->own, k->n_own, sizeof(*k->own), by_app_file_time);
    const struct journal_op *o = at > 0 ? k->own[at - 1] : NULL;
    return o && o->app == rd->app && strcmp(o->file_id, rd->file_id) == 0 ? o : NULL;
}

static void collect(struct judge *k)
{
    const struct journal *j = k->j;
    k->writes = mem_alloc((j->n + 1) * sizeof(*k->writes));
    k->own = mem_alloc((j->n + 1) * sizeof(*k->own));
    k->any = mem_alloc((j->n + 1) * sizeof(*k->any));
    for (size_t i = 0; i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if ((o->op != OP_UPLOAD && o->op != OP_SAVE) || o->revision == 0)
            continue;
        if (o->op == OP_SAVE)
            k->any[k->n_any++] = o;
        if (!o->file_id[0])
            continue;
        k->writes[k->n++] = o;
        if (journal_acked(o))
            k->own[k->n_own++] = o;
    }
    qsort(k->writes, k->n, sizeof(*k->writes), by_file_and_revision);
    qsort(k->own, k->n_own, sizeof(*k->own), by_app_file_time);
    qsort(k->any, k->n_any, sizeof(*k->any), by_revision);
}

static const struct journal_op *writer_of(const struct judge *k, const struct journal_read *rd)
{
    const struct journal_op key = {.file_id = rd->file_id, .revision = rd->revision};
    return rd->revision ? find(k->writes, k->n, &key, by_file_and_revision) : NULL;
}

/* A server's ETag need not be its version; one that is for one file is for all. */
static bool versions_told(const struct judge *k)
{
    for (size_t i = 0; i < k->j->n_reads; i++) {
        const struct journal_read *rd = &k->j->reads[i];
        const struct journal_op *w = rd->version[0] ? writer_of(k, rd) : NULL;
        if (w && journal_acked(w) && strcmp(w->version_after, rd->version) == 0)
            return true;
    }
    return false;
}

static void wrong(const struct judge *k, const struct journal_read *rd, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void wrong(const struct judge *k, const struct journal_read *rd, const char *fmt, ...)
{
    char what[260], at[32], look[LOOK_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    check_detail(k->r, "file %s, read by app %" PRIu32 " at %s: %s; look: %s", rd->file_id, rd->app,
                 journal_time(at, rd->wall_us), what, look_at(k->c, LOOK_CONTENT, rd->file_id, look));
}

/* Whether the file existed, as this ledger saw, before that time: a copy may hold what was written to its source. */
static bool known_before(const struct judge *k, const char *file, int64_t at)
{
    for (size_t i = 0; i < k->j->n && k->j->ops[i].sent_us < at; i++)
        if (strcmp(k->j->ops[i].file_id, file) == 0 && k->j->ops[i].op != OP_COPY)
            return true;
    return false;
}

/* The revision is none that this run wrote to this file. */
static void judge_unwritten(const struct judge *k, const struct journal_read *rd)
{
    const struct journal_op key = {.revision = rd->revision};
    const struct journal_op *other = find(k->any, k->n_any, &key, by_revision);
    char at[32];
    if (other && known_before(k, rd->file_id, other->sent_us))
        wrong(k, rd, "it holds what app %" PRIu32 " saved at %s to another file, %s", other->app,
              journal_time(at, other->wall_us), other->file_id);
}

static void judge_written(const struct judge *k, const struct journal_read *rd, const struct journal_op *w)
{
    char at[32];
    if (w->outcome == OUT_CONFLICT || w->outcome == OUT_REFUSED)
        wrong(k, rd, "it holds revision %" PRIu64 ", which app %" PRIu32 " tried to save at %s and was refused (%s)",
              rd->revision, w->app, journal_time(at, w->wall_us), outcome_key(w->outcome));
    else if (k->versions_told && journal_acked(w) && rd->version[0] && w->version_after[0] &&
             strcmp(rd->version, w->version_after) != 0)
        wrong(k, rd, "it came as version %s, but its bytes are those of version %s, saved by app %" PRIu32 " at %s",
              rd->version, w->version_after, w->app, journal_time(at, w->wall_us));
}

/* own: acknowledged to this very app before it asked. w: who wrote what it got, NULL: nobody in this run. */
static void judge_age(const struct judge *k, const struct journal_read *rd, const struct journal_op *own,
                      const struct journal_op *w)
{
    bool older = w ? w != own && journal_acked(w) && w->told_us < own->sent_us
                   : own->op == OP_SAVE && rd->revision != 0 &&
                         (rd->revision == SEEDED || (rd->version[0] && strcmp(rd->version, own->version_before) == 0));
    char at[32];
    if (older)
        wrong(k, rd, "it holds an older revision, %" PRIu64 ", than the app's own %s of %s, revision %" PRIu64,
              rd->revision, drive_op_text((enum drive_op)own->op), journal_time(at, own->wall_us), own->revision);
}

static void judge_read(struct judge *k, const struct journal_read *rd)
{
    k->r->examined++;
    if (rd->outcome == OUT_WRONG) {
        wrong(k, rd, "%s", rd->why[0] ? rd->why : "its bytes are not those of any revision");
        return;
    }
    const struct journal_op *w = writer_of(k, rd), *own = own_write(k, rd);
    k->ours += w != NULL;
    k->after_own += own != NULL;
    if (w)
        judge_written(k, rd, w);
    else
        judge_unwritten(k, rd);
    if (own)
        judge_age(k, rd, own, w);
}

static void run(struct check_ctx *c, struct check_result *r)
{
    struct judge k = {.c = c, .j = check_journal(c, r), .r = r};
    if (!k.j)
        return;
    if (k.j->n_reads == 0) {
        check_not_run(r, "the run downloaded nothing");
        return;
    }
    collect(&k);
    k.versions_told = versions_told(&k);
    for (size_t i = 0; i < k.j->n_reads; i++)
        judge_read(&k, &k.j->reads[i]);
    check_summary(r,
                  "%s, %" PRIu64 " of revisions that the run wrote, %" PRIu64
                  " after a write of the app's own, %" PRIu64 " wrong",
                  COUNTED(r->examined, "download"), k.ours, k.after_own, r->wrong);
    mem_free(k.writes);
    mem_free(k.own);
    mem_free(k.any);
}

const struct check check_reads = {
    "reads", "downloads hold whole revisions that were written, and none older than one's own", run};
