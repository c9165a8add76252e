#include "base/digest.h"
#include "base/mem.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct digest {
    EVP_MD_CTX *ctx;
    const EVP_MD *kind;
};

/* OpenSSL's hash calls fail only for want of memory or of the algorithm: neither leaves anything to do. */
static void must(int ok, const char *what)
{
    if (ok != 1) {
        fprintf(stderr, "openssl: %s failed\n", what);
        abort();
    }
}

static struct digest *new_of(const EVP_MD *kind)
{
    struct digest *d = mem_alloc(sizeof *d);

    d->kind = kind;
    d->ctx = EVP_MD_CTX_new();
    must(d->ctx != NULL, "EVP_MD_CTX_new");
    must(EVP_DigestInit_ex(d->ctx, kind, NULL), "the digest");
    return d;
}

struct digest *digest_new(void)
{
    return new_of(EVP_sha256());
}

struct digest *digest_new_sha1(void)
{
    return new_of(EVP_sha1());
}

void digest_free(struct digest **d)
{
    if (!*d)
        return;
    EVP_MD_CTX_free((*d)->ctx);
    MEM_FREE(*d);
}

void digest_update(struct digest *d, const void *p, size_t n)
{
    must(EVP_DigestUpdate(d->ctx, p, n), "the digest");
}

void digest_final(struct digest *d, unsigned char out[DIGEST_SHA256_LEN])
{
    must(EVP_DigestFinal_ex(d->ctx, out, NULL), "the digest");
    must(EVP_DigestInit_ex(d->ctx, d->kind, NULL), "the digest");
}

void digest_sha256(const void *p, size_t n, unsigned char out[DIGEST_SHA256_LEN])
{
    must(EVP_Digest(p, n, out, NULL, EVP_sha256(), NULL), "SHA-256");
}

void digest_md5(const void *p, size_t n, unsigned char out[DIGEST_MD5_LEN])
{
    must(EVP_Digest(p, n, out, NULL, EVP_md5(), NULL), "MD5");
}

void digest_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n, unsigned char out[DIGEST_SHA256_LEN])
{
    /* A NULL key means "the key of before" to OpenSSL: an empty one needs an address. */
    must(HMAC(EVP_sha256(), key_n ? key : "", (int)key_n, p, n, out, NULL) != NULL, "HMAC-SHA-256");
}

void digest_hmac_sha1(const void *key, size_t key_n, const void *p, size_t n, unsigned char out[DIGEST_SHA1_LEN])
{
    must(HMAC(EVP_sha1(), key_n ? key : "", (int)key_n, p, n, out, NULL) != NULL, "HMAC-SHA-1");
}

void digest_hex(char *dst, const void *p, size_t n)
{
    static const char letters[] = "0123456789abcdef";
    const unsigned char *from = p;

    for (size_t i = 0; i < n; i++) {
        dst[2 * i] = letters[from[i] >> 4];
        dst[2 * i + 1] = letters[from[i] & 15];
    }
    dst[2 * n] = '\0';
}

void digest_random(void *p, size_t n)
{
    must(RAND_bytes(p, (int)n), "RAND_bytes");
}

void digest_random_id(char *dst, size_t n)
{
    static const char letters[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    unsigned char pool[32];
    size_t have = 0;

    for (size_t i = 0; i < n;) {
        if (!have) {
            have = sizeof pool;
            digest_random(pool, have);
        }
        unsigned v = pool[--have] & 63u; /* 58..63 are thrown away: every letter stays equally likely */
        if (v < sizeof letters - 1)
            dst[i++] = letters[v];
    }
    dst[n] = '\0';
}

bool digest_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

enum err digest_base64(struct buf *out, const void *p, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = p;
    enum err err = buf_reserve(out, (n + 2) / 3 * 4);

    for (size_t i = 0; i < n && !err; i += 3) {
        size_t left = n - i;
        uint32_t v =
            (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) | (left > 2 ? from[i + 2] : 0);
        char four[4] = {letters[v >> 18], letters[v >> 12 & 63], left > 1 ? letters[v >> 6 & 63] : '=',
                        left > 2 ? letters[v & 63] : '='};
        err = buf_append(out, four, sizeof four);
    }
    return err;
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

enum err digest_unbase64(struct buf *out, struct sv s)
{
    uint32_t v = 0;
    unsigned bits = 0, pads = 0;
    enum err err = buf_reserve(out, s.n / 4 * 3 + 3);

    while (s.n && s.p[s.n - 1] == '=' && pads < 2) {
        s.n--;
        pads++;
    }
    if (s.n % 4 == 1 || (pads && (s.n + pads) % 4))
        return ERR_PARSE;
    for (size_t i = 0; i < s.n && !err; i++) {
        int six = base64_value(s.p[i]);
        if (six < 0)
            return ERR_PARSE;
        v = v << 6 | (uint32_t)six;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            err = buf_append_char(out, (char)(v >> bits & 0xFF));
        }
    }
    /* Left-over bits that are set would give two texts for the same bytes. */
    return !err && v & ((1u << bits) - 1) ? ERR_PARSE : err;
}
