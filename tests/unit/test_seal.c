/* Sealed bodies: sizes and ranges at every border, and that nothing altered, cut, lengthened or swapped opens. */
#include "server/objects/seal.h"

#include "base/digest.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SEG SEAL_SEGMENT_LEN

static const uint64_t sizes[] = {0, 1, 15, 16, 17, SEG - 1, SEG, SEG + 1, 2 * SEG - 1, 2 * SEG, 2 * SEG + 1, 3 * SEG};

static struct seal_key key_of(unsigned char fill)
{
    struct seal_key key;
    memset(key.bytes, fill, sizeof(key.bytes));
    return key;
}

static unsigned char byte_at(uint64_t i)
{
    return (unsigned char)(i * 131 + (i >> 8) * 17 + (i >> 16));
}

/* The whole sealed object in memory; the caller frees it. */
static unsigned char *seal_object(const struct seal_key *key, uint64_t plain, size_t *sealed_n)
{
    unsigned char *object = mem_alloc(schema_sealed_size(plain) + SEAL_TAG_LEN), *at = object + SEAL_HEADER_LEN;
    struct seal *s = seal_new(key, object);
    uint64_t segments = seal_segments(plain);
    for (uint64_t i = 0; i < segments; i++) {
        size_t n = i + 1 < segments ? SEG : (size_t)(plain - i * SEG);
        for (size_t k = 0; k < n; k++)
            at[k] = byte_at(i * SEG + k);
        at += seal_segment_close(s, i, i + 1 == segments, at, n);
    }
    seal_free(&s);
    *sealed_n = (size_t)(at - object);
    return object;
}

/* Opens all segments of an object of n bytes in place; the first failure ends it. *plain is what came out. */
static enum err open_object(const struct seal_key *key, unsigned char *object, size_t n, uint64_t *plain)
{
    struct seal *s = NULL;
    struct errinfo ei;
    *plain = 0;
    if (n < SEAL_HEADER_LEN)
        return ERR_WRONG;
    enum err e = seal_open(&s, key, object, &ei);
    if (e != ERR_OK)
        return e;
    size_t at = SEAL_HEADER_LEN;
    for (uint64_t i = 0; e == ERR_OK; i++) {
        size_t take = n - at < SEAL_SEALED_LEN ? n - at : SEAL_SEALED_LEN;
        bool last = at + take == n;
        e = seal_segment_open(s, i, last, object + at, take, &ei);
        if (e == ERR_OK)
            *plain += take - SEAL_TAG_LEN;
        at += take;
        if (last)
            break;
    }
    seal_free(&s);
    return e;
}

static void test_sizes(void **state)
{
    (void)state;
    struct seal_key key = key_of(7);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = 0;
        uint64_t plain = 0;
        unsigned char *object = seal_object(&key, sizes[i], &n);
        assert_int_equal(n, schema_sealed_size(sizes[i]));
        assert_int_equal(open_object(&key, object, n, &plain), ERR_OK);
        assert_int_equal(plain, sizes[i]);
        mem_free(object);
    }
}

/* Fetches and opens just what seal_range_of says, and compares it with the content. */
static void check_range(const struct seal_key *key, const unsigned char *object, uint64_t plain, uint64_t offset,
                        uint64_t length)
{
    struct seal_range r = seal_range_of(plain, offset, length);
    struct errinfo ei;
    struct seal *s = NULL;
    assert_true(r.sealed_offset + r.sealed_length <= schema_sealed_size(plain));
    assert_int_equal(seal_open(&s, key, object, &ei), ERR_OK);
    unsigned char *part = mem_dup(object + r.sealed_offset, r.sealed_length);
    uint64_t at = 0, pos = offset - r.skip;
    for (uint64_t i = 0; i < r.count; i++) {
        uint64_t left = r.sealed_length - at;
        size_t n = left < SEAL_SEALED_LEN ? (size_t)left : SEAL_SEALED_LEN;
        bool last = r.first + i + 1 == seal_segments(plain);
        assert_int_equal(seal_segment_open(s, r.first + i, last, part + at, n, &ei), ERR_OK);
        for (size_t k = 0; k < n - SEAL_TAG_LEN; k++, pos++)
            if (pos >= offset && pos < offset + length && part[at + k] != byte_at(pos))
                fail_msg("byte %llu differs", (unsigned long long)pos);
        at += n;
    }
    assert_int_equal(at, r.sealed_length);
    assert_true(pos >= offset + length);
    assert_true(pos - (offset + length) < SEG); /* no needless segment behind */
    assert_true(r.skip < SEG);                  /* nor before */
    mem_free(part);
    seal_free(&s);
}

static void test_ranges(void **state)
{
    (void)state;
    struct seal_key key = key_of(9);
    const int64_t near[] = {-17, -16, -1, 0, 1, 16};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        int64_t plain = (int64_t)sizes[i];
        size_t n = 0;
        unsigned char *object = seal_object(&key, sizes[i], &n);
        /* every pair of positions next to a border */
        for (int64_t a = 0; a <= plain; a += SEG)
            for (size_t x = 0; x < ARRAY_LEN(near); x++)
                for (int64_t b = a; b <= plain + SEG; b += SEG)
                    for (size_t y = 0; y < ARRAY_LEN(near); y++) {
                        int64_t from = a + near[x], to = b + near[y];
                        if (from >= 0 && to > from && to <= plain)
                            check_range(&key, object, sizes[i], (uint64_t)from, (uint64_t)(to - from));
                    }
        mem_free(object);
    }
}

/* U08: sizes and places at the lines of 2 and 4 GiB, worked out by hand. */
static void test_large(void **state)
{
    (void)state;
    static const struct {
        uint64_t plain, segments, sealed;
    } objects[] = {
        {2147483647, 32768, 2148007967}, {2147483648, 32768, 2148007968}, {4294967295, 65536, 4296015903},
        {4294967296, 65536, 4296015904}, {4294967297, 65537, 4296015921},
    };
    static const struct {
        uint64_t offset, length, first, count, sealed_offset, sealed_length;
        size_t skip;
    } ranges[] = {
        {2147483640, 16, 32767, 2, 2147942416, 131104, 65528}, /* over 2 GiB */
        {2147483648, 1, 32768, 1, 2148007968, 65552, 0},       /* from there */
        {4294967290, 7, 65535, 2, 4295950352, 65569, 65530},   /* over 4 GiB to the end */
        {4294967296, 1, 65536, 1, 4296015904, 17, 0},          /* the last byte */
        {0, 4294967297, 0, 65537, 32, 4296015889, 0},          /* all of it */
        {1, 4294967295, 0, 65536, 32, 4296015872, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        assert_true(seal_segments(objects[i].plain) == objects[i].segments);
        assert_true(schema_sealed_size(objects[i].plain) == objects[i].sealed);
    }
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        struct seal_range r = seal_range_of(4294967297, ranges[i].offset, ranges[i].length);
        if (r.first != ranges[i].first || r.count != ranges[i].count || r.sealed_offset != ranges[i].sealed_offset ||
            r.sealed_length != ranges[i].sealed_length || r.skip != ranges[i].skip)
            fail_msg("range %zu: %llu segments from %llu, %llu bytes from %llu, skip %zu", i,
                     (unsigned long long)r.count, (unsigned long long)r.first, (unsigned long long)r.sealed_length,
                     (unsigned long long)r.sealed_offset, r.skip);
    }
}

/* A segment opens at its own place alone, also where its number outgrows 16 or 32 bits. */
static void test_far_segments(void **state)
{
    (void)state;
    static const uint64_t at[] = {0, 32767, 32768, 65535, 65536, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 65536};
    struct seal_key key = key_of(3);
    unsigned char header[SEAL_HEADER_LEN], text[8 + SEAL_TAG_LEN];
    struct errinfo ei;
    struct seal *s = seal_new(&key, header);
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        for (size_t k = 0; k < ARRAY_LEN(at); k++) {
            memcpy(text, "segment.", 8);
            assert_int_equal(seal_segment_close(s, at[i], true, text, 8), sizeof(text));
            assert_int_equal(seal_segment_open(s, at[k], true, text, sizeof(text), &ei), i == k ? ERR_OK : ERR_WRONG);
        }
    seal_free(&s);
}

/* What a hostile or broken store may do to an object, and where. */
enum damage { FLIP, CUT, GROW, SWAP, DROP_FIRST, DUPLICATE };
static const struct {
    const char *what;
    enum damage damage;
    uint64_t plain;
    size_t at;
} damages[] = {
    {"magic", FLIP, 10, 0},
    {"salt", FLIP, 10, 8},
    {"header check", FLIP, 10, 31},
    {"first ciphertext byte", FLIP, 10, 32},
    {"last tag byte", FLIP, 10, 32 + 10 + 15},
    {"tag of an empty file", FLIP, 0, 32},
    {"a middle segment", FLIP, 3 * SEG, 32 + SEAL_SEALED_LEN + 5},
    {"cut inside the header", CUT, 10, 20},
    {"cut to the header", CUT, 10, 32},
    {"cut to the header, empty file", CUT, 0, 32},
    {"cut inside a segment", CUT, 2 * SEG, 32 + SEAL_SEALED_LEN + 100},
    {"cut at a segment's border", CUT, 2 * SEG, 32 + SEAL_SEALED_LEN},
    {"cut by the last short segment", CUT, 2 * SEG + 1, 32 + 2 * SEAL_SEALED_LEN},
    {"one byte more", GROW, 10, 1},
    {"one byte more at a border", GROW, SEG, 1},
    {"two segments swapped", SWAP, 3 * SEG, 0},
    {"the first segment dropped", DROP_FIRST, 3 * SEG, 0},
    {"the first segment twice", DUPLICATE, 2 * SEG, 0},
};

static size_t inflict(unsigned char **object, size_t n, enum damage damage, size_t at)
{
    unsigned char *body = *object + SEAL_HEADER_LEN;
    switch (damage) {
    case FLIP:
        (*object)[at] ^= 1;
        return n;
    case CUT:
        return at;
    case GROW:
        *object = mem_realloc(*object, n + at);
        memset(*object + n, 0, at);
        return n + at;
    case SWAP:
        for (size_t i = 0; i < SEAL_SEALED_LEN; i++) {
            unsigned char c = body[i];
            body[i] = body[i + SEAL_SEALED_LEN];
            body[i + SEAL_SEALED_LEN] = c;
        }
        return n;
    case DROP_FIRST:
        memmove(body, body + SEAL_SEALED_LEN, n - SEAL_HEADER_LEN - SEAL_SEALED_LEN);
        return n - SEAL_SEALED_LEN;
    case DUPLICATE:
        memcpy(body + SEAL_SEALED_LEN, body, SEAL_SEALED_LEN);
        return n;
    }
    return n;
}

static void test_damage(void **state)
{
    (void)state;
    struct seal_key key = key_of(3);
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        size_t n = 0;
        uint64_t plain = 0;
        unsigned char *object = seal_object(&key, damages[i].plain, &n);
        n = inflict(&object, n, damages[i].damage, damages[i].at);
        if (open_object(&key, object, n, &plain) != ERR_WRONG)
            fail_msg("%s went unnoticed", damages[i].what);
        mem_free(object);
    }
}

/* Segments of one object never open in another, and another master key opens nothing. */
static void test_keys(void **state)
{
    (void)state;
    struct seal_key key = key_of(1), other = key_of(2);
    size_t n = 0, m = 0;
    uint64_t plain = 0;
    unsigned char *a = seal_object(&key, 2 * SEG, &n), *b = seal_object(&key, 2 * SEG, &m);
    assert_memory_not_equal(a, b, SEAL_HEADER_LEN);
    memcpy(b + SEAL_HEADER_LEN, a + SEAL_HEADER_LEN, SEAL_SEALED_LEN);
    assert_int_equal(open_object(&key, b, m, &plain), ERR_WRONG);

    struct seal *s = NULL;
    struct errinfo ei;
    assert_int_equal(seal_open(&s, &other, a, &ei), ERR_WRONG);
    assert_non_null(strstr(ei.msg, "FILE_ENCRYPTION_KEY"));
    mem_free(a);
    mem_free(b);
}

static void test_key_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", true},
        {"000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F", true},
        {" AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", true},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", true},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==", false},
        {"000102030405060708090a0b0c0d0e0f", false},
        {"correct horse battery staple", false},
        {"", false},
        {NULL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seal_key key;
        struct errinfo ei;
        enum err e = seal_key_parse(&key, cases[i].text, &ei);
        assert_int_equal(e, cases[i].ok ? ERR_OK : ERR_USAGE);
        for (int k = 0; cases[i].ok && k < AEAD_KEY_LEN; k++)
            assert_int_equal(key.bytes[k], k);
        if (!cases[i].ok && cases[i].text && *cases[i].text)
            assert_null(strstr(ei.msg, cases[i].text));
    }
}

static void test_text(void **state)
{
    (void)state;
    struct seal_key key = key_of(5), other = key_of(6);
    struct buf sealed = BUF_INIT(1024), again = BUF_INIT(1024), plain = BUF_INIT(1024);
    assert_int_equal(seal_text(&key, "s3 secret", SV("swordfish"), &sealed), ERR_OK);
    assert_int_equal(seal_text(&key, "s3 secret", SV("swordfish"), &again), ERR_OK);
    assert_string_not_equal(sealed.data, again.data);
    struct sv text = {sealed.data, sealed.len};
    assert_int_equal(unseal_text(&key, "s3 secret", text, &plain), ERR_OK);
    assert_string_equal(plain.data, "swordfish");
    assert_int_not_equal(unseal_text(&key, "s3 access", text, &plain), ERR_OK);
    assert_int_not_equal(unseal_text(&other, "s3 secret", text, &plain), ERR_OK);
    assert_int_not_equal(unseal_text(&key, "s3 secret", (struct sv){text.p, 20}, &plain), ERR_OK);
    assert_int_not_equal(unseal_text(&key, "s3 secret", SV(""), &plain), ERR_OK);
    assert_string_equal(plain.data, "swordfish"); /* failures appended nothing */
    buf_done(&sealed);
    buf_done(&again);
    buf_done(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_ranges),       cmocka_unit_test(test_damage),
        cmocka_unit_test(test_large),     cmocka_unit_test(test_far_segments), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_key_parse), cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
