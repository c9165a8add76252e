#include "base/mem.h"
#include "sim/app/pace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MINUTE (60 * US_PER_S)

static void test_total_is_what_was_asked(void **state)
{
    (void)state;
    static const struct {
        unsigned apps;
        double rate;
        int64_t window;
        uint64_t low, high;
    } rows[] = {
        {50, 2, 180 * US_PER_S, 300, 300},
        {100, 30, 240 * US_PER_S, 12000, 12000},
        {1, 0.2, MINUTE, 0, 1},
        {2000, 0.2, 120 * US_PER_S, 800, 800},
        {10, 0, MINUTE, 0, 0},
        {3, 1, 90 * US_PER_S, 4, 5},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (uint64_t seed = 1; seed < 20; seed++)
            assert_in_range(pace_total(seed, rows[i].apps, rows[i].rate, rows[i].window), rows[i].low, rows[i].high);
    double sum = 0; /* the fraction comes out right on average */
    for (uint64_t seed = 0; seed < 4000; seed++)
        sum += (double)pace_total(seed, 1, 0.2, MINUTE);
    assert_true(fabs(sum / 4000 - 0.2) < 0.03);
}

static void test_split_adds_up_and_is_fair(void **state)
{
    (void)state;
    uint32_t counts[100];
    uint64_t sum = 0;
    double squares = 0;
    pace_split(7, 10000, 100, counts);
    for (int i = 0; i < 100; i++) {
        sum += counts[i];
        squares += (counts[i] - 100.0) * (counts[i] - 100.0);
    }
    assert_int_equal(sum, 10000);
    /* chi-square with 99 degrees of freedom: 58 to 149 holds in 998 of 1000 */
    assert_true(squares / 100 > 58 && squares / 100 < 149);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All apps' actions together are uniform over the window, and the gaps of one app are exponential: Kolmogorov-Smirnov
 * against both at the 1 in 1,000 level. */
static void test_is_a_poisson_process(void **state)
{
    (void)state;
    struct mix m;
    mix_default(&m);
    enum { APPS = 50, EACH = 400 };
    static double at[APPS * EACH], gap[APPS * EACH];
    size_t n = 0;
    for (unsigned a = 0; a < APPS; a++) {
        struct pace p;
        struct planned x;
        int64_t last = 0;
        pace_init(&p, 3, a, EACH, 1000 * MINUTE);
        while (pace_next(&p, &m, &x)) {
            assert_true(x.at_us >= last && x.at_us < 1000 * MINUTE);
            gap[n] = (double)(x.at_us - last) / (1000.0 * MINUTE) * EACH;
            at[n++] = (double)x.at_us / (1000.0 * MINUTE);
            last = x.at_us;
        }
        assert_false(pace_next(&p, &m, &x));
    }
    assert_int_equal(n, APPS * EACH);
    qsort(at, n, sizeof(at[0]), by_value);
    qsort(gap, n, sizeof(gap[0]), by_value);
    double d_at = 0, d_gap = 0;
    for (size_t i = 0; i < n; i++) {
        double share = (double)(i + 1) / (double)n;
        d_at = fmax(d_at, fabs(at[i] - share));
        d_gap = fmax(d_gap, fabs(-expm1(-gap[i]) - share));
    }
    double limit = 1.95 / sqrt((double)n);
    assert_true(d_at < limit);
    assert_true(d_gap < limit);
}

/* First actions are spread over the mean gap, not in its first second (shared case L04). */
static void test_first_actions_spread(void **state)
{
    (void)state;
    struct mix m;
    mix_default(&m);
    uint32_t counts[50];
    unsigned first_second = 0, early = 0;
    pace_split(1, 300, 50, counts);
    for (unsigned a = 0; a < 50; a++) {
        struct pace p;
        struct planned x;
        pace_init(&p, 1, a, counts[a], 180 * US_PER_S);
        if (!pace_next(&p, &m, &x))
            continue;
        first_second += x.at_us < US_PER_S;
        early += x.at_us < 15 * US_PER_S;
    }
    assert_in_range(first_second, 0, 7);
    assert_in_range(early, 10, 30); /* 1 - 1/sqrt(e) of 50 is 20 */
}

static void test_same_seed_same_plan(void **state)
{
    (void)state;
    struct mix m;
    mix_default(&m);
    uint32_t counts[20];
    pace_split(5, 400, 20, counts);
    uint64_t one = pace_fingerprint(5, 20, counts, MINUTE, &m);
    assert_true(one == pace_fingerprint(5, 20, counts, MINUTE, &m));
    assert_true(one != pace_fingerprint(6, 20, counts, MINUTE, &m));
    m.weight[OP_MOVE] = 50;
    assert_true(one != pace_fingerprint(5, 20, counts, MINUTE, &m));
    /* An app's plan is its own: more apps beside it change nothing. */
    struct pace a, b;
    struct planned x, y;
    pace_init(&a, 5, 3, 10, MINUTE);
    pace_init(&b, 5, 3, 10, MINUTE);
    while (pace_next(&a, &m, &x)) {
        assert_true(pace_next(&b, &m, &y));
        assert_true(x.at_us == y.at_us && x.op == y.op && x.pick == y.pick && x.pick2 == y.pick2);
    }
}

static void test_backoff(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, 1, 1);
    struct backoff b = {0};
    int64_t ceiling = US_PER_S;
    for (int i = 0; i < 100; i++) {
        int64_t w = backoff_next_us(&b, &r, US_PER_S, 20 * US_PER_S);
        assert_in_range(w, ceiling / 2, ceiling);
        ceiling = ceiling * 2 < 20 * US_PER_S ? ceiling * 2 : 20 * US_PER_S;
    }
    backoff_reset(&b);
    assert_in_range(backoff_next_us(&b, &r, US_PER_S, 20 * US_PER_S), US_PER_S / 2, US_PER_S);
    for (int i = 0; i < 100; i++) {
        assert_in_range(pace_throttle_wait_us(7 * US_PER_S, 0, &r), 7 * US_PER_S, 8 * US_PER_S);
        assert_in_range(pace_throttle_wait_us(-1, 30, &r), 15 * US_PER_S, 30 * US_PER_S);
        assert_in_range(pace_throttle_wait_us(0, 30, &r), 15 * US_PER_S, 30 * US_PER_S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_total_is_what_was_asked), cmocka_unit_test(test_split_adds_up_and_is_fair),
        cmocka_unit_test(test_is_a_poisson_process),    cmocka_unit_test(test_first_actions_spread),
        cmocka_unit_test(test_same_seed_same_plan),     cmocka_unit_test(test_backoff),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
