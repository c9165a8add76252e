/* Rows and objects one to one: each file's object is there with the right size, no two files share one, and the bucket
 * holds nothing that no file names. Suspects are looked at once more before they are reported, because the bucket is
 * read after the rows, and after a moment, because the server's sweeper asks the store for the time by an object that
 * it deletes again. The rule for objects that no file names: a server may leave one behind when a request is broken off
 * (it is killed between object and row, or its database is away), and has to sweep it up. So after requests that were
 * broken off it gets a minute for that, which is waited for, and what is left then is wrong. Without such requests all
 * of them are wrong at once. */
#include "base/hash.h"
#include "base/mem.h"
#include "checks/evidence/look.h"
#include "drive/schema.h"
#include "net/coro.h"

#include <inttypes.h>
#include <string.h>

struct walk {
    struct tree *t;
    uint32_t *index; /* by object key: node + 1 */
    uint32_t mask;
    bool sealed;
    struct check_result *r;
    char **orphans; /* suspects */
    uint64_t *orphan_sizes;
    size_t n_orphans;
    uint64_t objects, orphans_beyond, swept;
    bool waited; /* for the server's sweeper */
};

#define SUSPECTS_KEPT 10000
#define SWEEP_US      (60 * US_PER_S) /* for what an outage has left, once it is over */
#define MOMENT_US     (2 * US_PER_S)

static uint32_t *slot_of(struct walk *w, const char *key)
{
    uint32_t i = (uint32_t)hash_str(key) & w->mask;
    while (w->index[i] != 0 && strcmp(w->t->nodes[w->index[i] - 1].path, key) != 0)
        i = (i + 1) & w->mask;
    return &w->index[i];
}

static void index_paths(struct walk *w)
{
    uint32_t size = 64;
    while (size < w->t->n * 2)
        size *= 2;
    w->mask = size - 1;
    w->index = mem_zalloc(size * sizeof(*w->index));
    for (uint32_t i = 0; i < w->t->n; i++) {
        struct tree_node *n = &w->t->nodes[i];
        if (n->folder)
            continue;
        w->r->examined++;
        if (!n->path) {
            check_detail(w->r, "file %s (%s) names no object; look: SELECT * FROM files WHERE id = '%s'", n->id,
                         n->name, n->id);
            n->object_seen = true;
            continue;
        }
        uint32_t *slot = slot_of(w, n->path);
        if (*slot != 0)
            check_detail(w->r, "files %s and %s share the object %s; look: SELECT * FROM files WHERE path = '%s'",
                         w->t->nodes[*slot - 1].id, n->id, n->path, n->path);
        else
            *slot = i + 1;
    }
}

static uint64_t expected_size(const struct walk *w, const struct tree_node *n)
{
    return w->sealed ? schema_sealed_size((uint64_t)n->size) : (uint64_t)n->size;
}

static bool on_object(void *arg, const char *key, const struct blob_info *info)
{
    struct walk *w = arg;
    w->objects++;
    uint32_t *slot = slot_of(w, key);
    if (*slot != 0) {
        struct tree_node *n = &w->t->nodes[*slot - 1];
        n->object_seen = info->size == expected_size(w, n); /* a wrong one is looked at again below */
    } else if (w->n_orphans == SUSPECTS_KEPT) {
        w->orphans_beyond++;
    } else {
        if ((w->n_orphans & (w->n_orphans - 1)) == 0) {
            size_t cap = w->n_orphans ? w->n_orphans * 2 : 1;
            w->orphans = mem_realloc_array(w->orphans, cap, sizeof(*w->orphans));
            w->orphan_sizes = mem_realloc_array(w->orphan_sizes, cap, sizeof(*w->orphan_sizes));
        }
        w->orphans[w->n_orphans] = mem_strdup(key);
        w->orphan_sizes[w->n_orphans++] = info->size;
    }
    return true;
}

/* True when the row still names that object and size: then the suspicion was right. */
static MAY_YIELD bool row_stands(struct check_ctx *c, const struct tree_node *n)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    bool stands = false;
    if (pg_run(c->pg, "SELECT path, size FROM files WHERE id = $1", 1, &n->id, &res, &ei) == ERR_OK)
        stands = pg_rows(res) == 1 && strcmp(pg_str(res, 0, 0), n->path) == 0 && pg_i64(res, 0, 1) == n->size;
    pg_result_free(&res);
    return stands;
}

static MAY_YIELD void judge_file(struct check_ctx *c, struct walk *w, uint32_t i)
{
    const struct tree_node *n = &w->t->nodes[i];
    struct blob_info info;
    struct errinfo ei;
    char path[200], look[LOOK_MAX];
    enum err e = blob_head(c->blob, n->path, &info, &ei);
    if (!row_stands(c, n) || (e == ERR_OK && info.size == expected_size(w, n)))
        return; /* changed since, or was being written */
    tree_path(w->t, i, path, sizeof(path));
    look_at(c, LOOK_ROW, n->id, look);
    if (e == ERR_NOTFOUND)
        check_detail(w->r, "file %s (%s): its object %s is missing; look: %s", n->id, path, n->path, look);
    else if (e != ERR_OK)
        check_detail(w->r, "file %s (%s): its object %s could not be looked at: %s; look: %s", n->id, path, n->path,
                     err_message(&ei), look);
    else
        check_detail(w->r,
                     "file %s (%s): its object %s has %" PRIu64 " bytes, %" PRIu64 " expected for a file of %" PRId64
                     "; look: %s",
                     n->id, path, n->path, info.size, expected_size(w, n), n->size, look);
}

/* Uploads of the audit log (drive-api.md 8) whose row is gone, newest first: one of them may have owned an orphan. */
static const char lost_uploads_sql[] =
    "SELECT resource_id, metadata->>'name', metadata->>'size', created_at FROM audit_log a"
    " WHERE action = 'file.upload' AND status = 'success' AND NOT EXISTS (SELECT FROM files f WHERE f.id = "
    "a.resource_id)"
    " ORDER BY created_at DESC LIMIT 1000";

/* " (…)" naming the lost file whose size fits the object, "" when there is none or no audit log. */
static MAY_YIELD void name_lost_owner(struct check_ctx *c, const struct walk *w, uint64_t object_size, char *dst,
                                      size_t n)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    dst[0] = 0;
    if (pg_run(c->pg, lost_uploads_sql, 0, NULL, &res, &ei) != ERR_OK)
        return;
    for (int i = 0; i < pg_rows(res) && !dst[0]; i++) {
        struct tree_node was = {.size = pg_i64(res, i, 2)};
        if (!pg_is_null(res, i, 2) && expected_size(w, &was) == object_size)
            snprintf(dst, n, "; it fits file %s (%.100s), uploaded %s, whose row is gone", pg_str(res, i, 0),
                     pg_str(res, i, 1), pg_str(res, i, 3));
    }
    pg_result_free(&res);
}

/* Whether it is still there and still no file names it. */
static MAY_YIELD bool orphan_stands(struct check_ctx *c, const char *key)
{
    struct blob_info info;
    struct errinfo ei;
    struct pg_result *res = NULL;
    bool named = pg_run(c->pg, "SELECT 1 FROM files WHERE path = $1", 1, &key, &res, &ei) == ERR_OK && pg_rows(res) > 0;
    pg_result_free(&res);
    return !named && blob_head(c->blob, key, &info, &ei) != ERR_NOTFOUND;
}

static MAY_YIELD void judge_orphan(struct check_ctx *c, struct walk *w, size_t k)
{
    const char *key = w->orphans[k];
    if (!orphan_stands(c, key))
        return;
    char owner[256];
    name_lost_owner(c, w, w->orphan_sizes[k], owner, sizeof(owner));
    check_detail(w->r,
                 "object %s (%" PRIu64 " bytes) belongs to no file%s%s; look: SELECT * FROM files WHERE path = '%s'",
                 key, w->orphan_sizes[k], owner,
                 w->waited  ? ": the server has not swept it up within a minute"
                 : owner[0] ? ""
                            : ": no request that was broken off explains it",
                 key);
}

/* Gives the server's sweeper its time, as long as objects are there that no file names. */
static MAY_YIELD void wait_for_sweeper(struct check_ctx *c, struct walk *w, int64_t at_most_us)
{
    struct mono until = mono_add(mono_now(), at_most_us);
    size_t gone = 0;
    while (gone < w->n_orphans && !*c->cmd->interrupts && !mono_passed(until)) {
        if (!orphan_stands(c, w->orphans[gone]))
            gone++;
        else
            coro_sleep_until(c->cmd->loop, mono_add(mono_now(), US_PER_S / 2));
    }
}

static MAY_YIELD void judge_suspects(struct check_ctx *c, struct walk *w)
{
    for (uint32_t i = 0; i < w->t->n; i++)
        if (!w->t->nodes[i].folder && !w->t->nodes[i].object_seen)
            judge_file(c, w, i);
    w->waited = w->n_orphans > 0 && c->calls_broken;
    wait_for_sweeper(c, w, w->waited ? SWEEP_US : MOMENT_US);
    uint64_t wrong = w->r->wrong;
    for (size_t k = 0; k < w->n_orphans; k++)
        judge_orphan(c, w, k);
    w->swept = w->waited ? w->n_orphans - (w->r->wrong - wrong) : 0;
    if (w->orphans_beyond > 0)
        check_detail(w->r, "%" PRIu64 " more objects belong to no file", w->orphans_beyond);
}

static MAY_YIELD bool database_says_sealed(struct check_ctx *c)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    bool sealed = pg_run(c->pg, "SELECT to_jsonb(s)->>'object_format' FROM app_settings s LIMIT 1", 0, NULL, &res,
                         &ei) == ERR_OK &&
                  pg_rows(res) == 1 && strcmp(pg_str(res, 0, 0), "dseal1") == 0;
    pg_result_free(&res);
    return sealed;
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    if (!check_rows(c, r))
        return;
    if (!c->blob && !target_has_s3(c->cmd->target) && !(c->tree->schema & SCHEMA_STORAGE_USED)) {
        check_not_run(r, "not offered: the server keeps its files in a store of its own");
        return;
    }
    if (!check_blob(c, r))
        return;
    struct walk w = {.t = c->tree, .r = r, .sealed = database_says_sealed(c)};
    struct errinfo ei = {0};
    for (uint32_t i = 0; i < w.t->n; i++)
        w.t->nodes[i].object_seen = false;
    index_paths(&w);
    if (blob_list(c->blob, "", on_object, &w, &ei) != ERR_OK)
        check_blocked(r, "the bucket could not be listed: %s", err_message(&ei));
    else {
        judge_suspects(c, &w);
        check_summary(r, "%s, %s, %" PRIu64 " wrong%s", COUNTED(r->examined, "file"),
                      COUNTED(w.objects - w.swept, "object"), r->wrong,
                      w.swept ? "; what broken requests had left was swept up meanwhile" : "");
    }
    for (size_t k = 0; k < w.n_orphans; k++)
        mem_free(w.orphans[k]);
    mem_free(w.orphans);
    mem_free(w.orphan_sizes);
    mem_free(w.index);
}

const struct check check_objects = {"objects", "files and stored objects one to one, sizes right", run};
