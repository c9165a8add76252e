#ifndef DRIVE_WIRE_H
#define DRIVE_WIRE_H
/* The wire's words and shapes (drive-api.md, tma-wire.md), free of any connection: header names, and JSON taken into
 * the structs of model.h. Tolerant in what it reads: sizes as numbers or strings, error bodies of both shapes. Pure.
 * Layer 2. */
#include "base/arena.h"
#include "base/json.h"
#include "drive/model.h"

#define WIRE_CSRF_HEADER    "X-Requested-With"
#define WIRE_CSRF_VALUE     "XMLHttpRequest"
#define WIRE_DESKTOP_HEADER "X-TMA-Desktop-Client"
#define WIRE_DESKTOP_VALUE  "tma-electron-client-v1"
#define WIRE_LOCK_HEADER    "X-Lock-Id"
#define WIRE_CURSOR_HEADER  "X-Next-Cursor"
#define WIRE_COOKIE         "token"
#define WIRE_CODE_MAX       40

/* A file object; false when it has no id or no name. Fields that are absent are NULL, -1, false. */
bool wire_file(const struct json *j, struct arena *mem, struct drive_file *out);
/* An array of file objects; false when it is none or one item cannot be read. */
bool wire_listing(const struct json *j, struct arena *mem, struct drive_listing *out);
/* An error body's sentence, escaped and cut, and its code: {"message", "error"?} or a limiter's {"error": sentence}. A
 * validation error's first detail follows the sentence, as do a lock's holder and end. False when the body is no such
 * JSON (an HTML page): both "". */
bool wire_error(struct sv body, char *reason, size_t reason_n, char code[WIRE_CODE_MAX]);
/* The value of cookie `name` in one Set-Cookie header; false when it sets another one. Empty: the cookie is cleared. */
bool wire_set_cookie(struct sv header, const char *name, struct sv *value);
/* How long a JWT lives, from its iat to its exp (RFC 7519); -1 when it is none or does not say. Not verified: the
 * server does that. */
int64_t wire_token_life_us(struct sv token);
/* An ETag's opaque part; false when it is weak or malformed: no usable validator. */
bool wire_etag(struct sv header, struct sv *out);
#endif
