#include "base/arena.h"
#include "base/buf.h"
#include "unit.h"
#include <string.h>

static void grows_and_stays_terminated(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(1000);
    assert_string_equal(buf_cstr(&b), "");
    assert_int_equal(buf_append(&b, "ab", 2), ERR_OK);
    assert_int_equal(buf_append_str(&b, "cd"), ERR_OK);
    assert_int_equal(buf_append_char(&b, 'e'), ERR_OK);
    assert_int_equal(buf_appendf(&b, "%d-%s", 7, "x"), ERR_OK);
    assert_string_equal(b.data, "abcde7-x");
    assert_int_equal(b.len, 8);
    buf_consume(&b, 3);
    assert_string_equal(b.data, "de7-x");
    buf_consume(&b, 99);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
    buf_done(&b);
    assert_null(b.data);
    assert_int_equal(b.max, 1000);
}

/* Exactly the maximum fits; one byte more is refused and changes nothing. */
static void the_maximum_is_hard(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(10);
    assert_int_equal(buf_append_str(&b, "0123456789"), ERR_OK);
    assert_int_equal(buf_append_char(&b, 'x'), ERR_LIMIT);
    assert_int_equal(buf_appendf(&b, "%d", 1), ERR_LIMIT);
    assert_int_equal(buf_append(&b, "", 0), ERR_OK);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), ERR_LIMIT);
    assert_string_equal(b.data, "0123456789");
    assert_int_equal(b.cap, 11);
    buf_done(&b);
}

static void take_moves_out(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(100);
    size_t n = 9;
    char *empty = buf_take(&b, &n);
    assert_string_equal(empty, "");
    assert_int_equal(n, 0);
    mem_free(empty);
    assert_int_equal(buf_append(&b, "a\0b", 3), ERR_OK);
    char *text = buf_take(&b, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(text, "a\0b", 4);
    assert_null(b.data);
    mem_free(text);
}

static void arena_is_aligned_and_zeroed(void **state)
{
    (void)state;
    struct arena *a = arena_new(0);
    for (size_t round = 0; round < 3; round++) {
        for (size_t n = 0; n < 3000; n += 7) {
            unsigned char *p = arena_alloc(a, n);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xAA, n);
        }
        arena_reset(a);
    }
    char *big = arena_alloc(a, 1 << 20);
    big[(1 << 20) - 1] = 'x';
    assert_string_equal(arena_printf(a, "%s/%d", "k", 5), "k/5");
    assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
    assert_string_equal(arena_strndup(a, NULL, 0), ""); /* as what is left of a split text */
    assert_null(arena_strdup(a, NULL));
    arena_free(&a);
    assert_null(a);
    arena_free(&a);
}

static void memory_helpers(void **state)
{
    (void)state;
    char *copy = mem_strndup("ab", 9);
    assert_string_equal(copy, "ab");
    MEM_FREE(copy);
    assert_null(copy);
    assert_null(mem_strdup(NULL));
    void *none = mem_alloc(0);
    assert_non_null(none);
    mem_free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_stays_terminated),
        cmocka_unit_test(the_maximum_is_hard),
        cmocka_unit_test(take_moves_out),
        cmocka_unit_test(arena_is_aligned_and_zeroed),
        cmocka_unit_test(memory_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
