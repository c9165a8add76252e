#ifndef DRIVE_CONTENT_H
#define DRIVE_CONTENT_H
/* File content that proves itself: the magic bytes that the extension promises, a header (key, revision, parent
 * revision, size, checksum), then an incompressible counter-based key stream of (key, revision), so that any range can
 * be made and checked without the rest. A body shorter than magic and header holds a prefix of them. Pure, any thread.
 * Layer 2. */
#include "base/err.h"
#include "base/str.h"
#include <stdint.h>

struct content {
    uint64_t key, revision, parent_revision, size;
    const char *ext; /* borrowed: "pdf"; unknown ones and "" have no magic */
    struct sv
        literal; /* p set: these bytes instead, borrowed, as many as size says; they prove nothing of themselves */
};
#define CONTENT_HEADER_LEN 64
#define CONTENT_HEAD_MAX   192 /* no magic and header together are longer */

/* The bytes [offset, offset + n) of the body; the range lies within size. */
void content_fill(const struct content *c, uint64_t offset, void *dst, size_t n);
/* As much of that as the body has, at most cap bytes; returns how many, and counts them in *taken (NULL: not). What the
 * readers of struct http_req and http_part are made of. */
int64_t content_pull(const struct content *c, uint64_t *taken, uint64_t offset, char *dst, size_t cap);
/* Reads the header out of a body's first bytes (CONTENT_HEAD_MAX of them always do). False when they are too few or not
 * ours. A file renamed to another extension is still found: out->ext is then the one that it was made with (static),
 * else ext as given. */
bool content_identify(struct sv head, const char *ext, struct content *out);
size_t content_head_len(const char *ext); /* magic + header: how much content_identify needs */

/* A running comparison of a whole body, or of a range from offset on, against what c says. */
struct content_check {
    struct content want;
    uint64_t offset; /* of the next byte */
    uint64_t wrong_at;
    bool wrong;
};
void content_check_init(struct content_check *k, const struct content *c, uint64_t offset);
/* False from the first wrong byte on (wrong_at); a byte beyond the end is wrong. */
bool content_check_feed(struct content_check *k, const void *p, size_t n);
bool content_check_complete(const struct content_check *k); /* nothing wrong and the end was reached */

void content_sha1(const struct content *c, unsigned char out[20]);
const char *content_mime(const char *ext);                 /* "application/octet-stream" when unknown */
size_t content_magic(const char *ext, const char **magic); /* its bytes, for tests and for making names */
#endif
