#ifndef SERVER_HTTP_FIELDS_H
#define SERVER_HTTP_FIELDS_H
/* Fields of JSON bodies and queries, checked and taken out. A function that returns false has answered: 422 with
 * details naming the field, or 400. Strings live in the request's arena. Layer 3. */
#include "server/http/http.h"

#define FIELDS_IDS_MAX 500

struct field_ids {
    const char **v;
    size_t n;
};
/* "ids": 1 to 500 non-empty strings. */
MAY_YIELD bool field_ids(struct request *r, const struct json *body, struct field_ids *out);
/* A folder's id or NULL for the top level: absent, null and "" say the same. */
MAY_YIELD bool field_parent(struct request *r, const struct json *body, const char *key, const char **out);
/* A string that must be there and must not be empty. */
MAY_YIELD bool field_text(struct request *r, const struct json *body, const char *key, const char **out);
/* "name" as folders and renames take it: trimmed, then judged by path.h. */
MAY_YIELD bool field_name(struct request *r, const struct json *body, const char **out);
MAY_YIELD bool field_bool(struct request *r, const struct json *body, const char *key, bool *out);
/* An integer within [min, max]; absent: fallback. */
MAY_YIELD bool field_int(struct request *r, const struct json *body, const char *key, int64_t min, int64_t max,
                         int64_t fallback, int64_t *out);
/* The same of the query; out of range is 400. */
MAY_YIELD bool query_int(struct request *r, const char *key, int64_t min, int64_t max, int64_t fallback, int64_t *out);
/* 422 {"message": "Validation failed", "details": [{field: sentence}]}. */
MAY_YIELD void reply_validation(struct request *r, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);
#endif
