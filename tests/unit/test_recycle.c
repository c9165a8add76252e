/* Memory that is kept by size. */
#include "base/recycle.h"
#include "unit.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static void sizes_come_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 24, 25, 40, 41, 1000, 1033, 4097, 16385, 20488, 20489, 70000};
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            char *p = recycle_alloc(sizes[i]), *q = recycle_alloc(sizes[i]);
            assert_ptr_not_equal(p, q);
            assert_int_equal((uintptr_t)p % 16, 0);
            memset(p, 'p', sizes[i]);
            memset(q, 'q', sizes[i]);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_true(p[k] == 'p' && q[k] == 'q');
            recycle_free(p);
            char *z = recycle_zalloc(1, sizes[i]);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_true(z[k] == 0 && q[k] == 'q');
            recycle_free(q);
            recycle_free(z);
        }
    recycle_free(NULL);
}

static void growth_keeps_the_content(void **state)
{
    (void)state;
    char *p = recycle_realloc(NULL, 3);
    memcpy(p, "ab", 3);
    for (size_t n = 3; n < 100000; n = n * 3 / 2 + 1) {
        p = recycle_realloc(p, n + 1);
        assert_string_equal(p, "ab");
        memset(p + 3, 'x', n - 2);
    }
    p = recycle_realloc(p, 3);
    assert_string_equal(p, "ab");
    char *copy = recycle_strdup(p);
    assert_string_equal(copy, "ab");
    recycle_free(p);
    recycle_free(copy);
}

static void *free_it(void *p)
{
    recycle_free(p);
    return recycle_strdup("from another thread");
}

static void threads_may_free_for_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        void *back;
        pthread_create(&t, NULL, free_it, recycle_alloc(30));
        pthread_join(t, &back);
        assert_string_equal(back, "from another thread");
        recycle_free(back);
    }
}

/* What is kept has a limit: the rest goes back to the system at once. */
static void a_flood_is_not_kept(void **state)
{
    (void)state;
    enum { N = 2000 };
    static char *p[N];
    for (int i = 0; i < N; i++)
        p[i] = recycle_alloc(16000);
    for (int i = 0; i < N; i++)
        recycle_free(p[i]);
    struct mallinfo2 m = mallinfo2();
    assert_true(m.uordblks < 8u << 20);
}

int main(void)
{
    recycle_here();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_come_back),
        cmocka_unit_test(growth_keeps_the_content),
        cmocka_unit_test(threads_may_free_for_each_other),
        cmocka_unit_test(a_flood_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
