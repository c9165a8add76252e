/* Folder totals: recomputed from the rows in one pass, then compared with what the database's own
 * reconcile_folder_aggregates would repair (drive-api.md 8), in a transaction that is rolled back. */
#include "base/mem.h"
#include "checks/evidence/told.h"
#include "drive/schema.h"

#include <inttypes.h>

struct totals {
    int64_t size, files, folders;
};

static void compare(const struct tree *t, const struct totals *sum, struct check_result *r)
{
    char path[256];
    for (uint32_t i = 0; i < t->n; i++) {
        const struct tree_node *n = &t->nodes[i];
        const struct totals *s = &sum[i];
        if (!n->folder || n->in_cycle)
            continue;
        r->examined++;
        if (n->agg_size == s->size && n->agg_files == s->files && n->agg_folders == s->folders)
            continue;
        check_detail(r,
                     "folder %s (%s) of %s: stored %" PRId64 " bytes, %" PRId64 " files, %" PRId64
                     " folders; its rows add up to %" PRId64 ", %" PRId64 ", %" PRId64
                     "; look: SELECT * FROM files WHERE id = '%s'",
                     n->id, tree_path(t, i, path, sizeof(path)), t->accounts[n->account].email, n->agg_size,
                     n->agg_files, n->agg_folders, s->size, s->files, s->folders, n->id);
    }
}

/* Children come after their parents in t->order, so walking it backwards finishes each folder before its parent. */
static void recompute(const struct tree *t, struct totals *sum)
{
    for (uint32_t at = t->n - t->n_cyclic; at-- > 0;) {
        uint32_t i = t->order[at];
        const struct tree_node *n = &t->nodes[i];
        if (n->parent == TREE_NONE)
            continue;
        struct totals *p = &sum[n->parent];
        p->size = drive_sum(p->size, n->folder ? sum[i].size : n->size);
        p->files += n->folder ? sum[i].files : 1;
        p->folders += n->folder ? sum[i].folders + 1 : 0;
    }
}

/* How many folders the server's own function would repair, all accounts together; -1 when it could not say. */
static MAY_YIELD int64_t reconcile(struct check_ctx *c, const struct tree *t, struct errinfo *why)
{
    struct pg *pg = NULL;
    int64_t wrong = 0;
    enum err e = pg_take(c->pg, &pg, why);
    if (e == ERR_OK)
        e = pg_script(pg, "BEGIN", why);
    for (uint32_t i = 0; e == ERR_OK && i < t->n_accounts; i++) {
        struct pg_result *res = NULL;
        e = pg_query(pg, "SELECT reconcile_folder_aggregates($1)", 1, &t->accounts[i].id, &res, why);
        if (e == ERR_OK)
            wrong += pg_i64(res, 0, 0);
        pg_result_free(&res);
    }
    if (pg) {
        struct errinfo ignored;
        enum err back = pg_script(pg, "ROLLBACK", &ignored);
        (void)back; /* pg_give rolls back what is still open */
        pg_give(&pg);
    }
    return e == ERR_OK ? wrong : -1;
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    if (c->tree && c->tree->listed) {
        told_totals(c, c->tree, r);
        return;
    }
    const struct tree *t = check_rows(c, r);
    if (!t)
        return;
    if (!(t->schema & SCHEMA_AGGREGATES)) {
        told_totals(c, t, r);
        return;
    }
    struct totals *sum = mem_zalloc(((size_t)t->n + 1) * sizeof(*sum));
    recompute(t, sum);
    compare(t, sum, r);
    mem_free(sum);
    if (!(t->schema & SCHEMA_RECONCILE)) {
        check_summary(r, "%s, %" PRIu64 " wrong; reconcile_folder_aggregates is not offered",
                      COUNTED(r->examined, "folder"), r->wrong);
        return;
    }
    struct errinfo why = {0};
    uint64_t ours = r->wrong;
    int64_t theirs = reconcile(c, t, &why);
    if (theirs < 0)
        check_detail(r, "reconcile_folder_aggregates failed: %s", err_message(&why));
    else if ((uint64_t)theirs != ours)
        check_detail(r, "reconcile_folder_aggregates would repair %s, our own sums say %" PRIu64,
                     COUNTED((uint64_t)theirs, "folder"), ours);
    check_summary(r, "%s, %" PRIu64 " wrong; reconcile_folder_aggregates says %" PRId64, COUNTED(r->examined, "folder"),
                  ours, theirs);
}

const struct check check_aggregates = {"aggregates",
                                       "folder totals, by our own sums and by reconcile_folder_aggregates", run};
