/* Acknowledged changes of names and places: renames, moves, moves to the trash, copies, new folders are there, and
 * nothing is there that nobody asked for. Of changes that crossed each other any may have come last; one that was
 * acknowledged before another was asked for may not. */
#include "base/map.h"
#include "base/mem.h"
#include "checks/evidence/fate.h"
#include "checks/evidence/look.h"
#include "checks/evidence/others.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct judge {
    const struct journal *j;
    const struct tree *t;
    struct check_result *r;
    const struct journal_op **ops; /* those that change a name or place, by file */
    size_t n;
    struct check_ctx *c;
    uint64_t acknowledged, strays, others; /* others: items that somebody else changed too */
    const char *strays_why;                /* why they could not be looked for */
};

static int by_file(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    int c = strcmp(x->file_id, y->file_id);
    return c ? c : (x->seq > y->seq) - (x->seq < y->seq);
}

static bool changes_place(const struct journal_op *o)
{
    return o->op == OP_RENAME || o->op == OP_MOVE || o->op == OP_TRASH || o->op == OP_COPY || o->op == OP_NEW_FOLDER ||
           o->op == OP_UPLOAD;
}

/* Says that o's item is not as o's app was told: what, then to ("": nothing). */
static MAY_YIELD void detail(struct judge *k, const struct journal_op *o, const char *what, const char *to,
                             const char *is)
{
    char at[32], look[LOOK_MAX];
    if (check_changed_by_others(k->c, o->file_id)) {
        k->others++;
        return;
    }
    check_detail(k->r, "%s %s: app %" PRIu32 " was told at %s that it is %s%s%s%s; look: %s",
                 o->op == OP_NEW_FOLDER ? "folder" : "file", o->file_id, o->app, journal_time(at, o->wall_us), what, to,
                 is[0] ? ", but it is " : "", is, look_at(k->c, LOOK_ROW, o->file_id, look));
}

/* Whether o may have been the last of its kind: no acknowledged one of the kind was asked for after o was over. */
static bool may_be_last(const struct journal_op *const *ops, size_t n, const struct journal_op *o)
{
    for (size_t i = 0; i < n; i++)
        if (ops[i]->op == o->op && journal_acked(ops[i]) && ops[i] != o && ops[i]->sent_us > o->told_us)
            return false;
    return true;
}

/* What a rename or move made of it. A name that is taken where a move takes it gets a number there. */
static bool fits(const struct journal_op *o, const char *is, bool moved)
{
    const char *made = o->op == OP_RENAME ? o->name : o->other_id;
    return o->op == OP_RENAME && moved ? fate_is_twin(is, made) : strcmp(is, made) == 0;
}

/* The row's name, or folder, is what one of the changes that may have been the last made it. */
static MAY_YIELD void judge_last(struct judge *k, const struct journal_op *const *ops, size_t n, enum drive_op op,
                                 const char *is)
{
    const struct journal_op *last = NULL;
    bool moved = false;
    for (size_t i = 0; i < n; i++)
        moved = moved || (ops[i]->op == OP_MOVE && journal_maybe(ops[i]));
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->op != op || !journal_maybe(ops[i]) || !may_be_last(ops, n, ops[i]))
            continue;
        if (fits(ops[i], is, moved))
            return;
        last = !last || journal_acked(ops[i]) ? ops[i] : last;
    }
    if (last && journal_acked(last))
        detail(k, last, op == OP_RENAME ? "called " : "moved to folder ", op == OP_RENAME ? last->name : last->other_id,
               is);
}

static const struct journal_op *first_acked(const struct journal_op *const *ops, size_t n, bool trash)
{
    for (size_t i = 0; i < n; i++)
        if (journal_acked(ops[i]) && (ops[i]->op == OP_TRASH) == trash)
            return ops[i];
    return NULL;
}

static bool may_be_trashed(const struct journal_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ops[i]->op == OP_TRASH && journal_maybe(ops[i]))
            return true;
    return false;
}

static MAY_YIELD void judge_file(struct judge *k, const struct journal_op *const *ops, size_t n)
{
    const struct journal_op *trash = first_acked(ops, n, true), *other = first_acked(ops, n, false);
    uint32_t at = tree_find(k->t, ops[0]->file_id);
    for (size_t i = 0; i < n; i++)
        k->acknowledged += journal_acked(ops[i]);
    if (!trash && !other)
        return;
    k->r->examined++;
    if (at == TREE_NONE && k->t->listed && may_be_trashed(ops, n))
        return; /* no listing shows a trash, and most of these servers have none */
    if (at == TREE_NONE) {
        detail(k, trash ? trash : other, trash ? "in the trash" : "there", "", "gone for good");
        return;
    }
    const struct tree_node *row = &k->t->nodes[at];
    if (row->trashed)
        return;
    if (trash)
        detail(k, trash, "in the trash", "", "still where it was");
    judge_last(k, ops, n, OP_RENAME, row->name);
    judge_last(k, ops, n, OP_MOVE, row->parent == TREE_NONE ? "" : k->t->nodes[row->parent].id);
}

/* ---- what nobody asked for ---- */

/* Unknown requests may have made something each: so many strays of a folder are theirs. */
static uint64_t unknown_in(const struct judge *k, const char *folder)
{
    uint64_t n = 0;
    for (size_t i = 0; i < k->j->n; i++) {
        const struct journal_op *o = &k->j->ops[i];
        bool makes = o->op == OP_UPLOAD || o->op == OP_COPY || o->op == OP_NEW_FOLDER;
        n += makes && !journal_acked(o) && journal_maybe(o) &&
             strcmp(o->op == OP_COPY ? o->other_id : o->parent_id, folder) == 0;
    }
    return n;
}

/* Others may work in the same folders: what is held against the server is a second one of what an app asked for once.
 */
static bool was_asked_once(const struct judge *k, const char *folder, const char *name)
{
    for (size_t i = 0; i < k->j->n; i++) {
        const struct journal_op *o = &k->j->ops[i];
        if ((o->op == OP_COPY && strcmp(o->other_id, folder) == 0 && fate_is_twin(name, o->name)) ||
            ((o->op == OP_UPLOAD || o->op == OP_NEW_FOLDER) && strcmp(o->parent_id, folder) == 0 &&
             fate_is_twin(name, o->name)))
            return true;
    }
    return false;
}

static void judge_stray(struct judge *k, const struct pg_result *res, int i)
{
    if (unknown_in(k, pg_str(res, i, 3)) > 0 || !was_asked_once(k, pg_str(res, i, 3), pg_str(res, i, 1)))
        return;
    k->strays++;
    check_detail(
        k->r,
        "%s %s (%.100s) in folder %s was made at %s, but no app asked for it; look: SELECT * FROM audit_log WHERE"
        " resource_id = '%s'",
        pg_str(res, i, 2), pg_str(res, i, 0), pg_str(res, i, 1), pg_str(res, i, 3), pg_str(res, i, 4),
        pg_str(res, i, 0));
}

/* Rows made during the run, in folders that its apps worked in, which no record names. */
static MAY_YIELD void look_for_strays(struct check_ctx *c, struct judge *k)
{
    static const char sql[] =
        "SELECT id, name, type, parent_id, to_char(created_at AT TIME ZONE 'UTC', 'HH24:MI:SS.MS\"Z\"')"
        " FROM files WHERE created_at >= timestamptz 'epoch' + $1::bigint * interval '1 microsecond'"
        " AND ($2::bigint IS NULL OR created_at <= timestamptz 'epoch' + $2::bigint * interval '1 microsecond')"
        " AND parent_id IS NOT NULL ORDER BY created_at, id";
    char since[32], until[32];
    int64_t ended_us = check_ended_us(c);
    const char *params[] = {since, ended_us == INT64_MAX ? NULL : until};
    struct pg_result *res = NULL;
    struct errinfo ei;
    struct map *known = map_new(), *folders = map_new();
    for (size_t i = 0; i < k->j->n; i++) {
        const struct journal_op *o = &k->j->ops[i];
        if (!changes_place(o))
            continue;
        map_put(known, sv_of(o->file_id), k);
        map_put(folders, sv_of(o->op == OP_COPY || o->op == OP_MOVE ? o->other_id : o->parent_id), k);
    }
    snprintf(since, sizeof(since), "%" PRId64, check_began_us(c));
    snprintf(until, sizeof(until), "%" PRId64, ended_us);
    if (!c->pg)
        k->strays_why = "; changes that nobody asked for were not looked for: that takes the database";
    else if (k->j->n > 0 && pg_run(c->pg, sql, 2, params, &res, &ei) != ERR_OK)
        k->strays_why = "; rows do not say when they were made";
    for (int i = 0; res && i < pg_rows(res); i++)
        if (!map_get(known, sv_of(pg_str(res, i, 0))) && map_get(folders, sv_of(pg_str(res, i, 3))))
            judge_stray(k, res, i);
    pg_result_free(&res);
    map_free(&known);
    map_free(&folders);
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    struct judge k = {.j = check_journal(c, r), .r = r, .c = c, .strays_why = ""};
    char others[100];
    if (!k.j || !(k.t = check_tree(c, r)))
        return;
    if (!journal_whole(k.j)) { /* what came last may have been undone by what is missing */
        check_not_run(r, "the run was cut short: what its last moments changed is not known");
        return;
    }
    k.ops = mem_alloc((k.j->n + 1) * sizeof(*k.ops));
    for (size_t i = 0; i < k.j->n; i++)
        if (changes_place(&k.j->ops[i]) && k.j->ops[i].file_id[0])
            k.ops[k.n++] = &k.j->ops[i];
    qsort(k.ops, k.n, sizeof(*k.ops), by_file);
    for (size_t from = 0, to; from < k.n; from = to) {
        for (to = from + 1; to < k.n && strcmp(k.ops[to]->file_id, k.ops[from]->file_id) == 0;)
            to++;
        judge_file(&k, k.ops + from, to - from);
    }
    if (k.t->listed)
        k.strays_why = "; listings do not say when something was made";
    else
        look_for_strays(c, &k);
    check_summary(r, "%s of %s, %" PRIu64 " wrong, %s that nobody asked for%s%s",
                  COUNTED(k.acknowledged, "acknowledged change"), COUNTED(r->examined, "item"), r->wrong,
                  COUNTED(k.strays, "item"), k.strays_why, check_others_text(others, sizeof(others), k.others));
    check_note_blind(c, r);
    mem_free(k.ops);
}

const struct check check_changes = {
    "changes", "acknowledged renames, moves, copies, new folders and trashings of a run are there, and nothing else",
    run};
