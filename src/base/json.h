#ifndef BASE_JSON_H
#define BASE_JSON_H
/* JSON. Reading wraps cJSON behind a depth limit of 64 (cJSON recurses: 128 B of stack a level) and a byte limit set
 * by the caller's buffer. Writing is a streaming writer onto a buf; numbers are locale-free, NaN and infinity become
 * null, invalid UTF-8 becomes U+FFFD. The owner of cjson/cJSON.h. Layer 0. */
#include "base/buf.h"
#include "base/str.h"
struct json; /* a parsed value; children belong to the root */
enum err json_parse(const char *text, size_t n, struct json **out, struct errinfo *ei) WARN_UNUSED;
void json_free(struct json **root);
const struct json *json_get(const struct json *obj,
                            const char *key); /* NULL when obj is no object or lacks it; NULL-safe */
const struct json *json_first(const struct json *container);
const struct json *json_next(const struct json *item);
const char *json_key(const struct json *item);
size_t json_count(const struct json *container);
bool json_is_null(const struct json *v); /* true for NULL too */
bool json_is_array(const struct json *v);
bool json_is_object(const struct json *v);
bool json_is_string(const struct json *v);
bool json_is_number(const struct json *v);
bool json_is_bool(const struct json *v);
const char *json_str(const struct json *v); /* NULL unless a string */
bool json_bool(const struct json *v, bool fallback);
bool json_i64(const struct json *v, int64_t *out); /* a number without fraction, or a string holding one (v2 sizes) */
bool json_f64(const struct json *v, double *out);

struct jsonw {
    struct buf *out;
    unsigned depth;
    bool comma;
    enum err err;
}; /* err: the first failure, sticky */
void jsonw_init(struct jsonw *w, struct buf *out);
void jsonw_object(struct jsonw *w, const char *key); /* key NULL inside an array or at the top */
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_end_object(struct jsonw *w);
void jsonw_end_array(struct jsonw *w);
void jsonw_str(struct jsonw *w, const char *key, const char *v); /* v NULL writes null */
void jsonw_sv(struct jsonw *w, const char *key, struct sv v);
void jsonw_i64(struct jsonw *w, const char *key, int64_t v);
void jsonw_f64(struct jsonw *w, const char *key, double v, int decimals);
/* What was measured; null when v < 0: nothing was. */
void jsonw_measured(struct jsonw *w, const char *key, double v, int decimals);
void jsonw_bool(struct jsonw *w, const char *key, bool v);
void jsonw_null(struct jsonw *w, const char *key);
void jsonw_raw(struct jsonw *w, const char *key, struct sv json); /* already JSON: embedded as it is */
#endif
