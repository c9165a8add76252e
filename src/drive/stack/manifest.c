#include "drive/stack/manifest.h"
#include "base/file.h"
#include "base/secret.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FORMAT       1
#define MANIFEST_MAX (64u << 10)

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

static bool hex(const struct json *o, const char *key, char *dst, size_t digits)
{
    return text(o, key, dst, digits + 1) && strlen(dst) == digits && strspn(dst, "0123456789abcdef") == digits;
}

static bool part(const struct json *o, struct fixture_part *p)
{
    return number(o, "size", &p->size) && hex(o, "sha256", p->sha256, sizeof p->sha256 - 1);
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
                text(o, "version", f->version, sizeof f->version) && text(o, "made", f->made, sizeof f->made) &&
                number(o, "folders", &f->folders) && number(o, "files", &f->files) && number(o, "bytes", &f->bytes) &&
                number(o, "objects_stored", &f->objects) && (!seeded || f->is_seeded);
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
    else if (format != FORMAT)
        err = err_set(ei, ERR_ENV, "it has format %lld, this program knows %d", (long long)format, FORMAT);
    else if (!read_all(m, root))
        err = err_set(ei, ERR_ENV, "its " MANIFEST_FILE " is not whole");
    json_free(&root);
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
