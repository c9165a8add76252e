#include "base/aead.h"
#include "base/mem.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct aead {
    EVP_CIPHER_CTX *seal, *open; /* the key schedule is made once for each direction */
};

static void must(int ok)
{
    if (ok != 1) {
        fprintf(stderr, "openssl: AES-256-GCM failed\n");
        abort();
    }
}

static EVP_CIPHER_CTX *ctx_new(const unsigned char *key, int enc)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

    must(ctx != NULL);
    must(EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, NULL, enc));
    return ctx;
}

struct aead *aead_new(const unsigned char key[AEAD_KEY_LEN])
{
    struct aead *a = mem_alloc(sizeof *a);

    a->seal = ctx_new(key, 1);
    a->open = ctx_new(key, 0);
    return a;
}

void aead_free(struct aead **a)
{
    if (!*a)
        return;
    EVP_CIPHER_CTX_free((*a)->seal);
    EVP_CIPHER_CTX_free((*a)->open);
    MEM_FREE(*a);
}

/* Nonce, additional data, then the body; lengths stay far below INT_MAX (a segment is 64 KiB). */
static void run(EVP_CIPHER_CTX *ctx, const unsigned char *nonce, const void *aad, size_t aad_n, const void *in,
                size_t n, void *out)
{
    int len;

    must(EVP_CipherInit_ex(ctx, NULL, NULL, NULL, nonce, -1));
    if (aad_n)
        must(EVP_CipherUpdate(ctx, NULL, &len, aad, (int)aad_n));
    if (n)
        must(EVP_CipherUpdate(ctx, out, &len, in, (int)n));
}

void aead_seal(struct aead *a, const unsigned char nonce[AEAD_NONCE_LEN], const void *aad, size_t aad_n, const void *in,
               size_t n, void *out)
{
    unsigned char *tag = (unsigned char *)out + n;
    int len;

    run(a->seal, nonce, aad, aad_n, in, n, out);
    must(EVP_CipherFinal_ex(a->seal, tag, &len));
    must(EVP_CIPHER_CTX_ctrl(a->seal, EVP_CTRL_GCM_GET_TAG, AEAD_TAG_LEN, tag));
}

enum err aead_open(struct aead *a, const unsigned char nonce[AEAD_NONCE_LEN], const void *aad, size_t aad_n,
                   const void *in, size_t n, void *out)
{
    unsigned char tag[AEAD_TAG_LEN], none[AEAD_TAG_LEN];
    int len;

    if (n < AEAD_TAG_LEN)
        return ERR_WRONG;
    n -= AEAD_TAG_LEN;
    memcpy(tag, (const unsigned char *)in + n, sizeof tag);
    run(a->open, nonce, aad, aad_n, in, n, out);
    must(EVP_CIPHER_CTX_ctrl(a->open, EVP_CTRL_GCM_SET_TAG, AEAD_TAG_LEN, tag));
    return EVP_CipherFinal_ex(a->open, none, &len) == 1 ? ERR_OK : ERR_WRONG;
}
