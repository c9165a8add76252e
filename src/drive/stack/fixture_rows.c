/* The doubtful decision: no pg_dump. Its archive is a program, run by whoever restores it, and no reader of ours could
 * tell a harmless one from another: a column's default, an index, a view, a type may each call what they like. Here the
 * tables come from the stack that is loaded into, and of the fixture only rows. */
#include "drive/stack/fixture_rows.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/stack/impl.h"
#include "store/pg_copy.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE (256u << 10)

/* Which migrations were applied is told by the tables that are there, so these rows stay with them. */
#define KEPT "~ '(migrations|schema_history|alembic_version|db_version)$'"
#define OURS(class)                                                                                                    \
    " n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' AND NOT EXISTS (SELECT FROM pg_depend e"               \
    " WHERE e.classid = 'pg_class'::regclass AND e.objid = " class ".oid AND e.deptype = 'e')"

static const char columns_sql[] =
    "SELECT n.nspname, c.relname, quote_ident(n.nspname), format('%I.%I', n.nspname, c.relname), "
    "quote_ident(a.attname),"
    " a.attname || ' ' || format_type(a.atttypid, a.atttypmod)"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND NOT c.relname " KEPT
    " AND" OURS("c") " ORDER BY n.nspname COLLATE \"C\", c.relname COLLATE \"C\", a.attnum";
static const char sequences_sql[] =
    "SELECT n.nspname, c.relname, format('%I.%I', n.nspname, c.relname)"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind = 'S' AND" OURS(
        "c") " AND NOT EXISTS (SELECT FROM pg_depend d"
             " JOIN pg_class t ON t.oid = d.refobjid WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid"
             " AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND t.relname " KEPT ")"
             " ORDER BY n.nspname COLLATE \"C\", c.relname COLLATE \"C\"";
static const char large_sql[] = "SELECT count(*) FROM pg_largeobject_metadata";
/* One way to write a value, whatever the two servers' settings. */
static const char plain_sql[] = "SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET timezone = 'UTC';"
                                "SET extra_float_digits = 3; SET bytea_output = 'hex'; SET xmloption = 'content';"
                                "SET statement_timeout = 0; SET lock_timeout = 0";

/* ---- what the catalog says ---- */

struct table { /* quoted: as statements take it */
    struct manifest_table is;
    const char *quoted_schema, *quoted, **quoted_columns;
};
struct catalog {
    struct table *tables;
    struct manifest_sequence *sequences;
    const char **quoted_sequences;
    size_t n_tables, n_sequences;
};

static bool begins_table(const struct pg_result *r, int i)
{
    return i == 0 || strcmp(pg_str(r, i, 3), pg_str(r, i - 1, 3)) != 0;
}

static void take_columns(struct catalog *k, struct arena *mem, const struct pg_result *r)
{
    int rows = pg_rows(r);
    k->tables = arena_alloc(mem, ((size_t)rows + 1) * sizeof *k->tables);
    for (int i = 0; i < rows; i++) {
        if (begins_table(r, i)) {
            int end = i + 1;
            while (end < rows && !begins_table(r, end))
                end++;
            size_t room = (size_t)(end - i + 1) * sizeof(char *);
            k->tables[k->n_tables++] = (struct table){.is = {.schema = arena_strdup(mem, pg_str(r, i, 0)),
                                                             .name = arena_strdup(mem, pg_str(r, i, 1)),
                                                             .columns = arena_alloc(mem, room)},
                                                      .quoted_schema = arena_strdup(mem, pg_str(r, i, 2)),
                                                      .quoted = arena_strdup(mem, pg_str(r, i, 3)),
                                                      .quoted_columns = arena_alloc(mem, room)};
        }
        struct table *t = &k->tables[k->n_tables - 1];
        t->quoted_columns[t->is.n_columns] = arena_strdup(mem, pg_str(r, i, 4));
        t->is.columns[t->is.n_columns++] = arena_strdup(mem, pg_str(r, i, 5));
    }
}

static void take_sequences(struct catalog *k, struct arena *mem, const struct pg_result *r)
{
    k->n_sequences = (size_t)pg_rows(r);
    k->sequences = arena_alloc(mem, (k->n_sequences + 1) * sizeof *k->sequences);
    k->quoted_sequences = arena_alloc(mem, (k->n_sequences + 1) * sizeof *k->quoted_sequences);
    for (int i = 0; i < pg_rows(r); i++) {
        k->sequences[i] = (struct manifest_sequence){.schema = arena_strdup(mem, pg_str(r, i, 0)),
                                                     .name = arena_strdup(mem, pg_str(r, i, 1))};
        k->quoted_sequences[i] = arena_strdup(mem, pg_str(r, i, 2));
    }
}

static MAY_YIELD enum err look_up(struct pg *c, struct arena *mem, struct catalog *k, struct errinfo *ei)
{
    struct pg_result *columns = NULL, *sequences = NULL;
    *k = (struct catalog){0};
    enum err err = pg_query(c, columns_sql, 0, NULL, &columns, ei);
    if (!err)
        err = pg_query(c, sequences_sql, 0, NULL, &sequences, ei);
    if (!err) {
        take_columns(k, mem, columns);
        take_sequences(k, mem, sequences);
    }
    pg_result_free(&columns);
    pg_result_free(&sequences);
    return err;
}

static const char *column_list(struct arena *mem, const struct table *t, const size_t *order)
{
    const char *list = "";
    for (size_t i = 0; i < t->is.n_columns; i++)
        list = arena_printf(mem, "%s%s%s", list, i ? ", " : "", t->quoted_columns[order ? order[i] : i]);
    return list;
}

/* ---- saving ---- */

struct writing {
    const struct stack *stack;
    const char *file;
    FILE *f;
    uint64_t bytes;
};

static enum err write_line(void *arg, struct sv line, struct errinfo *ei)
{
    struct writing *w = arg;
    if (w->stack->cancelled)
        return err_set(ei, ERR_INTERRUPTED, "interrupted");
    if (fwrite(line.p, 1, line.n, w->f) != line.n)
        return err_sys(ei, ERR_IO, "cannot write %s", w->file);
    w->bytes += line.n;
    return ERR_OK;
}

static MAY_YIELD enum err save_tables(struct pg *c, struct writing *w, const struct catalog *k, struct manifest *m,
                                      struct errinfo *ei)
{
    enum err err = ERR_OK;
    m->tables = arena_alloc(m->mem, (k->n_tables + 1) * sizeof *m->tables);
    for (; m->n_tables < k->n_tables && !err; m->n_tables++) {
        const struct table *t = &k->tables[m->n_tables];
        struct manifest_table *is = &m->tables[m->n_tables];
        *is = t->is;
        w->bytes = 0;
        err = pg_copy_out(c, arena_printf(m->mem, "COPY %s (%s) TO STDOUT", t->quoted, column_list(m->mem, t, NULL)),
                          write_line, w, &is->rows, ei);
        is->bytes = w->bytes;
    }
    return err;
}

static MAY_YIELD enum err save_sequences(struct pg *c, const struct catalog *k, struct manifest *m, struct errinfo *ei)
{
    enum err err = ERR_OK;
    m->sequences = k->sequences;
    for (; m->n_sequences < k->n_sequences && !err; m->n_sequences++) {
        struct pg_result *r = NULL;
        err = pg_query(
            c, arena_printf(m->mem, "SELECT last_value, is_called FROM %s", k->quoted_sequences[m->n_sequences]), 0,
            NULL, &r, ei);
        if (!err) {
            m->sequences[m->n_sequences].last = pg_i64(r, 0, 0);
            m->sequences[m->n_sequences].called = pg_bool(r, 0, 1);
        }
        pg_result_free(&r);
    }
    return err;
}

static MAY_YIELD enum err refuse_large_objects(struct pg *c, struct errinfo *ei)
{
    struct pg_result *r = NULL;
    enum err err = pg_query(c, large_sql, 0, NULL, &r, ei);
    if (!err && pg_i64(r, 0, 0) > 0)
        err = err_set(ei, ERR_ENV, "the database holds %s, which a fixture cannot",
                      COUNTED((uint64_t)pg_i64(r, 0, 0), "large object"));
    pg_result_free(&r);
    return err;
}

static MAY_YIELD enum err save_into(struct pg *c, struct writing *w, struct manifest *m, struct errinfo *ei)
{
    struct catalog k;
    enum err err = pg_script(c, plain_sql, ei);
    if (!err)
        err = pg_script(c, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", ei);
    if (!err)
        err = refuse_large_objects(c, ei);
    if (!err)
        err = look_up(c, m->mem, &k, ei);
    if (!err)
        err = save_tables(c, w, &k, m, ei);
    if (!err)
        err = save_sequences(c, &k, m, ei);
    return err ? err : pg_script(c, "COMMIT", ei);
}

enum err fixture_rows_save(struct pg *c, struct stack *s, const char *file, struct manifest *m, struct errinfo *ei)
{
    struct writing w = {.stack = s, .file = file};
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || !(w.f = fdopen(fd, "w"))) {
        enum err err = err_sys(ei, ERR_IO, "cannot write %s", file);
        if (fd >= 0)
            close(fd);
        return err;
    }
    m->mem = arena_new(64 << 10);
    enum err err = save_into(c, &w, m, ei);
    if (!err && (fflush(w.f) != 0 || fsync(fd) < 0))
        err = err_sys(ei, ERR_IO, "cannot write %s", file);
    struct errinfo why;
    enum err closed = file_close(&w.f, file, err ? &why : ei);
    return err ? err : closed;
}

/* ---- whether it fits ---- */

static const char *of_table(struct arena *mem, const struct manifest_table *t)
{
    return arena_printf(mem, "%s.%s", SHOWN(sv_of(t->schema)), SHOWN(sv_of(t->name)));
}

static enum err differs(const struct manifest *m, const char *what, const char *which, struct errinfo *ei)
{
    return err_set(ei, ERR_ENV,
                   "%s holds other tables than this stack's database (%s %s): load it into a stack whose server has the"
                   " same, or seed anew, and save",
                   m->info.name, what, which);
}

/* order[i]: where the fixture's column i stands in the catalog's table. Each of these is used once. */
static enum err match_columns(const struct manifest *m, const struct manifest_table *want, const struct table *t,
                              struct arena *mem, size_t *order, struct errinfo *ei)
{
    bool *used = arena_alloc(mem, t->is.n_columns * sizeof *used);
    for (size_t i = 0; i < want->n_columns; i++) {
        size_t at = 0;
        while (at < t->is.n_columns && (used[at] || strcmp(t->is.columns[at], want->columns[i]) != 0))
            at++;
        if (at == t->is.n_columns)
            return differs(m, "it has not",
                           arena_printf(mem, "column %s of %s", SHOWN(sv_of(want->columns[i])), of_table(mem, want)),
                           ei);
        used[at] = true;
        order[i] = at;
    }
    for (size_t at = 0; at < t->is.n_columns; at++)
        if (!used[at])
            return differs(m, "it also has",
                           arena_printf(mem, "column %s of %s", SHOWN(sv_of(t->is.columns[at])), of_table(mem, want)),
                           ei);
    return ERR_OK;
}

static enum err plan_tables(const struct catalog *k, struct arena *mem, const struct manifest *m, const char *role,
                            struct fixture_plan *out, struct errinfo *ei)
{
    bool *used = arena_alloc(mem, (k->n_tables + 1) * sizeof *used);
    out->names = arena_alloc(mem, (m->n_tables + 1) * sizeof *out->names);
    out->copies = arena_alloc(mem, (m->n_tables + 1) * sizeof *out->copies);
    out->grants = arena_alloc(mem, (m->n_tables + 1) * sizeof *out->grants);
    for (size_t i = 0; i < m->n_tables; i++) {
        const struct manifest_table *want = &m->tables[i];
        size_t at = 0;
        while (at < k->n_tables && (used[at] || strcmp(k->tables[at].is.name, want->name) != 0 ||
                                    strcmp(k->tables[at].is.schema, want->schema) != 0))
            at++;
        if (at == k->n_tables)
            return differs(m, "it has not", of_table(mem, want), ei);
        const struct table *t = &k->tables[at];
        size_t *order = arena_alloc(mem, want->n_columns * sizeof *order);
        enum err err = match_columns(m, want, t, mem, order, ei);
        if (err)
            return err;
        used[at] = true;
        out->names[i] = t->quoted;
        out->copies[i] = arena_printf(mem, "COPY %s (%s) FROM STDIN", t->quoted, column_list(mem, t, order));
        out->grants[i] = arena_printf(mem, "GRANT USAGE ON SCHEMA %s TO %s; GRANT INSERT ON %s TO %s", t->quoted_schema,
                                      role, t->quoted, role);
    }
    for (size_t at = 0; at < k->n_tables; at++)
        if (!used[at])
            return differs(m, "it also has", of_table(mem, &k->tables[at].is), ei);
    return ERR_OK;
}

/* Both are in the order of their names. */
static enum err plan_sequences(const struct catalog *k, struct arena *mem, const struct manifest *m,
                               struct fixture_plan *out, struct errinfo *ei)
{
    bool same = k->n_sequences == m->n_sequences;
    for (size_t i = 0; i < m->n_sequences && same; i++)
        same = strcmp(k->sequences[i].schema, m->sequences[i].schema) == 0 &&
               strcmp(k->sequences[i].name, m->sequences[i].name) == 0;
    out->sequences = k->quoted_sequences;
    return same ? ERR_OK : differs(m, "its sequences are others:", arena_printf(mem, "%zu", k->n_sequences), ei);
}

enum err fixture_rows_plan(struct pg *c, struct stack *s, const struct manifest *m, const char *role,
                           struct fixture_plan *out, struct errinfo *ei)
{
    struct catalog k;
    enum err err = look_up(c, s->mem, &k, ei);
    if (!err && k.n_tables == 0 && m->n_tables > 0)
        err = err_set(ei, ERR_ENV,
                      "the stack's database has no tables yet, and a fixture brings rows alone: start your server once,"
                      " so that it makes them, end it, and load again");
    if (!err)
        err = plan_tables(&k, s->mem, m, role, out, ei);
    return err ? err : plan_sequences(&k, s->mem, m, out, ei);
}

/* ---- loading ---- */

struct reading {
    const struct stack *stack;
    const char *file;
    FILE *f;
    uint64_t left; /* of the table's text */
    char piece[PIECE];
};

static enum err read_piece(void *arg, struct sv *piece, struct errinfo *ei)
{
    struct reading *r = arg;
    size_t want = r->left < sizeof r->piece ? (size_t)r->left : sizeof r->piece;
    *piece = (struct sv){r->piece, want};
    if (r->stack->cancelled)
        return err_set(ei, ERR_INTERRUPTED, "interrupted");
    if (want && fread(r->piece, 1, want, r->f) != want)
        return err_set(ei, ERR_ENV, "%s ends too early", r->file);
    r->left -= want;
    return ERR_OK;
}

static MAY_YIELD enum err load_table(struct pg *c, struct reading *r, const struct manifest *m, size_t i,
                                     const char *copy, struct errinfo *ei)
{
    const struct manifest_table *t = &m->tables[i];
    struct errinfo why = {0};
    uint64_t rows = 0;
    r->left = t->bytes;
    enum err err = pg_copy_in(c, copy, read_piece, r, &rows, &why);
    if (!err && rows != t->rows)
        err = err_set(&why, ERR_DB, "it has %s, not %llu", COUNTED(rows, "row"), (unsigned long long)t->rows);
    if (err == ERR_DB)
        return err_set(ei, ERR_ENV, "the fixture %s is damaged: table %s: %s", m->info.name, SHOWN(sv_of(t->name)),
                       SHOWN(sv_of(err_message(&why))));
    return err ? err_set(ei, err, "%s", err_message(&why)) : ERR_OK;
}

static MAY_YIELD enum err load_all(struct pg *c, struct reading *r, const struct manifest *m,
                                   const struct fixture_plan *plan, struct errinfo *ei)
{
    enum err err = pg_script(c, plain_sql, ei);
    if (!err)
        err = pg_script(c, "BEGIN", ei);
    for (size_t i = 0; i < m->n_tables && !err; i++)
        err = load_table(c, r, m, i, plan->copies[i], ei);
    return err ? err : pg_script(c, "COMMIT", ei);
}

enum err fixture_rows_load(struct pg *c, const struct stack *s, const char *file, const struct manifest *m,
                           const struct fixture_plan *plan, struct errinfo *ei)
{
    struct reading *r = mem_zalloc(sizeof *r);
    r->stack = s;
    r->file = file;
    enum err err = file_open(file, &r->f, ERR_ENV, ei);
    if (!err)
        err = load_all(c, r, m, plan, ei);
    if (r->f)
        fclose(r->f);
    mem_free(r);
    return err;
}

enum err fixture_rows_count_on(struct pg *c, const struct manifest *m, const struct fixture_plan *plan,
                               struct errinfo *ei)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < m->n_sequences && !err; i++) {
        char last[24];
        const char *params[] = {plan->sequences[i], last, m->sequences[i].called ? "t" : "f"};
        str_format(last, sizeof last, "%lld", (long long)m->sequences[i].last);
        err = pg_query(c, "SELECT setval($1::regclass, $2::bigint, $3::boolean)", 3, params, NULL, ei);
    }
    return err == ERR_DB
               ? err_set(ei, ERR_ENV, "the fixture %s is damaged: a sequence is out of its range", m->info.name)
               : err;
}
