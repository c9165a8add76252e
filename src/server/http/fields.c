#include "server/http/fields.h"
#include "drive/path.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void reply_validation(struct request *r, const char *field, const char *fmt, ...)
{
    char text[512];
    struct buf out = BUF_INIT(8192);
    struct jsonw w;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", "Validation failed");
    jsonw_array(&w, "details");
    jsonw_object(&w, NULL);
    jsonw_str(&w, field, text);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    reply_json(r, 422, &out);
    buf_done(&out);
}

bool field_text(struct request *r, const struct json *body, const char *key, const char **out)
{
    const char *s = json_str(json_get(body, key));
    if (!s || !*s) {
        reply_validation(r, key, "%s must be a string that is not empty", key);
        return false;
    }
    *out = arena_strdup(r->mem, s);
    return true;
}

bool field_ids(struct request *r, const struct json *body, struct field_ids *out)
{
    const struct json *ids = json_get(body, "ids");
    size_t n = json_is_array(ids) ? json_count(ids) : 0;
    if (n == 0 || n > FIELDS_IDS_MAX) {
        reply_validation(r, "ids", "ids must be an array of 1 to %d strings", FIELDS_IDS_MAX);
        return false;
    }
    out->v = arena_alloc(r->mem, n * sizeof *out->v);
    out->n = 0;
    for (const struct json *it = json_first(ids); it; it = json_next(it)) {
        const char *id = json_str(it);
        if (!id || !*id) {
            reply_validation(r, "ids", "each of ids must be a string that is not empty");
            return false;
        }
        out->v[out->n++] = arena_strdup(r->mem, id);
    }
    return true;
}

bool field_parent(struct request *r, const struct json *body, const char *key, const char **out)
{
    const struct json *v = json_get(body, key);
    const char *s = json_str(v);
    *out = NULL;
    if (json_is_null(v))
        return true;
    if (!s) {
        reply_validation(r, key, "%s must be a folder's id, or null for the top level", key);
        return false;
    }
    if (*s)
        *out = arena_strdup(r->mem, s);
    return true;
}

bool field_name(struct request *r, const struct json *body, const char **out)
{
    const char *s = json_str(json_get(body, "name"));
    struct sv name = sv_trim(sv_of(s));
    const char *problem = s ? path_name_problem_folder(name) : "name must be a string";
    if (problem) {
        reply_validation(r, "name", "%s", problem);
        return false;
    }
    *out = arena_strndup(r->mem, name.p, name.n);
    return true;
}

bool field_bool(struct request *r, const struct json *body, const char *key, bool *out)
{
    const struct json *v = json_get(body, key);
    bool yes = json_bool(v, false), no = !json_bool(v, true);
    if (yes == no) {
        reply_validation(r, key, "%s must be true or false", key);
        return false;
    }
    *out = yes;
    return true;
}

bool field_int(struct request *r, const struct json *body, const char *key, int64_t min, int64_t max, int64_t fallback,
               int64_t *out)
{
    const struct json *v = json_get(body, key);
    *out = fallback;
    if (json_is_null(v))
        return true;
    if (!json_is_number(v) || !json_i64(v, out) || *out < min || *out > max) {
        reply_validation(r, key, "%s must be a whole number from %" PRId64 " to %" PRId64, key, min, max);
        return false;
    }
    return true;
}

bool query_int(struct request *r, const char *key, int64_t min, int64_t max, int64_t fallback, int64_t *out)
{
    const char *s = req_query(r, key);
    *out = fallback;
    if (!s || !*s)
        return true;
    if (!sv_to_i64(sv_of(s), out) || *out < min || *out > max) {
        reply_message(r, 400, "BAD_REQUEST", "%s must be a whole number from %" PRId64 " to %" PRId64, key, min, max);
        return false;
    }
    return true;
}
