#include "drive/stack/seeded.h"
#include "base/file.h"
#include <stdio.h>
#include <string.h>

void stack_seeded_write(const struct stack_seeded *s, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_i64(w, "seed", s->seed);
    jsonw_i64(w, "sub_users", s->sub_users);
    jsonw_i64(w, "accounts", s->accounts);
    jsonw_f64(w, "scale", s->scale, 6);
    jsonw_f64(w, "bytes_scale", s->bytes_scale, 6);
    jsonw_str(w, "preset", s->preset);
    jsonw_i64(w, "folders", (int64_t)s->folders);
    jsonw_i64(w, "files", (int64_t)s->files);
    jsonw_i64(w, "bytes", (int64_t)s->bytes);
    jsonw_str(w, "manifest_sha256", s->manifest_sha256);
    jsonw_end_object(w);
}

static bool count(const struct json *v, const char *key, uint64_t *out)
{
    int64_t n;
    if (!json_i64(json_get(v, key), &n) || n < 0)
        return false;
    *out = (uint64_t)n;
    return true;
}

/* A word of plain characters; "" too. */
static bool word(const struct json *v, const char *key, char *dst, size_t n)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *s = json_str(json_get(v, key));
    return s && str_fit(dst, n, s) && strspn(s, plain) == strlen(s);
}

bool stack_seeded_read(const struct json *v, struct stack_seeded *out)
{
    struct stack_seeded s = {0};
    *out = s;
    if (!json_i64(json_get(v, "seed"), &s.seed) || !json_i64(json_get(v, "sub_users"), &s.sub_users) ||
        !json_i64(json_get(v, "accounts"), &s.accounts) || !json_f64(json_get(v, "scale"), &s.scale) ||
        !json_f64(json_get(v, "bytes_scale"), &s.bytes_scale) || !word(v, "preset", s.preset, sizeof s.preset) ||
        !word(v, "manifest_sha256", s.manifest_sha256, sizeof s.manifest_sha256) || !count(v, "folders", &s.folders) ||
        !count(v, "files", &s.files) || !count(v, "bytes", &s.bytes))
        return false;
    *out = s;
    return true;
}

enum err stack_note_seeded(const struct stack_seeded *s, struct errinfo *ei)
{
    struct buf b = BUF_INIT(4096);
    struct jsonw w;
    jsonw_init(&w, &b);
    stack_seeded_write(s, &w, NULL);
    enum err err =
        w.err ? err_set(ei, w.err, "the note does not fit") : file_replace(".sim/" STACK_SEEDED_FILE, &b, ei);
    buf_done(&b);
    return err;
}
