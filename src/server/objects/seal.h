#ifndef SERVER_OBJECTS_SEAL_H
#define SERVER_OBJECTS_SEAL_H
/* File bodies as they lie in the object store: AES-256-GCM in segments of 64 KiB, so that a range is read by opening
 * only the segments it touches and nothing is ever released before its tag was checked. The layout (STREAM, Hoang,
 * Reyhanitabar, Rogaway and Vizár, CRYPTO 2015):
 *
 *   header   8 bytes "DSEAL1\0\0" + 16 bytes salt + 8 bytes check
 *   segment  up to 65,536 bytes of ciphertext + 16 bytes tag      (all full but the last; an empty file has one, empty)
 *
 * Each object has a key of its own, HMAC-SHA256(master, "object" + salt): a segment's nonce is then just its number and
 * whether it is the last, so that a body cut at a segment border, lengthened, or with segments swapped does not open.
 * The check, HMAC-SHA256(master, "header" + salt) cut to 8 bytes, tells "sealed with another key" from "damaged".
 * Nothing names the object's key or file id: a copy made by the store itself opens as well. Layer 3; no I/O; a struct
 * seal belongs to one coroutine. */
#include "base/aead.h"
#include "base/str.h"
#include "drive/schema.h"

/* A full sealed segment, as it stands in the store. */
#define SEAL_SEALED_LEN (SEAL_SEGMENT_LEN + SEAL_TAG_LEN)

/* FILE_ENCRYPTION_KEY: 32 bytes as 64 hex digits or in base64. The text never appears in the message. */
struct seal_key {
    unsigned char bytes[AEAD_KEY_LEN];
};
enum err seal_key_parse(struct seal_key *out, const char *text, struct errinfo *ei) WARN_UNUSED;

uint64_t seal_segments(uint64_t plain); /* how many segments hold so many bytes: at least 1 */

/* Where a range [offset, offset + length) of a file of plain bytes lies. length > 0, offset + length <= plain. */
struct seal_range {
    uint64_t first, count;                 /* segments */
    uint64_t sealed_offset, sealed_length; /* bytes of the object to fetch, header not included */
    size_t skip;                           /* plain bytes to drop from the first segment */
};
struct seal_range seal_range_of(uint64_t plain, uint64_t offset, uint64_t length);

struct seal;
/* Starts a new object: draws a salt and fills the header, which goes first. */
struct seal *seal_new(const struct seal_key *key, unsigned char header[SEAL_HEADER_LEN]);
/* Takes up the object whose header this is. ERR_WRONG when it is no header of ours, or one of another key. */
enum err seal_open(struct seal **out, const struct seal_key *key, const unsigned char header[SEAL_HEADER_LEN],
                   struct errinfo *ei) WARN_UNUSED;
void seal_free(struct seal **s);
/* Seals n bytes in place: p has room for n + SEAL_TAG_LEN. n is SEAL_SEGMENT_LEN unless last. Returns n + SEAL_TAG_LEN.
 */
size_t seal_segment_close(struct seal *s, uint64_t index, bool last, void *p, size_t n);
/* Opens n bytes (tag included) in place; the plain text is n - SEAL_TAG_LEN long. ERR_WRONG when anything was altered.
 */
enum err seal_segment_open(struct seal *s, uint64_t index, bool last, void *p, size_t n,
                           struct errinfo *ei) WARN_UNUSED;

/* Short secrets in the database (the bucket's keys): sealed text in base64, bound to what it is for. */
enum err seal_text(const struct seal_key *key, const char *purpose, struct sv plain, struct buf *out) WARN_UNUSED;
enum err unseal_text(const struct seal_key *key, const char *purpose, struct sv sealed, struct buf *out) WARN_UNUSED;
#endif
