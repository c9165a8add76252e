/* When all is quiet each app's view of its open folders is what the server's rows say, in names and in content
 * versions: the apps left a count and hashes of each view in the ledger, the same is made of the rows. A folder that
 * its app knew to be out of date is left out. */
#include "base/hash.h"
#include "base/mem.h"
#include "checks/evidence/others.h"
#include "drive/ledger.h"

#include <inttypes.h>
#include <string.h>

struct folder_sum {
    uint64_t names, versions, n;
};

static const struct journal_op *last_change(const struct journal *j, const char *folder)
{
    for (size_t i = j->n; i-- > 0;) {
        const struct journal_op *o = &j->ops[i];
        if (journal_acked(o) && o->op != OP_LOCK && o->op != OP_UNLOCK &&
            (strcmp(o->parent_id, folder) == 0 || strcmp(o->other_id, folder) == 0))
            return o;
    }
    return NULL;
}

static void report(struct check_result *r, const struct tree *t, const struct journal *j, const struct journal_note *n,
                   uint32_t at, const struct folder_sum *is)
{
    char path[200], when[32] = "", change[200] = "";
    const struct journal_op *o = last_change(j, n->file_id);
    if (o)
        snprintf(change, sizeof(change), "; the last change there: %s of %s by app %" PRIu32 " at %s",
                 drive_op_text((enum drive_op)o->op), o->file_id, o->app, journal_time(when, o->wall_us));
    char look[DRIVE_ID_MAX + 100] = "list the folder";
    if (!t->listed)
        snprintf(look, sizeof(look), "SELECT * FROM files WHERE parent_id = '%s' AND deleted_at IS NULL", n->file_id);
    check_detail(r, "app %" PRIu32 " sees %s in folder %s (%s), %s %" PRIu64 "%s%s; look: %s", n->app,
                 COUNTED(n->size, "entry"), n->file_id, tree_path(t, at, path, sizeof(path)),
                 t->listed ? "it has" : "the rows hold", is->n,
                 n->size != is->n      ? ""
                 : n->key != is->names ? " but others"
                                       : " and one of another version",
                 change, look);
}

static struct folder_sum *sums_of(const struct tree *t)
{
    struct folder_sum *sums = mem_zalloc(((size_t)t->n + 1) * sizeof(*sums));
    for (uint32_t i = 0; i < t->n; i++) {
        const struct tree_node *n = &t->nodes[i];
        if (n->trashed || n->parent == TREE_NONE)
            continue;
        sums[n->parent].names += ledger_entry_hash(n->id, n->name);
        sums[n->parent].versions += n->folder ? 0 : ledger_version_hash(n->id, n->version);
        sums[n->parent].n++;
    }
    return sums;
}

/* Whether the rows' versions are what the API tells: one acknowledged write whose version its row still has proves it.
 */
static bool versions_alike(const struct tree *t, const struct journal *j)
{
    for (size_t i = 0; i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if ((o->op != OP_SAVE && o->op != OP_UPLOAD) || !journal_acked(o) || !o->version_after[0])
            continue;
        uint32_t at = tree_find(t, o->file_id);
        if (at != TREE_NONE && t->nodes[at].version == hash_str(o->version_after))
            return true;
    }
    return false;
}

/* Somebody else changed the folder after the view was noted: then they may differ. Our own server's table of changes
 * tells, or else the ledgers of other runs, since this one began. */
static MAY_YIELD bool changed_since(struct check_ctx *c, const struct journal_note *n)
{
    static const char sql[] =
        "SELECT FROM changes WHERE at > timestamptz 'epoch' + $1::bigint * interval '1 microsecond'"
        " AND $2 = ANY (folders) LIMIT 1";
    char since[32], spot[CHECK_SPOT_MAX];
    const char *params[] = {since, n->file_id};
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (!c->pg)
        return check_changed_by_others(c, check_spot(spot, n->file_id, ""));
    snprintf(since, sizeof(since), "%" PRId64, n->wall_us);
    bool changed = pg_run(c->pg, sql, 2, params, &res, &ei) == ERR_OK && pg_rows(res) > 0;
    pg_result_free(&res);
    return changed;
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    const struct journal *j = check_journal(c, r);
    const struct tree *t = j ? check_tree(c, r) : NULL;
    uint64_t known_old = 0;
    if (!t)
        return;
    struct folder_sum *sums = sums_of(t);
    bool versions = versions_alike(t, j);
    for (size_t i = 0; i < j->n_notes; i++) {
        const struct journal_note *n = &j->notes[i];
        uint32_t at = n->op == OP_LIST ? tree_find(t, n->file_id) : TREE_NONE;
        if (at == TREE_NONE || t->nodes[at].trashed)
            continue;
        known_old += n->flags != 0;
        if (n->flags != 0)
            continue;
        r->examined++;
        bool same =
            n->key == sums[at].names && n->size == sums[at].n && (!versions || n->versions == sums[at].versions);
        if (!same && !changed_since(c, n))
            report(r, t, j, n, at, &sums[at]);
    }
    if (r->examined == 0)
        check_not_run(r, "the run left no views: it was interrupted, or its apps had not listed their folders");
    else
        check_summary(r, "%s of folders, names%s compared, %" PRIu64 " differ from the rows%s",
                      COUNTED(r->examined, "view"), versions ? " and versions" : "", r->wrong,
                      known_old ? "; some that their apps knew to be out of date are left out" : "");
    check_note_blind(c, r);
    mem_free(sums);
}

const struct check check_convergence = {"convergence",
                                        "at the end each app's view of its folders is what the rows hold", run};
