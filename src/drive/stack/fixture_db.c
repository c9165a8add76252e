/* The doubtful decision: neither a copy of the cluster's files nor CREATE DATABASE … TEMPLATE. The first would belong
 * to one version, machine and account, the second to one cluster that `stack down` deletes. The tables are those of the
 * stack's own database, made anew by pg_dump and pg_restore, and a role that may insert and do nothing else fills them:
 * whatever a fixture holds, there is nothing for it to run, and nobody who could. */
#include "drive/stack/fixture_db.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/limits.h"
#include "drive/stack/env.h"
#include "drive/stack/fixture_rows.h"
#include "drive/stack/impl.h"
#include "store/pg.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOL_LIMIT_US  (3600 * US_PER_S)
#define ALONE_LIMIT_US (5 * US_PER_S)
#define LOOK_EVERY_US  (20 * US_PER_MS)
#define NEXT           STACK_DATABASE "_next"
#define BEFORE         STACK_DATABASE "_before"
#define FILLER         "drivesim_fixture" /* the role */

/* Runs fn on a connection to one of the cluster's databases. */
struct ask {
    MAY_YIELD enum err (*fn)(struct pg *c, void *arg, struct errinfo *ei);
    void *arg;
};

static MAY_YIELD enum err with_url(struct stack *s, const char *url, struct ask ask, struct errinfo *ei)
{
    struct pg_pool *pool = NULL;
    struct pg *c = NULL;
    enum err err = pg_pool_new(&pool, s->loop, url, 1, ei);
    if (!err)
        err = pg_take(pool, &c, ei);
    if (!err)
        err = ask.fn(c, ask.arg, ei);
    if (c)
        pg_give(&c);
    pg_pool_free(&pool);
    return err;
}

static MAY_YIELD enum err with_database(struct stack *s, const char *database, struct ask ask, struct errinfo *ei)
{
    return with_url(s, stack_database_url(s, s->mem, database), ask, ei);
}

static MAY_YIELD enum err run_script(struct pg *c, void *arg, struct errinfo *ei)
{
    enum err err = ERR_OK;
    for (const char *const *text = arg; *text && !err; text++)
        err = pg_script(c, *text, ei);
    return err;
}

/* Each a statement, or a transaction, of its own; NULL-terminated. */
static MAY_YIELD enum err run_all(struct stack *s, const char *database, const char *const *texts, struct errinfo *ei)
{
    void *arg = NULL;
    memcpy(&arg, &texts, sizeof arg); /* only read */
    return with_database(s, database, (struct ask){run_script, arg}, ei);
}

/* ---- looking ---- */

static const char counts_sql[] =
    "SELECT count(*) FILTER (WHERE type = 'folder'), count(*) FILTER (WHERE type = 'file'),"
    " coalesce(sum(size) FILTER (WHERE type = 'file'), 0)::bigint FROM files";
static const char schema_sql[] =
    "SELECT encode(sha256(convert_to(coalesce(string_agg(line, E'\\n' ORDER BY line COLLATE \"C\"), ''), 'UTF8')), "
    "'hex'),"
    " current_setting('server_version_num')::bigint / 10000, to_regclass('files') IS NOT NULL,"
    " to_regclass('users') IS NOT NULL"
    " FROM (SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable) AS line"
    "       FROM information_schema.columns WHERE table_schema = 'public'"
    "       UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public') lines";
static const char bucket_sql[] =
    "SELECT storage_config->>'endpoint', storage_config->>'bucket' FROM app_settings WHERE storage_config IS NOT NULL";
static const char others_sql[] = "SELECT count(*) FROM users WHERE lower(email) NOT LIKE '%" DRIVE_EMAIL_DOMAIN "'";

struct look {
    struct manifest *m;
    int64_t *others;
};

static MAY_YIELD enum err look_at_counts(struct pg *c, struct manifest *m, struct errinfo *ei)
{
    struct pg_result *r = NULL;
    enum err err = pg_query(c, counts_sql, 0, NULL, &r, ei);
    if (!err) {
        m->info.folders = (uint64_t)pg_i64(r, 0, 0);
        m->info.files = (uint64_t)pg_i64(r, 0, 1);
        m->info.bytes = (uint64_t)pg_i64(r, 0, 2);
    }
    pg_result_free(&r);
    return err;
}

static MAY_YIELD enum err look_at(struct pg *c, void *arg, struct errinfo *ei)
{
    struct look *l = arg;
    struct pg_result *r = NULL, *users = NULL;
    enum err err = pg_query(c, schema_sql, 0, NULL, &r, ei);
    if (err)
        return err;
    str_format(l->m->schema, sizeof l->m->schema, "%s", pg_str(r, 0, 0));
    l->m->postgres = pg_i64(r, 0, 1);
    if (pg_bool(r, 0, 2))
        err = look_at_counts(c, l->m, ei);
    if (!err && pg_bool(r, 0, 3))
        err = pg_query(c, others_sql, 0, NULL, &users, ei);
    *l->others = users ? pg_i64(users, 0, 0) : 0;
    pg_result_free(&users);
    pg_result_free(&r);
    return err;
}

enum err fixture_db_look(struct stack *s, struct manifest *m, int64_t *others, struct errinfo *ei)
{
    struct look l = {m, others};
    return with_database(s, STACK_DATABASE, (struct ask){look_at, &l}, ei);
}

static MAY_YIELD enum err judge_bucket(struct pg *c, void *arg, struct errinfo *ei)
{
    struct stack *s = arg;
    struct pg_result *r = NULL;
    enum err err = pg_query(c, bucket_sql, 0, NULL, &r, ei);
    if (!err && pg_rows(r) &&
        (strcmp(pg_str(r, 0, 0), stack_blob_conf(s, s->mem).endpoint) != 0 ||
         strcmp(pg_str(r, 0, 1), STACK_BUCKET) != 0))
        err =
            err_set(ei, ERR_ENV,
                    "the server keeps its files in bucket %s at %s, which is not the stack's: a fixture cannot hold it",
                    SHOWN(sv_of(pg_str(r, 0, 1))), SHOWN(sv_of(pg_str(r, 0, 0))));
    pg_result_free(&r);
    return err;
}

enum err fixture_db_judge_bucket(struct stack *s, struct errinfo *ei)
{
    return with_database(s, STACK_DATABASE, (struct ask){judge_bucket, s}, ei);
}

/* ---- alone ---- */

struct company {
    int64_t n;
    char name[80];
};

static MAY_YIELD enum err see_company(struct pg *c, void *arg, struct errinfo *ei)
{
    static const char sql[] = "SELECT count(*), min(coalesce(nullif(application_name, ''), client_addr::text || ':' ||"
                              " client_port)) FROM pg_stat_activity WHERE datname = '" STACK_DATABASE
                              "' AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    struct company *others = arg;
    struct pg_result *r = NULL;
    enum err err = pg_query(c, sql, 0, NULL, &r, ei);
    if (!err) {
        others->n = pg_i64(r, 0, 0);
        str_shown(others->name, sizeof others->name, sv_of(pg_str(r, 0, 1)));
    }
    pg_result_free(&r);
    return err;
}

enum err fixture_db_await_alone(struct stack *s, struct errinfo *ei)
{
    struct mono until = mono_add(mono_now(), ALONE_LIMIT_US);
    for (;;) {
        struct company others = {0};
        enum err err = with_database(s, "postgres", (struct ask){see_company, &others}, ei);
        if (err || others.n == 0)
            return err;
        if (s->cancelled)
            return err_set(ei, ERR_INTERRUPTED, "interrupted");
        if (mono_passed(until))
            return err_set(ei, ERR_ENV, "%s to the stack's database (%s): end that program first",
                           COUNTED((uint64_t)others.n, "other connection"), others.name);
        coro_sleep_until(s->loop, mono_add(mono_now(), LOOK_EVERY_US));
    }
}

/* ---- dump and restore ---- */

/* Of the server that runs, so that the two understand each other; else the first that is installed. */
static const char *find_tool(struct stack *s, const char *name)
{
    const struct part *p = &s->parts[PART_POSTGRES];
    const char *slash = p->exe ? strrchr(p->exe, '/') : NULL;
    char path[4096];
    if (slash) {
        const char *beside =
            arena_printf(s->mem, SV_FMT "/%s", SV_ARG(((struct sv){p->exe, (size_t)(slash - p->exe)})), name);
        if (access(beside, X_OK) == 0)
            return beside;
    }
    return proc_which(name, p->ops->folders(s->mem), path, sizeof path) ? arena_strdup(s->mem, path) : NULL;
}

/* A tool tells why in the log alone; what it says of a full disk is said here. */
static enum err blame(const struct part *p, const char *name, int status, struct errinfo *ei)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f) {
        stack_tail(f, p->log, 3);
        fclose(f);
    }
    enum err err = text && strstr(text, strerror(ENOSPC))
                       ? err_set(ei, ERR_FULL, "%s: %s", name, strerror(ENOSPC))
                       : err_set(ei, ERR_ENV, "%s failed with status %d: %s", name, status,
                                 SHOWN(sv_trim(sv_of(text ? text : "its log cannot be read"))));
    free(text);
    return err;
}

/* args: those of the tool, NULL-terminated; how to get to the database is added, by its address, so that no variable of
 * libpq leads elsewhere. The password goes by the environment: everybody can read a command line. */
static MAY_YIELD enum err run_tool(struct stack *s, const char *name, const char *database, const char *const *args,
                                   struct errinfo *ei)
{
    struct part *p = &s->parts[PART_POSTGRES];
    const char *const to[] = {find_tool(s, name), "--no-password",
                              arena_printf(s->mem, "--dbname=hostaddr=127.0.0.1 port=%d user=%s dbname=%s", p->port,
                                           STACK_DB_USER, database)};
    const char *const env[] = {arena_printf(s->mem, "PGPASSWORD=%s", s->password), "PGOPTIONS=", "LC_MESSAGES=C", NULL};
    size_t n = 0;
    int status = 0;
    if (!to[0])
        return err_set(ei, ERR_ENV, "%s is not installed: it comes with PostgreSQL's client programs", name);
    while (args[n])
        n++;
    const char **argv = arena_alloc(s->mem, (ARRAY_LEN(to) + n + 1) * sizeof *argv);
    memcpy(argv, to, sizeof to);
    memcpy(argv + ARRAY_LEN(to), args, n * sizeof *args);
    struct proc_spec spec = {.argv = argv, .env = env, .cwd = s->home, .log = p->log, .dies_with_us = true};
    enum err err = proc_run(s->loop, &spec, mono_add(mono_now(), TOOL_LIMIT_US), &s->tools[PART_POSTGRES], &status, ei);
    if (!err && s->cancelled)
        err = err_set(ei, ERR_INTERRUPTED, "interrupted");
    return err || status == 0 ? err : blame(p, name, status, ei);
}

/* ---- saving ---- */

struct saving {
    struct stack *stack;
    const char *file;
    struct manifest *m;
};

static MAY_YIELD enum err save_rows(struct pg *c, void *arg, struct errinfo *ei)
{
    struct saving *v = arg;
    return fixture_rows_save(c, v->stack, v->file, v->m, ei);
}

enum err fixture_db_save(struct stack *s, const char *file, struct manifest *m, struct errinfo *ei)
{
    struct saving v = {s, file, m};
    return with_database(s, STACK_DATABASE, (struct ask){save_rows, &v}, ei);
}

/* ---- loading ---- */

struct filling {
    struct stack *stack;
    const char *file, *tables; /* tables: pg_dump's archive of the stack's own */
    const struct manifest *m;
    struct fixture_plan plan;
};

enum err fixture_db_clear(struct stack *s, struct errinfo *ei)
{
    static const char *const texts[] = {"DROP DATABASE IF EXISTS " NEXT " WITH (FORCE)",
                                        "DROP DATABASE IF EXISTS " BEFORE " WITH (FORCE)",
                                        "DROP ROLE IF EXISTS " FILLER, NULL};
    return run_all(s, "postgres", texts, ei);
}

static MAY_YIELD enum err plan(struct pg *c, void *arg, struct errinfo *ei)
{
    struct filling *f = arg;
    return fixture_rows_plan(c, f->stack, f->m, FILLER, &f->plan, ei);
}

enum err fixture_db_judge_tables(struct stack *s, const struct manifest *m, struct errinfo *ei)
{
    struct filling f = {.stack = s, .m = m};
    return with_database(s, STACK_DATABASE, (struct ask){plan, &f}, ei);
}

/* The stack's own database without what the fixture brings. */
static MAY_YIELD enum err dump_tables(const struct filling *f, struct errinfo *ei)
{
    struct stack *s = f->stack;
    const char *const first[] = {"--format=custom", "--no-owner", "--no-privileges", "--no-blobs",
                                 arena_printf(s->mem, "--file=%s", f->tables)};
    size_t n = ARRAY_LEN(first);
    const char **args = arena_alloc(s->mem, (n + f->m->n_tables + 1) * sizeof *args);
    memcpy(args, first, sizeof first);
    for (size_t i = 0; i < f->m->n_tables; i++)
        args[n++] = arena_printf(s->mem, "--exclude-table-data=%s", f->plan.names[i]);
    return run_tool(s, "pg_dump", STACK_DATABASE, args, ei);
}

/* Keys, indexes, triggers and what else acts on rows come after the rows. */
static MAY_YIELD enum err restore_tables(const struct filling *f, bool after, struct errinfo *ei)
{
    const char *const args[] = {after ? "--section=post-data" : "--section=pre-data",
                                after ? "--jobs=2" : "--section=data",
                                "--no-owner",
                                "--no-privileges",
                                "--exit-on-error",
                                f->tables,
                                NULL};
    return run_tool(f->stack, "pg_restore", NEXT, args, ei);
}

static MAY_YIELD enum err fill_tables(struct pg *c, void *arg, struct errinfo *ei)
{
    const struct filling *f = arg;
    return fixture_rows_load(c, f->stack, f->file, f->m, &f->plan, ei);
}

/* As a role of its own that signs in: one that was merely changed to could change back. */
static MAY_YIELD enum err fill(struct filling *f, struct errinfo *ei)
{
    static const char *const forget[] = {"DROP OWNED BY " FILLER "; DROP ROLE " FILLER, NULL};
    struct stack *s = f->stack;
    unsigned char raw[16];
    char password[2 * sizeof raw + 1];
    digest_random(raw, sizeof raw);
    digest_hex(password, raw, sizeof raw);
    const char *const make[] = {"SET log_min_error_statement = 'panic'", /* the next one is never told */
                                arena_printf(s->mem,
                                             "CREATE ROLE " FILLER
                                             " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT"
                                             " NOREPLICATION NOBYPASSRLS PASSWORD '%s'",
                                             password),
                                NULL};
    enum err err = run_all(s, NEXT, make, ei);
    if (!err)
        err = run_all(s, NEXT, f->plan.grants, ei);
    if (!err)
        err = with_url(s, stack_database_url_as(s, s->mem, FILLER, password, NEXT), (struct ask){fill_tables, f}, ei);
    return err ? err : run_all(s, NEXT, forget, ei);
}

static MAY_YIELD enum err count_on(struct pg *c, void *arg, struct errinfo *ei)
{
    const struct filling *f = arg;
    return fixture_rows_count_on(c, f->m, &f->plan, ei);
}

/* What the reference server's tables say of the stack that they were in. */
static MAY_YIELD enum err adopt(struct stack *s, struct errinfo *ei)
{
    const char *const texts[] = {
        arena_printf(s->mem,
                     "UPDATE app_settings SET epoch = drive_new_id(), storage_config = storage_config ||"
                     " jsonb_build_object('provider', 's3', 'endpoint', '%s'::text, 'region', 'us-east-1',"
                     " 'bucket', '" STACK_BUCKET "', 'forcePathStyle', true);"
                     "DELETE FROM servers",
                     stack_blob_conf(s, s->mem).endpoint),
        NULL};
    return run_all(s, NEXT, texts, ei);
}

static MAY_YIELD enum err make_next(struct filling *f, struct errinfo *ei)
{
    /* Nothing is waited for on the way: the swap's commit brings all before it to the disk. */
    static const char *const make[] = {"CREATE DATABASE " NEXT " TEMPLATE template0",
                                       "ALTER DATABASE " NEXT " SET synchronous_commit = off", NULL};
    static const char *const settle[] = {"ALTER DATABASE " NEXT " RESET synchronous_commit", "VACUUM (ANALYZE)",
                                         NULL}; /* statistics are fresh: all plan alike */
    struct stack *s = f->stack;
    enum err err = fixture_db_clear(s, ei);
    if (!err)
        err = run_all(s, "postgres", make, ei);
    if (!err)
        err = with_database(s, STACK_DATABASE, (struct ask){plan, f}, ei);
    if (!err)
        err = dump_tables(f, ei);
    if (!err)
        err = restore_tables(f, false, ei);
    if (!err)
        err = fill(f, ei);
    if (!err)
        err = restore_tables(f, true, ei);
    if (!err)
        err = with_database(s, NEXT, (struct ask){count_on, f}, ei);
    if (!err && f->m->own_server)
        err = adopt(s, ei);
    return err ? err : run_all(s, NEXT, settle, ei);
}

enum err fixture_db_restore(struct stack *s, const char *file, const struct manifest *m, struct errinfo *ei)
{
    struct filling f = {
        .stack = s, .file = file, .m = m, .tables = arena_printf(s->mem, "%s/" STACK_TABLES_FILE, s->home)};
    enum err err = make_next(&f, ei);
    if (unlink(f.tables) < 0 && errno != ENOENT)
        LOGW("stack", "cannot remove %s: %s", f.tables, strerror(errno));
    return err;
}

enum err fixture_db_swap(struct stack *s, struct errinfo *ei)
{
    static const char *const texts[] = {"BEGIN; ALTER DATABASE " STACK_DATABASE " RENAME TO " BEFORE
                                        "; ALTER DATABASE " NEXT " RENAME TO " STACK_DATABASE "; COMMIT",
                                        NULL};
    return run_all(s, "postgres", texts, ei);
}
