/* No version has two acknowledged children: of two saves made from the same version one must have been refused, or the
 * work of one of them is lost without anybody knowing. And what a save has succeeded does not come back. */
#include "base/hash.h"
#include "base/mem.h"
#include "checks/check.h"
#include "checks/evidence/look.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int by_parent(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    int c = strcmp(x->file_id, y->file_id);
    if (c == 0)
        c = strcmp(x->version_before, y->version_before);
    return c ? c : (x->seq > y->seq) - (x->seq < y->seq);
}

static void report(const struct check_ctx *c, struct check_result *r, const struct journal_op *a,
                   const struct journal_op *b)
{
    char at[32], bt[32], look[LOOK_MAX];
    check_detail(r,
                 "file %s: two saves from version %s were both acknowledged: app %" PRIu32
                 " at %s became %s, app %" PRIu32 " at %s became %s: the first one is lost; look: %s",
                 a->file_id, a->version_before, a->app, journal_time(at, a->wall_us), a->version_after, b->app,
                 journal_time(bt, b->wall_us), b->version_after, look_at(c, LOOK_HISTORY, a->file_id, look));
}

/* What the rows say now: not a version that an acknowledged save has succeeded. */
static void judge_row(const struct check_ctx *c, struct check_result *r, const struct journal_op *o)
{
    char at[32];
    uint32_t node = c->tree && !c->tree->listed ? tree_find(c->tree, o->file_id) : TREE_NONE;
    if (node != TREE_NONE && c->tree->nodes[node].version &&
        c->tree->nodes[node].version == hash_str(o->version_before))
        check_detail(r,
                     "file %s: it is at version %s again, which the save of app %" PRIu32
                     " at %s had made %s; look: SELECT version FROM files WHERE id = '%s'",
                     o->file_id, o->version_before, o->app, journal_time(at, o->wall_us), o->version_after, o->file_id);
}

static void run(struct check_ctx *c, struct check_result *r)
{
    const struct journal *j = check_journal(c, r);
    if (!j)
        return;
    const struct journal_op **saves = mem_alloc((j->n + 1) * sizeof(*saves));
    size_t n = 0, unversioned = 0;
    for (size_t i = 0; i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if (o->op == OP_SAVE && journal_acked(o) && o->version_before[0] && o->version_after[0])
            saves[n++] = o;
        unversioned += o->op == OP_SAVE && journal_acked(o) && !o->version_after[0];
    }
    qsort(saves, n, sizeof(*saves), by_parent);
    for (size_t i = 1; i < n; i++)
        if (strcmp(saves[i - 1]->file_id, saves[i]->file_id) == 0 &&
            strcmp(saves[i - 1]->version_before, saves[i]->version_before) == 0)
            report(c, r, saves[i - 1], saves[i]);
    for (size_t i = 0; i < n; i++)
        judge_row(c, r, saves[i]);
    r->examined = n;
    if (n == 0 && unversioned > 0)
        check_not_run(r, "not offered: the server reports no versions");
    else
        check_summary(r, "%s with versions, %" PRIu64 " wrong", COUNTED(n, "acknowledged save"), r->wrong);
    mem_free(saves);
}

const struct check check_versions = {"versions", "no version of a run's files has two acknowledged successors", run};
