#ifndef DRIVE_CONTENT_H
#define DRIVE_CONTENT_H
/* File content that proves itself: the magic bytes that the extension promises, a header (key, revision, parent revision, size, checksum), then an
 * incompressible counter-based key stream of (key, revision), so that any range can be made and checked without the rest. A body shorter than magic and
 * header holds a prefix of them. Layer 2, pure. */
#include "base/err.h"
#include "base/str.h"
#include <stdint.h>
struct content { uint64_t key, revision, parent_revision, size; const char *ext; };   /* ext borrowed: "pdf" */
#define CONTENT_HEADER_LEN 64
void content_fill(const struct content *c, uint64_t offset, void *dst, size_t n);
/* Reads the header out of a body's first bytes. False when it is too short or not ours. size is set from the header. */
bool content_identify(struct sv head, const char *ext, struct content *out);
size_t content_head_len(const char *ext);            /* magic + header: how much content_identify needs */
/* A running comparison of a whole body or a range against what c says. */
struct content_check { struct content want; uint64_t offset; uint64_t wrong_at; bool wrong; };
void content_check_init(struct content_check *k, const struct content *c, uint64_t offset);
bool content_check_feed(struct content_check *k, const void *p, size_t n);   /* false from the first wrong byte (wrong_at) on */
void content_sha256(const struct content *c, unsigned char out[32]);
const char *content_mime(const char *ext);
#endif
