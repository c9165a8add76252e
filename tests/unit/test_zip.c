/* The ZIP writer, read back by an independent reader: from the front as streaming tools do, and by the directory. The
 * writer's source is included so that its ZIP64 sizes are met at a kilobyte and not at three gigabytes. */
#define LARGE 1000
#include "server/objects/zip.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct sample {
    const char *name;
    uint64_t size;
    bool folder;
};

static const struct sample samples[] = {
    {"a folder", 0, true},         {"a folder/empty.txt", 0, false}, {"a folder/one.txt", 1, false},
    {"naïve ☃ 🌍.txt", 999, false}, {"large.bin", 1000, false},       {"larger.bin", 200000, false},
};

static unsigned char content_at(uint64_t i)
{
    return (unsigned char)(i * 7 + (i >> 9));
}

/* Bit by bit, as ISO 3309 defines it. */
static uint32_t slow_crc(uint64_t size)
{
    uint32_t c = 0xffffffff;
    for (uint64_t i = 0; i < size; i++) {
        c ^= content_at(i);
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static void add(struct zip *z, const struct sample *s, size_t piece, struct buf *out)
{
    struct zip_entry entry = {s->name, s->size, {INT64_C(1700000001) * US_PER_S}, s->folder};
    unsigned char *bytes = mem_alloc(piece);
    assert_int_equal(zip_begin(z, &entry, out), ERR_OK);
    for (uint64_t at = 0; at < s->size;) {
        size_t n = s->size - at < piece ? (size_t)(s->size - at) : piece;
        for (size_t i = 0; i < n; i++)
            bytes[i] = content_at(at + i);
        assert_int_equal(zip_data(z, bytes, n, out), ERR_OK);
        at += n;
    }
    assert_int_equal(zip_end(z, out), ERR_OK);
    mem_free(bytes);
}

static void make(struct buf *archive, size_t piece)
{
    const struct buf *directory = NULL;
    struct zip *z = zip_new();
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        add(z, &samples[i], piece, archive);
    assert_int_equal(zip_finish(z, &directory), ERR_OK);
    assert_int_equal(buf_append(archive, directory->data, directory->len), ERR_OK);
    zip_free(&z);
}

static uint64_t get(const struct buf *b, size_t at, int width)
{
    uint64_t v = 0;
    assert_true(at + (size_t)width <= b->len);
    for (int i = width - 1; i >= 0; i--)
        v = v << 8 | (unsigned char)b->data[at + (size_t)i];
    return v;
}

/* Follows the stored blocks from `at` and compares the content; returns where they end. */
static size_t read_blocks(const struct buf *b, size_t at, uint64_t size)
{
    uint64_t pos = 0;
    for (bool last = false; !last;) {
        last = get(b, at, 1) & 1;
        uint64_t n = get(b, at + 1, 2);
        assert_int_equal(get(b, at, 1) >> 1, 0);
        assert_int_equal(get(b, at + 3, 2), n ^ 0xffff);
        at += 5;
        for (uint64_t i = 0; i < n; i++, pos++)
            if ((unsigned char)b->data[at + i] != content_at(pos))
                fail_msg("content differs at %llu", (unsigned long long)pos);
        at += n;
    }
    assert_int_equal(pos, size);
    return at;
}

/* One local entry from the front; returns where the next one starts. */
static size_t read_local(const struct buf *b, size_t at, const struct sample *s)
{
    bool wide = s->size >= LARGE;
    size_t name_n = get(b, at + 26, 2), extra_n = get(b, at + 28, 2);
    assert_int_equal(get(b, at, 4), SIG_LOCAL);
    assert_int_equal(get(b, at + 18, 4), wide ? LIMIT32 : 0);
    assert_int_equal(name_n, strlen(s->name) + s->folder);
    assert_memory_equal(b->data + at + 30, s->name, strlen(s->name));
    assert_int_equal(get(b, at + 6, 2) & FLAG_UTF8, FLAG_UTF8);
    size_t data = at + 30 + name_n + extra_n;
    if (s->folder) {
        assert_int_equal(b->data[at + 30 + name_n - 1], '/');
        return data;
    }
    size_t end = read_blocks(b, data, s->size);
    int width = wide ? 8 : 4;
    assert_int_equal(get(b, end, 4), SIG_DESCRIPTOR);
    assert_int_equal(get(b, end + 4, 4), slow_crc(s->size));
    assert_int_equal(get(b, end + 8, width), end - data);
    assert_int_equal(get(b, end + 8 + (size_t)width, width), s->size);
    return end + 8 + 2 * (size_t)width;
}

static size_t read_central(const struct buf *b, size_t at, size_t local, const struct sample *s)
{
    bool wide = s->size >= LARGE;
    size_t name_n = get(b, at + 28, 2), extra_n = get(b, at + 30, 2), extra = at + 46 + name_n;
    assert_int_equal(get(b, at, 4), SIG_CENTRAL);
    assert_int_equal(get(b, at + 16, 4), s->folder ? 0 : slow_crc(s->size));
    assert_int_equal(get(b, at + 24, 4), wide ? LIMIT32 : s->size);
    assert_int_equal(get(b, at + 42, 4), wide ? LIMIT32 : local);
    if (wide) {
        assert_int_equal(get(b, extra, 2), EXTRA_ZIP64);
        assert_int_equal(get(b, extra + 4, 8), s->size);
        assert_int_equal(get(b, extra + 20, 8), local);
        extra += 28;
    }
    assert_int_equal(get(b, extra, 2), EXTRA_TIMESTAMP);
    assert_int_equal(get(b, extra + 5, 4), 1700000001);
    return at + 46 + name_n + extra_n;
}

static void test_archive(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 777, BLOCK_LEN, 65536};
    for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
        struct buf b = BUF_INIT(16 << 20);
        size_t local[ARRAY_LEN(samples)], at = 0;
        make(&b, pieces[p]);
        for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
            local[i] = at;
            at = read_local(&b, at, &samples[i]);
        }
        size_t directory = at;
        for (size_t i = 0; i < ARRAY_LEN(samples); i++)
            at = read_central(&b, at, local[i], &samples[i]);
        assert_int_equal(get(&b, at, 4), SIG_END);
        assert_int_equal(get(&b, at + 10, 2), ARRAY_LEN(samples));
        assert_int_equal(get(&b, at + 12, 4), at - directory);
        assert_int_equal(get(&b, at + 16, 4), directory);
        assert_int_equal(at + 22, b.len);
        buf_done(&b);
    }
}

/* 65,536 entries do not fit the old end record: the ZIP64 one before it tells. */
static void test_many_entries(void **state)
{
    (void)state;
    struct zip *z = zip_new();
    const struct buf *directory = NULL;
    struct buf out = BUF_INIT(1 << 20);
    struct sample folder = {"d", 0, true};
    uint64_t sent = 0;
    for (int i = 0; i < 65536; i++) {
        add(z, &folder, 1, &out);
        sent += out.len;
        buf_reset(&out);
    }
    assert_int_equal(zip_finish(z, &directory), ERR_OK);
    size_t end = directory->len - 22, end64 = end - 20 - 56;
    assert_int_equal(get(directory, end, 4), SIG_END);
    assert_int_equal(get(directory, end + 10, 2), LIMIT16);
    assert_int_equal(get(directory, end - 20, 4), SIG_LOCATOR64);
    assert_int_equal(get(directory, end - 20 + 8, 8), sent + end64);
    assert_int_equal(get(directory, end64, 4), SIG_END64);
    assert_int_equal(get(directory, end64 + 32, 8), 65536);
    assert_int_equal(get(directory, end64 + 40, 8), end64);
    assert_int_equal(get(directory, end64 + 48, 8), sent);
    buf_done(&out);
    zip_free(&z);
}

/* A content of another length than announced must never become a valid archive. */
static void test_wrong_length(void **state)
{
    (void)state;
    struct zip *z = zip_new();
    struct buf out = BUF_INIT(1 << 20);
    struct zip_entry entry = {"x", 10, {0}, false};
    assert_int_equal(zip_begin(z, &entry, &out), ERR_OK);
    assert_int_equal(zip_data(z, "0123456789A", 11, &out), ERR_WRONG);
    assert_int_equal(zip_data(z, "012345678", 9, &out), ERR_OK);
    assert_int_equal(zip_end(z, &out), ERR_WRONG);
    assert_int_equal(zip_begin(z, &entry, &out), ERR_OK); /* and one given up halfway leaks nothing */
    buf_done(&out);
    zip_free(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_archive),
        cmocka_unit_test(test_many_entries),
        cmocka_unit_test(test_wrong_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
