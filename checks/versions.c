/* No version has two acknowledged children: of two saves made from the same version one must have been refused, or the
 * work of one of them is lost without anybody knowing. And what a save has succeeded does not come back. */
#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "checks/check.h"
#include "checks/evidence/look.h"
#include "checks/evidence/probe.h"
#include "checks/evidence/told.h"

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

/* ---- the probe: two apps need not have met on a file for a server to take what it must refuse ---- */

static MAY_YIELD const char *try_stale(const struct check_ctx *c, struct check_result *r, const struct probe *p,
                                       struct api *api)
{
    char at[32], look[LOOK_MAX];
    struct arena *mem = arena_new(4096);
    struct drive_file f = {0};
    struct api_result res;
    api_replace(api, p->file_id, p->name, p->by->version_before, NULL, &p->content, mem, &f, &res);
    arena_free(&mem);
    if (res.outcome == OUT_CONFLICT && res.status != 423)
        return "; a save from a version that has a successor was refused";
    if (res.outcome != OUT_OK)
        return "; the probe with a stale version had no clear answer";
    check_detail(r,
                 "file %s: a save from version %s was taken (%d), although the save of app %" PRIu32
                 " at %s had made it %s; look: %s",
                 p->file_id, p->by->version_before, res.status, p->by->app, journal_time(at, p->by->wall_us),
                 p->by->version_after, look_at(c, LOOK_HISTORY, p->file_id, look));
    return "; the probe with a stale version was taken";
}

static MAY_YIELD const char *probe(struct check_ctx *c, struct check_result *r, const struct journal_op *last)
{
    struct probe p;
    struct api *api = c->tree ? told_sign_in(c, c->journal->emails[last->login]) : NULL;
    if (!api)
        return "; no probe: it takes the rows and a login";
    const char *result = "; no probe: no file that was saved can be read";
    if (probe_choose(c, api, OP_SAVE, last->login, &p) && p.by->version_before[0] && p.by->version_after[0])
        result = try_stale(c, r, &p, api);
    api_free(&api);
    return result;
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    const struct journal *j = check_journal(c, r);
    const char *probed = "";
    if (!j)
        return;
    const struct journal_op *last = NULL, **saves = mem_alloc((j->n + 1) * sizeof(*saves));
    size_t n = 0, unversioned = 0;
    for (size_t i = 0; i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if (o->op == OP_SAVE && journal_acked(o) && o->version_before[0] && o->version_after[0])
            last = saves[n++] = o;
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
    if (last)
        probed = probe(c, r, last);
    if (n == 0 && unversioned > 0)
        check_not_run(r, "not offered: the server reports no versions");
    else
        check_summary(r, "%s with versions, %" PRIu64 " wrong%s", COUNTED(n, "acknowledged save"), r->wrong, probed);
    mem_free(saves);
}

const struct check check_versions = {"versions", "no version of a run's files has two acknowledged successors", run};
