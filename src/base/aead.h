#ifndef BASE_AEAD_H
#define BASE_AEAD_H
/* AES-256-GCM on one segment (NIST SP 800-38D), by OpenSSL. A struct aead holds one key and is used by one thread. */
#include "base/err.h"
#include <stddef.h>
#define AEAD_KEY_LEN   32
#define AEAD_NONCE_LEN 12
#define AEAD_TAG_LEN   16
struct aead;
struct aead *aead_new(const unsigned char key[AEAD_KEY_LEN]);
void aead_free(struct aead **a);
/* out has room for n + AEAD_TAG_LEN (ciphertext, then tag). in and out may be the same memory. */
void aead_seal(struct aead *a, const unsigned char nonce[AEAD_NONCE_LEN], const void *aad, size_t aad_n, const void *in,
               size_t n, void *out);
/* n counts the tag; out has room for n - AEAD_TAG_LEN. ERR_WRONG when the tag does not fit: out is then undefined. */
enum err aead_open(struct aead *a, const unsigned char nonce[AEAD_NONCE_LEN], const void *aad, size_t aad_n,
                   const void *in, size_t n, void *out) WARN_UNUSED;
#endif
