#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
/* Hashes, MACs, secure random bytes and text encodings, by OpenSSL. Layer 0, any thread. */
#include "base/buf.h"
#include "base/str.h"
#define DIGEST_SHA256_LEN 32
#define DIGEST_MD5_LEN    16
#define DIGEST_SHA1_LEN   20
struct digest; /* a running SHA-256, or SHA-1 */
struct digest *digest_new(void);
struct digest *digest_new_sha1(void); /* for checksums that a protocol asks for; its digest has 20 bytes */
void digest_free(struct digest **d);
void digest_update(struct digest *d, const void *p, size_t n);
void digest_final(struct digest *d, unsigned char out[DIGEST_SHA256_LEN]); /* d may be used again from the start */
void digest_sha256(const void *p, size_t n, unsigned char out[DIGEST_SHA256_LEN]);
void digest_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n, unsigned char out[DIGEST_SHA256_LEN]);
/* For what a format asks for: hashed names of known hosts. */
void digest_hmac_sha1(const void *key, size_t key_n, const void *p, size_t n, unsigned char out[DIGEST_SHA1_LEN]);
void digest_md5(const void *p, size_t n, unsigned char out[DIGEST_MD5_LEN]); /* Content-MD5 only: not for secrets */
void digest_hex(char *dst, const void *p, size_t n);                         /* dst of 2n+1 bytes, lower case */
void digest_random(void *p, size_t n);                                       /* aborts when the system has none */
/* n characters of the 58-letter alphabet without 0 O I l, NUL-terminated: ids and keys. dst of n+1 bytes. */
void digest_random_id(char *dst, size_t n);
bool digest_equal(const void *a, const void *b, size_t n); /* constant time */
enum err digest_base64(struct buf *out, const void *p, size_t n) WARN_UNUSED;
enum err digest_unbase64(struct buf *out, struct sv s) WARN_UNUSED; /* standard or URL alphabet, padding optional */
#endif
