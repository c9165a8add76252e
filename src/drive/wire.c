/* JSON into structs. Everything that came from a server and is shown to people is escaped here, once. */
#include "drive/wire.h"
#include "base/digest.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

static const char *copy_str(const struct json *j, const char *key, struct arena *mem)
{
    const char *s = json_str(json_get(j, key));
    return s && *s ? arena_strdup(mem, s) : NULL;
}

/* Opaque: a string, or on some servers a plain number. */
static const char *copy_opaque(const struct json *j, const char *key, struct arena *mem)
{
    const struct json *v = json_get(j, key);
    int64_t n;
    if (json_is_number(v) && json_i64(v, &n))
        return arena_printf(mem, "%lld", (long long)n);
    return copy_str(j, key, mem);
}

bool wire_file(const struct json *j, struct arena *mem, struct drive_file *out)
{
    const char *type = json_str(json_get(j, "type")), *modified = json_str(json_get(j, "modified"));
    memset(out, 0, sizeof *out);
    out->size = -1;
    out->id = copy_opaque(j, "id", mem);
    out->name = copy_str(j, "name", mem);
    if (!out->id || !out->name || strlen(out->id) > DRIVE_ID_MAX)
        return false;
    out->parent_id = copy_opaque(j, "parentId", mem);
    out->version = copy_opaque(j, "version", mem);
    if (out->version && strlen(out->version) > DRIVE_ID_MAX)
        out->version = NULL;
    out->mime_type = copy_str(j, "mimeType", mem);
    out->folder = type && strcmp(type, "folder") == 0;
    if (!out->folder && (!json_i64(json_get(j, "size"), &out->size) || out->size < 0))
        out->size = -1;
    if (modified && !wall_parse(modified, &out->modified))
        out->modified.us = 0;
    out->starred = json_bool(json_get(j, "starred"), false);
    out->shared = json_bool(json_get(j, "shared"), false);
    return true;
}

bool wire_listing(const struct json *j, struct arena *mem, struct drive_listing *out)
{
    size_t n = json_count(j), i = 0;
    if (!json_is_array(j))
        return false;
    struct drive_file *items = arena_alloc(mem, n * sizeof *items);
    for (const struct json *it = json_first(j); it; it = json_next(it)) {
        if (!wire_file(it, mem, &items[i++]))
            return false;
    }
    *out = (struct drive_listing){items, n};
    return true;
}

static bool is_code(const char *s)
{
    size_t n = 0;
    for (; s[n]; n++) {
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", s[n]))
            return false;
    }
    return n > 0 && n < WIRE_CODE_MAX;
}

/* "details": [{"field": "text"}] or ["text"] or "text" */
static const char *first_detail(const struct json *j)
{
    const struct json *d = json_get(j, "details");
    if (json_is_array(d))
        d = json_first(d);
    if (json_is_object(d))
        d = json_first(d);
    return json_str(d);
}

bool wire_error(struct sv body, char *reason, size_t reason_n, char code[WIRE_CODE_MAX])
{
    struct json *j = NULL;
    reason[0] = code[0] = '\0';
    if (json_parse(body.p, body.n, &j, NULL))
        return false;
    const char *message = json_str(json_get(j, "message")), *error = json_str(json_get(j, "error"));
    const char *detail = first_detail(j);
    if (error && is_code(error))
        snprintf(code, WIRE_CODE_MAX, "%s", error);
    else if (!message)
        message = error;
    bool readable = message || code[0];
    const char *holder = json_str(json_get(json_get(j, "lockedBy"), "name")),
               *until = json_str(json_get(j, "expiresAt"));
    if (message && (detail || holder)) {
        struct buf both = BUF_INIT(64 * 1024);
        enum err e = detail ? buf_appendf(&both, "%s: %s", message, detail)
                            : buf_appendf(&both, "%s: %s, until %s", message, holder, until ? until : "it lapses");
        if (e == ERR_OK)
            str_shown(reason, reason_n, sv_of(buf_cstr(&both)));
        buf_done(&both);
    }
    if (!reason[0])
        str_shown(reason, reason_n, sv_of(message ? message : code));
    json_free(&j);
    return readable;
}

int64_t wire_token_life_us(struct sv token)
{
    struct buf text = BUF_INIT(8192);
    struct sv rest = token, head, payload;
    struct json *j = NULL;
    int64_t issued, expires, life = -1;

    if (sv_split(&rest, '.', &head) && sv_split(&rest, '.', &payload) && digest_unbase64(&text, payload) == ERR_OK &&
        json_parse(buf_cstr(&text), text.len, &j, NULL) == ERR_OK && json_i64(json_get(j, "iat"), &issued) &&
        json_i64(json_get(j, "exp"), &expires) && expires > issued && expires - issued < INT64_C(1) << 40)
        life = (expires - issued) * US_PER_S;
    json_free(&j);
    buf_done(&text);
    return life;
}

bool wire_set_cookie(struct sv header, const char *name, struct sv *value)
{
    struct sv pair, key;
    if (!sv_split(&header, ';', &pair))
        return false;
    if (!memchr(pair.p, '=', pair.n) || !sv_split(&pair, '=', &key) || !sv_eq_cstr(sv_trim(key), name))
        return false;
    *value = sv_trim(pair);
    return true;
}

bool wire_etag(struct sv header, struct sv *out)
{
    if (header.n < 2 || header.p[0] != '"' || header.p[header.n - 1] != '"')
        return false;
    *out = (struct sv){header.p + 1, header.n - 2};
    return out->n > 0 && !memchr(out->p, '"', out->n);
}
