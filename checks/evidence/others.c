/* Whether what is there now is still what a run left. A server that was filled anew has other accounts under the same
 * names: of them no ledger can tell anything. And others may have worked in the same accounts, during the run or since:
 * what the database's `changes` hold beyond what the ledger's apps asked for is theirs, and an item of it says nothing
 * against the server. Where the database cannot be asked, later runs are known by their folders beside this one's, and
 * what their ledgers name is theirs. Asked for only when something looks wrong, since it reads all changes since the
 * run began. */
#include "checks/evidence/others.h"
#include "base/map.h"
#include "base/mem.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ENDED_SLACK_US US_PER_S /* what the two clocks and the milliseconds of the end may differ by */

/* As the table of changes calls what the apps do. */
static const struct {
    enum drive_op op;
    const char *type;
} types[] = {
    {OP_UPLOAD, "file.uploaded"},      {OP_SAVE, "file.updated"}, {OP_RENAME, "file.renamed"},
    {OP_MOVE, "file.moved"},           {OP_COPY, "file.copied"},  {OP_TRASH, "file.deleted"},
    {OP_NEW_FOLDER, "folder.created"},
};

int64_t check_began_us(const struct check_ctx *c)
{
    if (c->since && c->since->known_clock)
        return c->since->clock_us;
    return c->journal->n ? c->journal->ops[0].wall_us : 0;
}

int64_t check_ended_us(const struct check_ctx *c)
{
    struct wall ended;
    const char *text = c->offline && c->journal ? json_str(json_get(c->journal->run, "ended")) : NULL;
    if (!text || !wall_parse(text, &ended) || !c->since || !c->since->known_clock || ended.us < c->since->wall_us)
        return INT64_MAX;
    return c->since->clock_us + (ended.us - c->since->wall_us) + ENDED_SLACK_US;
}

enum err check_read_owner(struct cmd_ctx *ctx, struct pg_pool *pg, char *dst, size_t n, struct errinfo *ei)
{
    char email[64];
    const char *params[] = {email};
    struct pg_result *res = NULL;
    target_owner(ctx->target, 0, email, sizeof(email));
    enum err e = pg_run(pg, "SELECT id FROM users WHERE email = $1", 1, params, &res, ei);
    if (e == ERR_OK)
        str_format(dst, n, "%s", pg_rows(res) ? pg_str(res, 0, 0) : "");
    pg_result_free(&res);
    return e;
}

void check_read_history(struct pg_pool *pg, char *dst, size_t n)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    dst[0] = '\0';
    if (pg_run(pg, "SELECT epoch FROM app_settings", 0, NULL, &res, &ei) == ERR_OK && pg_rows(res) == 1)
        str_format(dst, n, "%s", pg_str(res, 0, 0));
    pg_result_free(&res);
}

enum err check_same_accounts(struct check_ctx *c, const struct check_baseline *then, struct errinfo *ei)
{
    char email[64], now[CHECK_OWNER_MAX] = "", history[CHECK_OWNER_MAX] = "";
    struct errinfo why;
    if (!then->owner[0] || !c->pg || check_read_owner(c->cmd, c->pg, now, sizeof(now), &why) != ERR_OK)
        return ERR_OK;
    target_owner(c->cmd->target, 0, email, sizeof(email));
    if (!now[0])
        return err_set(ei, ERR_ENV, "the accounts of that run are not here: there is no %s", email);
    if (strcmp(then->owner, now) != 0)
        return err_set(ei, ERR_ENV,
                       "the accounts of that run are not here: its %s was %s, this one is %s; the server was seeded "
                       "again since, or is another one",
                       email, then->owner, now);
    check_read_history(c->pg, history, sizeof(history));
    if (then->history[0] && history[0] && strcmp(then->history, history) != 0)
        return err_set(ei, ERR_ENV,
                       "what that run did is not here: a fixture was loaded since, which put the server back to"
                       " another state");
    return ERR_OK;
}

/* ---- what others changed ---- */

static char *id_and_type(char *dst, size_t n, const char *id, const char *type)
{
    str_format(dst, n, "%s %s", id, type);
    return dst;
}

/* How often the run's apps asked for each kind of change of each item; of what got no answer it is enough that it may
 * have been done. counts has room for one each of the ledger's operations. */
static struct map *count_asked(const struct journal *j, uint32_t *counts)
{
    char key[DRIVE_ID_MAX + 32];
    struct map *asked = map_new();
    for (size_t i = 0; i < j->n; i++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++) {
            if (j->ops[i].op != types[t].op || !journal_maybe(&j->ops[i]))
                continue;
            struct sv at = sv_of(id_and_type(key, sizeof(key), j->ops[i].file_id, types[t].type));
            uint32_t *n = map_get(asked, at);
            if (!n)
                map_put(asked, at, n = &counts[i]);
            ++*n;
        }
    return asked;
}

/* What concerns an item that the ledger names, and how often of each kind. */
static MAY_YIELD void find_in_changes(struct check_ctx *c, struct map *others)
{
    static const char sql[] = "SELECT data->>'id', type, count(*) FROM changes WHERE data->>'id' IS NOT NULL"
                              " AND at >= timestamptz 'epoch' + $1::bigint * interval '1 microsecond' GROUP BY 1, 2";
    char since[32], key[DRIVE_ID_MAX + 32];
    const char *params[] = {since};
    struct pg_result *res = NULL;
    struct errinfo ei;
    const struct journal *j = c->journal;
    uint32_t *counts = mem_zalloc((j->n + 1) * sizeof(*counts));
    struct map *asked = count_asked(j, counts), *named = map_new();
    for (size_t i = 0; i < j->n; i++)
        map_put(named, sv_of(j->ops[i].file_id), c);
    snprintf(since, sizeof(since), "%" PRId64, check_began_us(c));
    if (j->n > 0 && pg_run_long(c->pg, sql, 1, params, &res, &ei) == ERR_OK)
        for (int i = 0; i < pg_rows(res); i++) {
            const char *id = pg_str(res, i, 0);
            const uint32_t *n = map_get(asked, sv_of(id_and_type(key, sizeof(key), id, pg_str(res, i, 1))));
            if (map_get(named, sv_of(id)) && pg_i64(res, i, 2) > (n ? (int64_t)*n : 0))
                map_put(others, sv_of(id), c);
        }
    pg_result_free(&res);
    map_free(&asked);
    map_free(&named);
    mem_free(counts);
}

/* ---- by the folders of other runs ---- */

typedef void spot_fn(void *arg, const struct journal_op *o, const char *spot);

/* Each "folder/name" at which the item of a change stood before or after it. */
static void each_spot(const struct journal_op *o, spot_fn *fn, void *arg)
{
    const struct {
        const char *folder, *name;
    } at[] = {{o->parent_id, o->name}, {o->parent_id, o->old_name}, {o->other_id, o->name}};
    char spot[CHECK_SPOT_MAX];
    size_t n = o->op == OP_MOVE || o->op == OP_COPY ? ARRAY_LEN(at) : 2;
    for (size_t i = 0; i < n; i++)
        if (at[i].folder[0] && at[i].name[0])
            fn(arg, o, check_spot(spot, at[i].folder, at[i].name));
}

static bool changes_item(const struct journal_op *o)
{
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        if (types[t].op == o->op)
            return journal_maybe(o);
    return false;
}

static void keep_spot(void *arg, const struct journal_op *o, const char *spot)
{
    struct map *others = arg;
    map_put(others, sv_of(spot), others);
    (void)o;
}

static void keep_folders(struct map *others, const struct journal_op *o)
{
    char spot[CHECK_SPOT_MAX];
    map_put(others, sv_of(check_spot(spot, o->parent_id, "")), others);
    if (o->op == OP_MOVE || o->op == OP_COPY)
        map_put(others, sv_of(check_spot(spot, o->other_id, "")), others);
}

/* What another run of the same server changed since this one began: ids, spots, and in which folders. */
static void take_run(const struct check_ctx *c, const char *dir, struct map *others)
{
    struct journal *j = NULL;
    struct errinfo ei;
    if (journal_read(dir, &j, &ei) != ERR_OK)
        return;
    const char *url = json_str(json_get(j->run, "url")), *ours = json_str(json_get(c->journal->run, "url"));
    for (size_t i = 0; url && ours && strcmp(url, ours) == 0 && i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if (o->wall_us < c->journal->ops[0].wall_us || !changes_item(o))
            continue;
        if (o->file_id[0])
            map_put(others, sv_of(o->file_id), others);
        each_spot(o, keep_spot, others);
        keep_folders(others, o);
    }
    journal_free(&j);
}

static void keep_if_met(void *arg, const struct journal_op *o, const char *spot)
{
    struct map *others = arg;
    if (o->file_id[0] && map_get(others, sv_of(spot)))
        map_put(others, sv_of(o->file_id), others);
}

/* Where ids are given by the program that meets an item, another run has others for the same ones: their spots tell. */
static void find_in_runs(const struct check_ctx *c, struct map *others)
{
    const struct journal *j = c->journal;
    char path[600];
    struct stat own, is;
    snprintf(path, sizeof(path), "%s/..", c->run_dir);
    DIR *d = j->n > 0 && stat(c->run_dir, &own) == 0 ? opendir(path) : NULL;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        int n = snprintf(path, sizeof(path), "%s/../%s/ledger.bin", c->run_dir, entry->d_name);
        if (n >= (int)sizeof(path) || stat(path, &is) != 0 || (int64_t)is.st_mtime < j->ops[0].wall_us / US_PER_S)
            continue;
        path[(size_t)n - strlen("/ledger.bin")] = '\0';
        if (stat(path, &is) == 0 && (is.st_ino != own.st_ino || is.st_dev != own.st_dev))
            take_run(c, path, others);
    }
    if (d)
        closedir(d);
    for (size_t i = 0; i < j->n; i++)
        if (changes_item(&j->ops[i]))
            each_spot(&j->ops[i], keep_if_met, others);
}

static MAY_YIELD struct map *find_others(struct check_ctx *c)
{
    struct map *others = map_new();
    if (c->pg)
        find_in_changes(c, others);
    else
        find_in_runs(c, others);
    return others;
}

char *check_spot(char dst[CHECK_SPOT_MAX], const char *folder, const char *name)
{
    snprintf(dst, CHECK_SPOT_MAX, "%s/%s", folder, name);
    return dst;
}

void check_note_blind(const struct check_ctx *c, struct check_result *r)
{
    if (r->wrong > 0 && c->offline && !c->pg)
        result_check_note(r, "without the database it is not known what others changed since that run, but for the runs"
                             " whose folders stand beside its own");
}

bool check_changed_by_others(struct check_ctx *c, const char *id)
{
    if (!c->others) {
        struct map *found = find_others(c);
        if (!c->others) /* nobody asked and found them meanwhile */
            c->others = found;
        else
            map_free(&found);
    }
    return map_get(c->others, sv_of(id)) != NULL;
}

char *check_others_text(char *dst, size_t n, uint64_t items)
{
    dst[0] = '\0';
    if (items > 0)
        str_format(dst, n, "; not judged, as somebody else changed them too: %s", COUNTED(items, "item"));
    return dst;
}
