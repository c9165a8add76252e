#include "server/objects/seal.h"

#include "base/digest.h"
#include "base/mem.h"

#include <string.h>

/* The doubtful decision here is the nonce without randomness. GCM breaks when a nonce repeats under one key; ours is a
 * counter, and the key is new with each object's 128-bit random salt, so a repeat would need the same salt drawn twice.
 */

static const char magic[8] = "DSEAL1";
#define SALT_LEN  16
#define CHECK_LEN 8

struct seal {
    struct aead *aead;
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool unhex(unsigned char *dst, size_t n, struct sv text)
{
    if (text.n != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text.p[2 * i]), low = hex_digit(text.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        dst[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

enum err seal_key_parse(struct seal_key *out, const char *text, struct errinfo *ei)
{
    struct sv trimmed = sv_trim(sv_of(text));
    if (unhex(out->bytes, sizeof(out->bytes), trimmed))
        return ERR_OK;
    struct buf raw = BUF_INIT(256);
    bool ok = digest_unbase64(&raw, trimmed) == ERR_OK && raw.len == sizeof(out->bytes);
    if (ok)
        memcpy(out->bytes, raw.data, sizeof(out->bytes));
    buf_done(&raw);
    if (ok)
        return ERR_OK;
    return err_set(ei, ERR_USAGE,
                   "FILE_ENCRYPTION_KEY must hold 32 bytes as 64 hex digits or in base64; "
                   "make one with: openssl rand -base64 32");
}

uint64_t seal_segments(uint64_t plain)
{
    return plain == 0 ? 1 : plain / SEAL_SEGMENT_LEN + (plain % SEAL_SEGMENT_LEN != 0);
}

struct seal_range seal_range_of(uint64_t plain, uint64_t offset, uint64_t length)
{
    struct seal_range r;
    uint64_t last = (offset + length - 1) / SEAL_SEGMENT_LEN;
    r.first = offset / SEAL_SEGMENT_LEN;
    r.count = last - r.first + 1;
    r.skip = (size_t)(offset % SEAL_SEGMENT_LEN);
    r.sealed_offset = SEAL_HEADER_LEN + r.first * SEAL_SEALED_LEN;
    uint64_t end = SEAL_HEADER_LEN + (last + 1) * SEAL_SEALED_LEN;
    uint64_t size = schema_sealed_size(plain);
    r.sealed_length = (end < size ? end : size) - r.sealed_offset;
    return r;
}

/* HMAC-SHA256 of a label and the salt under the master key. */
static void derive(const struct seal_key *key, const char *label, const unsigned char *salt,
                   unsigned char out[DIGEST_SHA256_LEN])
{
    unsigned char text[8 + SALT_LEN] = {0};
    memcpy(text, label, strlen(label));
    memcpy(text + 8, salt, SALT_LEN);
    digest_hmac_sha256(key->bytes, sizeof(key->bytes), text, sizeof(text), out);
}

static struct aead *object_cipher(const struct seal_key *key, const char *label, const unsigned char *salt)
{
    unsigned char derived[DIGEST_SHA256_LEN];
    _Static_assert(SEAL_TAG_LEN == AEAD_TAG_LEN, "the segment is one GCM message");
    _Static_assert(DIGEST_SHA256_LEN == AEAD_KEY_LEN, "the MAC is the key");
    derive(key, label, salt, derived);
    struct aead *a = aead_new(derived);
    explicit_bzero(derived, sizeof(derived));
    return a;
}

static struct seal *seal_of(const struct seal_key *key, const unsigned char *salt)
{
    struct seal *s = mem_alloc(sizeof(*s));
    s->aead = object_cipher(key, "object", salt);
    return s;
}

struct seal *seal_new(const struct seal_key *key, unsigned char header[SEAL_HEADER_LEN])
{
    unsigned char *salt = header + sizeof(magic), check[DIGEST_SHA256_LEN];
    memcpy(header, magic, sizeof(magic));
    digest_random(salt, SALT_LEN);
    derive(key, "header", salt, check);
    memcpy(salt + SALT_LEN, check, CHECK_LEN);
    return seal_of(key, salt);
}

enum err seal_open(struct seal **out, const struct seal_key *key, const unsigned char header[SEAL_HEADER_LEN],
                   struct errinfo *ei)
{
    const unsigned char *salt = header + sizeof(magic);
    unsigned char check[DIGEST_SHA256_LEN];
    if (memcmp(header, magic, sizeof(magic)) != 0)
        return err_set(ei, ERR_WRONG, "the object is not one that this server sealed");
    derive(key, "header", salt, check);
    if (!digest_equal(check, salt + SALT_LEN, CHECK_LEN))
        return err_set(ei, ERR_WRONG,
                       "the object's header is damaged, or was sealed under another FILE_ENCRYPTION_KEY");
    *out = seal_of(key, salt);
    return ERR_OK;
}

void seal_free(struct seal **s)
{
    if (!*s)
        return;
    aead_free(&(*s)->aead);
    mem_free(*s);
    *s = NULL;
}

/* 8 bytes number, big-endian, then the mark of the last segment. */
static void segment_nonce(unsigned char nonce[AEAD_NONCE_LEN], uint64_t index, bool last)
{
    memset(nonce, 0, AEAD_NONCE_LEN);
    for (int i = 0; i < 8; i++)
        nonce[i] = (unsigned char)(index >> (56 - 8 * i));
    nonce[8] = last;
}

size_t seal_segment_close(struct seal *s, uint64_t index, bool last, void *p, size_t n)
{
    unsigned char nonce[AEAD_NONCE_LEN];
    segment_nonce(nonce, index, last);
    aead_seal(s->aead, nonce, NULL, 0, p, n, p);
    return n + SEAL_TAG_LEN;
}

enum err seal_segment_open(struct seal *s, uint64_t index, bool last, void *p, size_t n, struct errinfo *ei)
{
    unsigned char nonce[AEAD_NONCE_LEN];
    segment_nonce(nonce, index, last);
    bool fits = n >= SEAL_TAG_LEN && n <= SEAL_SEALED_LEN;
    if (fits && aead_open(s->aead, nonce, NULL, 0, p, n, p) == ERR_OK)
        return ERR_OK;
    return err_set(ei, ERR_WRONG, "segment %llu of the object was altered or cut", (unsigned long long)index);
}

enum err seal_text(const struct seal_key *key, const char *purpose, struct sv plain, struct buf *out)
{
    unsigned char salt[SALT_LEN], nonce[AEAD_NONCE_LEN] = {0};
    size_t n = SALT_LEN + plain.n + SEAL_TAG_LEN;
    unsigned char *raw = mem_alloc(n);
    digest_random(salt, sizeof(salt));
    memcpy(raw, salt, sizeof(salt));
    struct aead *a = object_cipher(key, "text", salt);
    aead_seal(a, nonce, purpose, strlen(purpose), plain.p, plain.n, raw + SALT_LEN);
    aead_free(&a);
    enum err e = digest_base64(out, raw, n);
    mem_free(raw);
    return e;
}

enum err unseal_text(const struct seal_key *key, const char *purpose, struct sv sealed, struct buf *out)
{
    unsigned char nonce[AEAD_NONCE_LEN] = {0};
    struct buf raw = BUF_INIT(64 << 10);
    enum err e = digest_unbase64(&raw, sealed);
    if (e == ERR_OK && raw.len < SALT_LEN + SEAL_TAG_LEN)
        e = ERR_PARSE;
    if (e != ERR_OK)
        goto out;
    struct aead *a = object_cipher(key, "text", (unsigned char *)raw.data);
    size_t n = raw.len - SALT_LEN;
    e = aead_open(a, nonce, purpose, strlen(purpose), raw.data + SALT_LEN, n, raw.data + SALT_LEN);
    aead_free(&a);
    if (e == ERR_OK)
        e = buf_append(out, raw.data + SALT_LEN, n - SEAL_TAG_LEN);
out:
    buf_done(&raw);
    return e;
}
