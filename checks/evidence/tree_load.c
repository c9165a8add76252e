/* Why not SQL for the totals: a recursive query over 200,000 rows takes seconds and its memory is the server's; one
 * streamed pass is linear, and is independent of anything the server computes. */
#include "checks/evidence/tree.h"
#include "drive/schema.h"

#include <string.h>

static bool on_account(void *arg, const struct pg_result *r)
{
    struct tree *t = arg;
    struct tree_account *a = tree_add_account(t, pg_str(r, 0, 0), pg_str(r, 0, 1));
    a->used = pg_is_null(r, 0, 2) ? -1 : pg_i64(r, 0, 2);
    a->reserved = pg_is_null(r, 0, 3) ? -1 : pg_i64(r, 0, 3);
    return true;
}

static bool on_reservations(void *arg, const struct pg_result *r)
{
    struct tree *t = arg;
    uint32_t a = tree_find_account(t, pg_str(r, 0, 0));
    if (a != TREE_NONE)
        t->accounts[a].reservations = pg_i64(r, 0, 1);
    return true;
}

static bool on_file(void *arg, const struct pg_result *r)
{
    struct tree_row row = {.id = pg_str(r, 0, 0),
                           .name = pg_str(r, 0, 1),
                           .folder = strcmp(pg_str(r, 0, 2), "folder") == 0,
                           .size = pg_i64(r, 0, 3),
                           .parent_id = pg_str_or_null(r, 0, 4),
                           .path = pg_str_or_null(r, 0, 5),
                           .account = pg_str(r, 0, 6),
                           .trashed = !pg_is_null(r, 0, 7),
                           .version = pg_str_or_null(r, 0, 8),
                           .agg_size = pg_i64(r, 0, 9),
                           .agg_files = pg_i64(r, 0, 10),
                           .agg_folders = pg_i64(r, 0, 11)};
    tree_add(arg, &row);
    return true;
}

/* Whole texts, because statements are prepared by the address of their text (pg.h); what an older server lacks comes as
 * NULL through to_jsonb. */
static const char accounts_sql[] =
    "SELECT id, email, to_jsonb(u)->>'storage_used', to_jsonb(u)->>'storage_reserved' FROM users u"
    " WHERE to_jsonb(u)->>'parent_user_id' IS NULL ORDER BY id";
static const char reservations_sql[] = "SELECT user_id, sum(bytes) FROM storage_reservations GROUP BY user_id";
#define FILES(version, totals)                                                                                         \
    "SELECT id, name, type, size, parent_id, path, user_id, deleted_at, " version ", " totals                          \
    " FROM files ORDER BY user_id"
#define TOTALS "aggregate_size, aggregate_file_count, aggregate_folder_count"
static const char *files_sql(unsigned schema)
{
    static const char both[] = FILES("version", TOTALS), totals[] = FILES("NULL", TOTALS),
                      plain[] = FILES("NULL", "0, 0, 0");
    return !(schema & SCHEMA_AGGREGATES) ? plain : schema & SCHEMA_VERSION ? both : totals;
}

static MAY_YIELD enum err load_rows(struct pg *c, struct tree *t, struct errinfo *ei)
{
    enum err e = pg_each(c, accounts_sql, 0, NULL, on_account, t, ei);
    if (e == ERR_OK && (t->schema & SCHEMA_RESERVATIONS))
        e = pg_each(c, reservations_sql, 0, NULL, on_reservations, t, ei);
    if (e == ERR_OK)
        e = pg_each(c, files_sql(t->schema), 0, NULL, on_file, t, ei);
    return e;
}

enum err tree_load(struct pg_pool *pool, struct tree **out, struct errinfo *ei)
{
    struct tree *t = tree_new(0);
    struct pg *c = NULL;
    enum err e = pg_take(pool, &c, ei);
    if (e == ERR_OK)
        e = pg_script(c, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ei);
    if (e == ERR_OK)
        e = schema_probe(c, &t->schema, ei);
    if (e == ERR_OK)
        e = load_rows(c, t, ei);
    if (c)
        pg_give(&c);
    if (e != ERR_OK) {
        tree_free(&t);
        return e;
    }
    tree_link(t);
    *out = t;
    return ERR_OK;
}
