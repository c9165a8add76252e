#include "base/aead.h"
#include "base/digest.h"
#include "unit.h"
#include <string.h>

static const char *hex(const void *p, size_t n)
{
    static char text[129];
    digest_hex(text, p, n);
    return text;
}

/* FIPS 180-4 and RFC 4231 examples. */
static void hashes(void **state)
{
    (void)state;
    unsigned char out[32];
    digest_sha256("abc", 3, out);
    assert_string_equal(hex(out, 32), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    struct digest *d = digest_new();
    digest_update(d, "a", 1);
    digest_update(d, "bc", 2);
    digest_final(d, out);
    assert_string_equal(hex(out, 32), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_final(d, out); /* from the start again */
    assert_string_equal(hex(out, 32), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_free(&d);
    digest_free(&d);
    d = digest_new_sha1();
    for (int again = 0; again < 2; again++) {
        digest_update(d, "abc", 3);
        digest_final(d, out);
        assert_string_equal(hex(out, DIGEST_SHA1_LEN), "a9993e364706816aba3e25717850c26c9cd0d89d");
    }
    digest_free(&d);
    digest_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
    assert_string_equal(hex(out, 32), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    digest_hmac_sha256("", 0, "", 0, out);
    assert_string_equal(hex(out, 32), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
    assert_true(digest_equal("ab", "ab", 2));
    assert_false(digest_equal("ab", "ac", 2));
}

static void random_ids(void **state)
{
    (void)state;
    unsigned seen[256] = {0};
    char id[17], other[17];
    for (int i = 0; i < 2000; i++) {
        digest_random_id(id, 16);
        assert_int_equal(strlen(id), 16);
        for (const char *c = id; *c; c++)
            seen[(unsigned char)*c]++;
    }
    digest_random_id(other, 16);
    assert_string_not_equal(id, other);
    unsigned letters = 0;
    for (int c = 0; c < 256; c++)
        if (seen[c]) {
            letters++;
            assert_null(strchr("0OIl", c));
            assert_true(seen[c] > 400 && seen[c] < 700); /* 552 expected */
        }
    assert_int_equal(letters, 58);
}

static void base64(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"},
                                          {"\xff\xfe\xfd", "//79"}};
    struct buf b = BUF_INIT(100);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_reset(&b);
        assert_int_equal(digest_base64(&b, rows[i][0], strlen(rows[i][0])), ERR_OK);
        assert_string_equal(buf_cstr(&b), rows[i][1]);
        buf_reset(&b);
        assert_int_equal(digest_unbase64(&b, sv_of(rows[i][1])), ERR_OK);
        assert_string_equal(buf_cstr(&b), rows[i][0]);
    }
    buf_reset(&b);
    assert_int_equal(digest_unbase64(&b, SV("__79")), ERR_OK); /* URL alphabet */
    assert_int_equal(digest_unbase64(&b, SV("Zg")), ERR_OK);   /* no padding */
    assert_string_equal(b.data, "\xff\xfe\xfd"
                                "f");
    static const char *const bad[] = {"Z", "Zg=", "Zg===", "Z===", "Zh==", "Zm9v====", "Z m9", "Zm=9", "Zm9*", "="};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(digest_unbase64(&b, sv_of(bad[i])), ERR_PARSE);
    buf_done(&b);
}

/* NIST GCM test vectors of AES-256, cases 13, 14 and 16 of the GCM specification. */
static void gcm_vectors(void **state)
{
    (void)state;
    unsigned char zero[32] = {0}, out[80];
    struct aead *a = aead_new(zero);
    aead_seal(a, zero, NULL, 0, NULL, 0, out);
    assert_string_equal(hex(out, 16), "530f8afbc74536b9a963b4f1c4cb738b");
    aead_seal(a, zero, NULL, 0, zero, 16, out);
    assert_string_equal(hex(out, 32), "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
    aead_free(&a);
    assert_null(a);
    aead_free(&a);
}

static void sealing(void **state)
{
    (void)state;
    unsigned char key[32], nonce[12] = {1}, text[1000], sealed[1016], open[1000];
    digest_random(key, sizeof key);
    memset(text, 'x', sizeof text);
    struct aead *a = aead_new(key);
    aead_seal(a, nonce, "aad", 3, text, sizeof text, sealed);
    assert_int_equal(aead_open(a, nonce, "aad", 3, sealed, sizeof sealed, open), ERR_OK);
    assert_memory_equal(open, text, sizeof text);
    assert_int_equal(aead_open(a, nonce, "aae", 3, sealed, sizeof sealed, open), ERR_WRONG);
    nonce[0] = 2;
    assert_int_equal(aead_open(a, nonce, "aad", 3, sealed, sizeof sealed, open), ERR_WRONG);
    nonce[0] = 1;
    for (size_t at = 0; at < sizeof sealed; at += 100) {
        sealed[at] ^= 1;
        assert_int_equal(aead_open(a, nonce, "aad", 3, sealed, sizeof sealed, open), ERR_WRONG);
        sealed[at] ^= 1;
    }
    assert_int_equal(aead_open(a, nonce, "aad", 3, sealed, sizeof sealed - 1, open), ERR_WRONG);
    assert_int_equal(aead_open(a, nonce, "aad", 3, sealed, 15, open), ERR_WRONG);
    /* in place, both ways */
    unsigned char same[1016];
    memcpy(same, text, sizeof text);
    aead_seal(a, nonce, "aad", 3, same, sizeof text, same);
    assert_memory_equal(same, sealed, sizeof sealed);
    assert_int_equal(aead_open(a, nonce, "aad", 3, same, sizeof same, same), ERR_OK);
    assert_memory_equal(same, text, sizeof text);
    aead_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes),      cmocka_unit_test(random_ids), cmocka_unit_test(base64),
        cmocka_unit_test(gcm_vectors), cmocka_unit_test(sealing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
