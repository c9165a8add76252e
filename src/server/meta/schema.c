/* The database's schema: the files of sql/ ride in the binary. All of it happens in one transaction, so that a program
 * that dies halfway, or a second one that starts at the same moment, never sees half a schema. */
#include "base/digest.h"
#include "base/embed.h"
#include "base/log.h"
#include "server/meta/meta.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_FROM 500 /* files from this number on hold functions: applied again when any text changed */

static const char lock_sql[] =
    "BEGIN;"
    "SELECT pg_advisory_xact_lock(727469);"
    "CREATE TABLE IF NOT EXISTS schema_migrations (number integer PRIMARY KEY, name text NOT NULL,"
    " digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";
static const char state_sql[] =
    "SELECT coalesce(max(number), 0), current_setting('server_encoding'), to_regclass('files') IS NOT NULL"
    " FROM schema_migrations";
static const char known_sql[] = "SELECT digest FROM schema_migrations WHERE number = $1";
static const char note_sql[] = "INSERT INTO schema_migrations (number, name, digest) VALUES ($1, $2, $3)"
                               " ON CONFLICT (number) DO UPDATE SET digest = excluded.digest, applied_at = now()";

struct text_digest {
    char hex[2 * DIGEST_SHA256_LEN + 1];
};

static struct text_digest digest_of(const struct embed_file *f, const struct embed_file *end)
{
    unsigned char sum[DIGEST_SHA256_LEN];
    struct text_digest out;
    struct digest *d = digest_new();
    for (; f < end; f++)
        digest_update(d, f->data, f->size);
    digest_final(d, sum);
    digest_free(&d);
    digest_hex(out.hex, sum, sizeof sum);
    return out;
}

/* The digest noted for a number; "" when it was never applied. */
static MAY_YIELD enum err noted(struct pg *c, int number, struct text_digest *out, struct errinfo *ei)
{
    char text[16];
    const char *params[] = {text};
    struct pg_result *res = NULL;
    snprintf(text, sizeof text, "%d", number);
    enum err err = pg_query(c, known_sql, 1, params, &res, ei);
    if (err)
        return err;
    snprintf(out->hex, sizeof out->hex, "%s", pg_rows(res) ? pg_str(res, 0, 0) : "");
    pg_result_free(&res);
    return ERR_OK;
}

/* "01_tables.sql" is step 1. */
static int step_of(const struct embed_file *f)
{
    int64_t n = 0;
    (void)sv_to_i64((struct sv){f->name, strspn(f->name, "0123456789")}, &n);
    return (int)n;
}

/* Runs the files and notes them as one step. */
static MAY_YIELD enum err run_files(struct pg *c, const struct embed_file *f, const struct embed_file *end,
                                    const struct text_digest *digest, struct errinfo *ei)
{
    char number[16];
    const char *params[] = {number, f->name, digest->hex};
    int step = step_of(f);
    snprintf(number, sizeof number, "%d", step);
    for (; f < end; f++) {
        struct errinfo why;
        enum err err = pg_script(c, f->data, &why);
        if (err)
            return err_set(ei, err, "schema file %s: %s", f->name, err_message(&why));
    }
    LOGI("meta", "schema: %s applied", step < FUNCTIONS_FROM ? params[1] : "functions");
    return pg_query(c, note_sql, 3, params, NULL, ei);
}

/* Is this a database that we may bring up to date? */
static MAY_YIELD enum err judge(struct pg *c, int newest, struct errinfo *ei)
{
    struct pg_result *res = NULL;
    enum err err = pg_query(c, state_sql, 0, NULL, &res, ei);
    if (err)
        return err;
    int64_t applied = pg_i64(res, 0, 0);
    if (strcmp(pg_str(res, 0, 1), "UTF8") != 0)
        err = err_set(ei, ERR_ENV, "the database's encoding is %s; make one with UTF8", pg_str(res, 0, 1));
    else if (applied > newest)
        err = err_set(ei, ERR_ENV, "the database was made by a newer program (its schema has step %d, this one %d)",
                      (int)applied, newest);
    else if (applied == 0 && pg_bool(res, 0, 2))
        err = err_set(ei, ERR_ENV, "the database holds another program's tables; give this one an empty database");
    pg_result_free(&res);
    return err;
}

static MAY_YIELD enum err apply_all(struct pg *c, struct errinfo *ei)
{
    const struct embed_file *f = embed_server, *end = f;
    struct text_digest was, is;
    while (end->name)
        end++;
    enum err err = judge(c, FUNCTIONS_FROM, ei);
    for (; !err && f < end && step_of(f) < FUNCTIONS_FROM; f++) {
        err = noted(c, step_of(f), &was, ei);
        is = digest_of(f, f + 1);
        if (!err && !was.hex[0])
            err = run_files(c, f, f + 1, &is, ei);
        else if (!err && strcmp(was.hex, is.hex) != 0)
            err = err_set(ei, ERR_ENV, "the database was made with another %s; give this program an empty database",
                          f->name);
    }
    if (!err)
        err = noted(c, FUNCTIONS_FROM, &was, ei);
    if (err)
        return err;
    is = digest_of(f, end);
    return strcmp(was.hex, is.hex) == 0 ? ERR_OK : run_files(c, f, end, &is, ei);
}

enum err meta_schema_apply(struct pg_pool *pool, struct errinfo *ei)
{
    struct pg *c = NULL;
    enum err err = pg_take(pool, &c, ei);
    if (err)
        return err;
    err = pg_script(c, lock_sql, ei);
    if (!err)
        err = apply_all(c, ei);
    if (!err)
        err = pg_script(c, "COMMIT", ei);
    pg_give(&c); /* rolls back after a failure */
    return err;
}
