#ifndef SERVER_HTTP_UPLOAD_FORM_H
#define SERVER_HTTP_UPLOAD_FORM_H
/* What the upload handlers (handlers/upload.c, handlers/bulk.c) share: the form's fields, what may stand in them, and
 * what to answer when a body ends badly. Layer 3. */
#include "server/http/http.h"
#include "server/http/multipart.h"
#include "server/objects/content.h"

/* What a request's framing adds to the file at most, as far as one file is concerned: delimiters, part heads, fields.
 * A size that is judged by Content-Length alone is judged this much too kindly; the part's own head tells exactly. */
#define UPLOAD_FRAMING_MAX 1024

struct strings { /* in the request's arena */
    const char **items;
    size_t n, cap;
};
struct upload_form {
    struct request *r;
    struct multipart *m;
    const char *parent_id;                   /* NULL: the top level */
    struct strings times, paths, client_ids; /* in the order of the files */
};
/* The value that belongs to the file of that ordinal; NULL when absent or empty. */
const char *form_value(const struct strings *s, size_t ordinal);

/* Opens the body. Answers and returns false when it is no form. */
MAY_YIELD bool form_open(struct upload_form *f, struct request *r);
/* Takes in fields up to the next file part, or up to the end. Answers and returns false when the body is broken. A part
 * that calls itself a file goes by any of the names in use ("file", "files"). */
MAY_YIELD bool form_next_file(struct upload_form *f, struct multipart_part *part, bool *end);
struct content_source form_source(struct upload_form *f);

/* lastModifiedTimes: milliseconds since 1970, or ISO 8601; NULL is now (META_NOW). False when it is neither or beyond
 * the years 1 to 9999. */
bool form_time(const char *text, struct wall *out);
/* The part's Content-Type when it is safe to send back as a header, else application/octet-stream. */
const char *form_mime(struct request *r, const struct multipart_part *part);
/* The strong tags of If-Match; items NULL when there is no condition (absent, or "*"). */
struct strings form_if_match(struct request *r);

/* Answers for a body that could not be taken in or put: 400, 408, 413, 499, 503 or 507, by the error. */
MAY_YIELD void form_reply_failure(struct request *r, enum err e, const struct errinfo *ei);
/* 413 with the figures. */
MAY_YIELD void form_reply_too_large(struct request *r, int64_t required, int64_t available);
#endif
