#include "drive/stack/manifest.h"
#include "base/file.h"
#include "base/secret.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FORMAT 2

void manifest_done(struct manifest *m)
{
    arena_free(&m->mem);
    m->tables = NULL;
    m->sequences = NULL;
    m->n_tables = m->n_sequences = 0;
}

void manifest_part(struct fixture_part *p, const struct pack_sum *sum)
{
    p->size = sum->size;
    digest_hex(p->sha256, sum->sha256, sizeof sum->sha256);
}

static void write_part(struct jsonw *w, const char *key, const struct fixture_part *p)
{
    jsonw_object(w, key);
    jsonw_i64(w, "size", (int64_t)p->size);
    jsonw_str(w, "sha256", p->sha256);
    jsonw_end_object(w);
}

static void write_table(struct jsonw *w, const struct manifest_table *t)
{
    jsonw_object(w, NULL);
    jsonw_str(w, "schema", t->schema);
    jsonw_str(w, "name", t->name);
    jsonw_i64(w, "rows", (int64_t)t->rows);
    jsonw_i64(w, "bytes", (int64_t)t->bytes);
    jsonw_array(w, "columns");
    for (size_t i = 0; i < t->n_columns; i++)
        jsonw_str(w, NULL, t->columns[i]);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

/* The value as text: a number of JSON has 53 bits. */
static void write_sequence(struct jsonw *w, const struct manifest_sequence *q)
{
    char last[24];
    str_format(last, sizeof last, "%lld", (long long)q->last);
    jsonw_object(w, NULL);
    jsonw_str(w, "schema", q->schema);
    jsonw_str(w, "name", q->name);
    jsonw_str(w, "last", last);
    jsonw_bool(w, "called", q->called);
    jsonw_end_object(w);
}

static void write_rows(struct jsonw *w, const struct manifest *m)
{
    jsonw_array(w, "tables");
    for (size_t i = 0; i < m->n_tables; i++)
        write_table(w, &m->tables[i]);
    jsonw_end_array(w);
    jsonw_array(w, "sequences");
    for (size_t i = 0; i < m->n_sequences; i++)
        write_sequence(w, &m->sequences[i]);
    jsonw_end_array(w);
}

enum err manifest_text(const struct manifest *m, struct buf *out)
{
    const struct fixture_info *f = &m->info;
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "drivesim_fixture", FORMAT);
    jsonw_str(&w, "version", f->version);
    jsonw_str(&w, "made", f->made);
    jsonw_i64(&w, "folders", (int64_t)f->folders);
    jsonw_i64(&w, "files", (int64_t)f->files);
    jsonw_i64(&w, "bytes", (int64_t)f->bytes);
    jsonw_i64(&w, "objects_stored", (int64_t)f->objects);
    if (f->is_seeded)
        stack_seeded_write(&f->seeded, &w, "seeded");
    jsonw_i64(&w, "postgres", m->postgres);
    jsonw_bool(&w, "own_server", m->own_server);
    jsonw_str(&w, "schema_sha256", m->schema);
    jsonw_str(&w, "file_key", m->file_key);
    jsonw_str(&w, "s3_secret", m->s3_secret);
    write_part(&w, "database", &m->database);
    write_part(&w, "objects", &m->objects);
    jsonw_i64(&w, "entries", (int64_t)m->entries);
    write_rows(&w, m);
    jsonw_end_object(&w);
    return w.err ? w.err : buf_append_char(out, '\n');
}

/* ---- reading: every field, of the form that it was written in ---- */

static bool number(const struct json *o, const char *key, uint64_t *out)
{
    int64_t n;
    if (!json_i64(json_get(o, key), &n) || n < 0)
        return false;
    *out = (uint64_t)n;
    return true;
}

static bool text(const struct json *o, const char *key, char *dst, size_t n)
{
    const char *s = json_str(json_get(o, key));
    return s && str_fit(dst, n, s);
}

/* What is shown to people: nothing that a terminal would obey. */
static bool word(const struct json *o, const char *key, char *dst, size_t n)
{
    char shown[4 * SHOWN_LEN];
    return text(o, key, dst, n) && strcmp(str_shown(shown, sizeof shown, sv_of(dst)), dst) == 0;
}

static bool hex(const struct json *o, const char *key, char *dst, size_t digits)
{
    return text(o, key, dst, digits + 1) && strlen(dst) == digits && strspn(dst, "0123456789abcdef") == digits;
}

static bool part(const struct json *o, struct fixture_part *p)
{
    return number(o, "size", &p->size) && hex(o, "sha256", p->sha256, sizeof p->sha256 - 1);
}

static bool array(const struct json *o, const char *key, size_t *n, const struct json **first)
{
    const struct json *a = json_get(o, key);
    *n = json_count(a);
    *first = json_first(a);
    return json_is_array(a);
}

static bool read_table(struct manifest *m, const struct json *o, struct manifest_table *t)
{
    const struct json *column;
    if (!json_is_object(o) || !array(o, "columns", &t->n_columns, &column) || t->n_columns == 0)
        return false;
    t->columns = arena_alloc(m->mem, t->n_columns * sizeof *t->columns);
    for (size_t i = 0; i < t->n_columns; i++, column = json_next(column))
        if (!(t->columns[i] = arena_strdup(m->mem, json_str(column))))
            return false;
    t->schema = arena_strdup(m->mem, json_str(json_get(o, "schema")));
    t->name = arena_strdup(m->mem, json_str(json_get(o, "name")));
    return t->schema && t->name && number(o, "rows", &t->rows) && number(o, "bytes", &t->bytes);
}

static bool read_sequence(struct manifest *m, const struct json *o, struct manifest_sequence *q)
{
    const struct json *called = json_get(o, "called");
    q->schema = arena_strdup(m->mem, json_str(json_get(o, "schema")));
    q->name = arena_strdup(m->mem, json_str(json_get(o, "name")));
    q->called = json_bool(called, false);
    return q->schema && q->name && json_is_bool(called) && json_i64(json_get(o, "last"), &q->last);
}

/* The tables' texts fill the file, no more and no less. */
static bool read_rows(struct manifest *m, const struct json *o)
{
    const struct json *table, *sequence;
    uint64_t left = m->database.size;
    if (!array(o, "tables", &m->n_tables, &table) || !array(o, "sequences", &m->n_sequences, &sequence))
        return false;
    m->mem = arena_new(16 << 10);
    m->tables = arena_alloc(m->mem, (m->n_tables + 1) * sizeof *m->tables);
    m->sequences = arena_alloc(m->mem, (m->n_sequences + 1) * sizeof *m->sequences);
    bool fine = true;
    for (size_t i = 0; i < m->n_tables && fine; i++, table = json_next(table)) {
        fine = read_table(m, table, &m->tables[i]) && m->tables[i].bytes <= left;
        left -= fine ? m->tables[i].bytes : 0;
    }
    for (size_t i = 0; i < m->n_sequences && fine; i++, sequence = json_next(sequence))
        fine = read_sequence(m, sequence, &m->sequences[i]);
    return fine && left == 0;
}

static bool read_all(struct manifest *m, const struct json *o)
{
    struct fixture_info *f = &m->info;
    uint64_t postgres = 0;
    const struct json *seeded = json_get(o, "seeded"), *own = json_get(o, "own_server");
    f->is_seeded = seeded && stack_seeded_read(seeded, &f->seeded);
    m->own_server = json_bool(own, false);
    bool fine = number(o, "postgres", &postgres) && postgres < 1000 && json_is_bool(own) &&
                hex(o, "schema_sha256", m->schema, sizeof m->schema - 1) &&
                hex(o, "file_key", m->file_key, sizeof m->file_key - 1) &&
                hex(o, "s3_secret", m->s3_secret, sizeof m->s3_secret - 1) &&
                part(json_get(o, "database"), &m->database) && part(json_get(o, "objects"), &m->objects) &&
                word(o, "version", f->version, sizeof f->version) && word(o, "made", f->made, sizeof f->made) &&
                number(o, "folders", &f->folders) && number(o, "files", &f->files) && number(o, "bytes", &f->bytes) &&
                number(o, "objects_stored", &f->objects) && number(o, "entries", &m->entries) &&
                (!seeded || f->is_seeded) && read_rows(m, o);
    m->postgres = (int64_t)postgres;
    secret_add(sv_of(m->file_key));
    secret_add(sv_of(m->s3_secret));
    f->size = m->database.size + m->objects.size;
    return fine;
}

enum err manifest_parse(struct manifest *m, struct sv text, struct errinfo *ei)
{
    struct json *root = NULL;
    int64_t format = 0;
    enum err err = ERR_OK;
    *m = (struct manifest){0};
    if (json_parse(text.p, text.n, &root, NULL))
        err = err_set(ei, ERR_ENV, "its " MANIFEST_FILE " is damaged");
    else if (!json_i64(json_get(root, "drivesim_fixture"), &format))
        err = err_set(ei, ERR_ENV, "its " MANIFEST_FILE " is not one of drivesim's");
    else if (format >= 0 && format < FORMAT)
        err = err_set(ei, ERR_ENV,
                      "it has format %lld, whose dump could run commands: seed a stack anew and `sim fixture save` it",
                      (long long)format);
    else if (format != FORMAT)
        err = err_set(ei, ERR_ENV, "it has format %lld, this program knows %d", (long long)format, FORMAT);
    else if (!read_all(m, root))
        err = err_set(ei, ERR_ENV, "its " MANIFEST_FILE " is not whole");
    json_free(&root);
    if (err)
        manifest_done(m);
    return err;
}

enum err manifest_load(struct manifest *m, const char *folder, struct errinfo *ei)
{
    struct buf b = BUF_INIT(MANIFEST_MAX);
    struct errinfo why = {0};
    char path[4096];
    str_format(path, sizeof path, "%s/" MANIFEST_FILE, folder);
    *m = (struct manifest){0};
    enum err err = file_read(path, &b, ERR_ENV, &why);
    if (err && (why.os_errno == ENOENT || why.os_errno == ENOTDIR))
        err = err_set(ei, ERR_ENV, "it has no " MANIFEST_FILE);
    else if (err)
        err = err_set(ei, ERR_ENV, "%s", err_message(&why));
    else
        err = manifest_parse(m, (struct sv){buf_cstr(&b), b.len}, ei);
    buf_done(&b);
    return err;
}
