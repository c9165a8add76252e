/* Content: any range equals the whole, any wrong byte is found, a body says what it is. */
#include "base/digest.h"
#include "base/rng.h"
#include "drive/content.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const exts[] = {"pdf", "docx", "png", "svg", "txt", "json", "odt", "ods", "xyz", "", NULL};

static unsigned char *whole(const struct content *c)
{
    unsigned char *body = malloc(c->size + 1);
    assert_non_null(body);
    content_fill(c, 0, body, c->size);
    return body;
}

static void ranges_equal_the_whole(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 7, 0);
    for (size_t e = 0; e < sizeof exts / sizeof exts[0]; e++) {
        struct content c = {.key = 42 + e, .revision = 3, .parent_revision = 2, .size = 10007, .ext = exts[e]};
        unsigned char *body = whole(&c), part[10007];
        for (int i = 0; i < 500; i++) {
            size_t from = rng_below(&rng, i % 2 ? c.size : 200), n = rng_below(&rng, c.size - from) + 1;
            content_fill(&c, from, part, n);
            assert_memory_equal(part, body + from, n);
        }
        const char *magic;
        size_t magic_n = content_magic(exts[e], &magic);
        assert_memory_equal(body, magic, magic_n);
        assert_true(content_head_len(exts[e]) <= CONTENT_HEAD_MAX);
        free(body);
    }
}

static void identified_from_the_head(void **state)
{
    (void)state;
    for (size_t e = 0; e < sizeof exts / sizeof exts[0]; e++) {
        struct content c = {.key = UINT64_MAX - e, .revision = 9, .parent_revision = 8, .size = 5000, .ext = exts[e]};
        struct content got;
        unsigned char *body = whole(&c);
        assert_true(content_identify((struct sv){(char *)body, CONTENT_HEAD_MAX}, exts[e], &got));
        assert_int_equal(got.key, c.key);
        assert_int_equal(got.revision, 9);
        assert_int_equal(got.parent_revision, 8);
        assert_int_equal(got.size, 5000);
        /* Renamed to another extension: found all the same, and what is found makes the same bytes. */
        assert_true(content_identify((struct sv){(char *)body, CONTENT_HEAD_MAX}, "mp4", &got));
        unsigned char *again = whole(&got);
        assert_memory_equal(again, body, c.size);
        free(again);
        assert_false(content_identify((struct sv){(char *)body, content_head_len(exts[e]) - 1}, exts[e], &got));
        body[content_head_len(exts[e]) - 30] ^= 1;
        assert_false(content_identify((struct sv){(char *)body, CONTENT_HEAD_MAX}, exts[e], &got));
        free(body);
    }
}

static void wrong_bytes_are_found(void **state)
{
    (void)state;
    struct content c = {.key = 5, .revision = 1, .size = 9001, .ext = "pdf"};
    static const size_t at[] = {0, 5, 63, 64, 80, 4095, 4096, 8999, 9000};
    unsigned char *body = whole(&c);
    struct content_check k;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        body[at[i]] ^= 0x40;
        content_check_init(&k, &c, 0);
        bool ok = true;
        for (size_t n = 0; n < c.size && ok; n += 1000)
            ok = content_check_feed(&k, body + n, c.size - n < 1000 ? c.size - n : 1000);
        assert_false(ok);
        assert_int_equal(k.wrong_at, at[i]);
        assert_false(content_check_complete(&k));
        body[at[i]] ^= 0x40;
    }
    content_check_init(&k, &c, 0);
    assert_true(content_check_feed(&k, body, 9000));
    assert_false(content_check_complete(&k)); /* cut short */
    assert_true(content_check_feed(&k, body + 9000, 1));
    assert_true(content_check_complete(&k));
    assert_false(content_check_feed(&k, "x", 1)); /* too long */
    assert_int_equal(k.wrong_at, 9001);
    content_check_init(&k, &c, 4000); /* a range */
    assert_true(content_check_feed(&k, body + 4000, 5001));
    assert_true(content_check_complete(&k));
    free(body);
}

/* U08: beyond 2 and 4 GiB a byte still depends on its whole position, and what is wrong there is found there. */
static void far_positions(void **state)
{
    (void)state;
    static const uint64_t lines[] = {UINT64_C(1) << 31, UINT64_C(1) << 32};
    struct content c = {.key = 7, .revision = 2, .size = (UINT64_C(1) << 32) + 8193, .ext = "mp4"}, got;
    unsigned char head[CONTENT_HEAD_MAX], near[64], one, low[64];
    content_fill(&c, 0, head, sizeof head);
    assert_true(content_identify((struct sv){(char *)head, sizeof head}, "mp4", &got));
    assert_true(got.size == c.size);
    for (size_t i = 0; i < 2; i++) {
        content_fill(&c, lines[i] - 32, near, sizeof near);
        for (size_t k = 0; k < sizeof near; k++) {
            content_fill(&c, lines[i] - 32 + k, &one, 1);
            assert_int_equal(near[k], one);
        }
        content_fill(&c, lines[i] + 4096, near, sizeof near);
        content_fill(&c, 4096, low, sizeof low);
        assert_memory_not_equal(near, low, 16);
    }
    struct content_check k;
    uint64_t from = c.size - sizeof near;
    content_fill(&c, from, near, sizeof near);
    content_check_init(&k, &c, from);
    assert_true(content_check_feed(&k, near, sizeof near));
    assert_true(content_check_complete(&k));
    assert_false(content_check_feed(&k, "x", 1));
    assert_true(k.wrong_at == c.size);
    near[33] ^= 1;
    content_check_init(&k, &c, from);
    assert_false(content_check_feed(&k, near, sizeof near));
    assert_true(k.wrong_at == from + 33);
}

static void revisions_and_keys_differ(void **state)
{
    (void)state;
    struct content a = {.key = 1, .revision = 1, .size = 300, .ext = "bin"}, b = a;
    unsigned char x[300], y[300];
    b.revision = 2;
    content_fill(&a, 0, x, 300);
    content_fill(&b, 0, y, 300);
    assert_memory_not_equal(x + 64, y + 64, 8);
    b = a;
    b.key = 2;
    content_fill(&b, 0, y, 300);
    assert_memory_not_equal(x + 64, y + 64, 8);
    b = a;
    b.parent_revision = 77;
    content_fill(&b, 0, y, 300);
    assert_memory_not_equal(x, y, 64);
}

static void short_bodies_are_prefixes(void **state)
{
    (void)state;
    for (uint64_t size = 0; size < 90; size++) {
        struct content c = {.key = 3, .size = size, .ext = "pdf"};
        unsigned char *body = whole(&c), sum[20], want[32];
        struct digest *d = digest_new_sha1();
        digest_update(d, body, size);
        digest_final(d, want);
        digest_free(&d);
        content_sha1(&c, sum);
        assert_memory_equal(sum, want, 20);
        if (size >= 4)
            assert_memory_equal(body, "%PDF", 4);
        free(body);
    }
}

static void incompressible(void **state)
{
    (void)state;
    static unsigned char body[1 << 20];
    unsigned count[256] = {0};
    struct content c = {.key = 3, .size = sizeof body, .ext = "txt"};
    content_fill(&c, 0, body, sizeof body);
    for (size_t i = 0; i < sizeof body; i++)
        count[body[i]]++;
    for (int i = 0; i < 256; i++) /* 4096 expected, standard deviation 64 */
        assert_in_range(count[i], 4096 - 448, 4096 + 448);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_equal_the_whole),
        cmocka_unit_test(identified_from_the_head),
        cmocka_unit_test(wrong_bytes_are_found),
        cmocka_unit_test(revisions_and_keys_differ),
        cmocka_unit_test(short_bodies_are_prefixes),
        cmocka_unit_test(incompressible),
        cmocka_unit_test(far_positions),
    };
    return cmocka_run_group_tests_name("content", tests, NULL, NULL);
}
