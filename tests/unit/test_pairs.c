#include "unit.h"

#include "sim/pairs/pairs.h"

static void test_due_times(void **state)
{
    (void)state;
    const struct pairs_conf flat = {.per_s = 20}, ramp = {.per_s = 10, .ramp_us = 4 * US_PER_S};
    assert_int_equal(pairs_due_us(&flat, 0), 0);
    assert_int_equal(pairs_due_us(&flat, 1), 50000);
    assert_int_equal(pairs_due_us(&flat, 100), 5000000);
    /* In the ramp t seconds bring 10 t^2 / 8 pairs: 5 by 2 s, 20 by its end, then 10 a second. */
    static const struct {
        uint64_t pair;
        int64_t due_us;
    } rows[] = {{0, 0}, {5, 2000000}, {20, 4000000}, {21, 4100000}, {30, 5000000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_in_range(pairs_due_us(&ramp, rows[i].pair), rows[i].due_us ? rows[i].due_us - 1 : 0, rows[i].due_us + 1);
    for (uint64_t i = 0; i < 50; i++)
        assert_true(pairs_due_us(&ramp, i) <= pairs_due_us(&ramp, i + 1));
}

static void test_pool_follows_the_rate(void **state)
{
    (void)state;
    static const struct {
        struct pairs_conf conf;
        unsigned workers, queue;
    } rows[] = {
        {{.per_s = 10, .total = 100}, 20, 40},
        {{.per_s = 0.1, .total = 100}, 1, 1},
        {{.per_s = 10, .total = 5}, 5, 40},
        {{.per_s = 10, .total = 1000, .exchange_us = 30 * US_PER_S}, 320, 40},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(pairs_workers(&rows[i].conf), rows[i].workers);
        assert_int_equal(pairs_queue(&rows[i].conf), rows[i].queue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due_times),
        cmocka_unit_test(test_pool_follows_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
