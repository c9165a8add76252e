#include "base/rng.h"
#include "unit.h"
#include <math.h>
#include <string.h>

/* The generator itself against the authors' C program: state 1,2,3,4 gives these. */
static void reference_values(void **state)
{
    (void)state;
    struct rng r = {{1, 2, 3, 4}};
    static const uint64_t want[] = {11520, 0, 1509978240, UINT64_C(1215971899390074240)};
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_true(rng_u64(&r) == want[i]);
    /* splitmix64 of state 0: the first value of Vigna's program */
    assert_true(rng_mix64(UINT64_C(0x9e3779b97f4a7c15)) == UINT64_C(0xe220a8397b1dcdaf));
}

static void streams_differ_and_repeat(void **state)
{
    (void)state;
    struct rng a, b, c, d;
    rng_init(&a, 1, 1);
    rng_init(&b, 1, 1);
    rng_init(&c, 1, 2);
    rng_init(&d, 2, 1);
    unsigned same_c = 0, same_d = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = rng_u64(&a);
        assert_true(v == rng_u64(&b));
        same_c += v == rng_u64(&c);
        same_d += v == rng_u64(&d);
    }
    assert_int_equal(same_c, 0);
    assert_int_equal(same_d, 0);
}

static void below_is_even(void **state)
{
    (void)state;
    struct rng r;
    unsigned seen[7] = {0};
    rng_init(&r, 3, 0);
    for (int i = 0; i < 70000; i++) {
        uint64_t v = rng_below(&r, 7);
        assert_true(v < 7);
        seen[v]++;
    }
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 9600 && seen[i] < 10400); /* 4 sigma */
    for (int i = 0; i < 1000; i++)
        assert_true(rng_below(&r, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
    assert_int_equal(rng_below(&r, 1), 0);
}

static void distributions(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct rng r;
    double unit = 0, ex = 0, norm = 0, squares = 0, log_sum = 0;
    rng_init(&r, 4, 0);
    for (int i = 0; i < N; i++) {
        double u = rng_unit(&r), e = rng_exp(&r, 30), z = rng_normal(&r), l = rng_lognormal(&r, 9.48, 2.4566);
        assert_true(u >= 0 && u < 1 && e >= 0 && isfinite(z) && l > 0);
        unit += u;
        ex += e;
        norm += z;
        squares += z * z;
        log_sum += log(l);
    }
    assert_true(fabs(unit / N - 0.5) < 0.005);
    assert_true(fabs(ex / N - 30) < 0.5);
    assert_true(fabs(norm / N) < 0.01);
    assert_true(fabs(squares / N - 1) < 0.02);
    assert_true(fabs(log_sum / N - 9.48) < 0.03);
}

static void weights(void **state)
{
    (void)state;
    const double w[] = {0, 55, 26, 0, 19, 0};
    unsigned seen[6] = {0};
    struct rng r;
    rng_init(&r, 5, 0);
    for (int i = 0; i < 100000; i++)
        seen[rng_weighted(&r, w, 6)]++;
    assert_int_equal(seen[0] + seen[3] + seen[5], 0);
    assert_true(seen[1] > 54300 && seen[1] < 55700);
    assert_true(seen[2] > 25400 && seen[2] < 26600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_values), cmocka_unit_test(streams_differ_and_repeat),
        cmocka_unit_test(below_is_even),    cmocka_unit_test(distributions),
        cmocka_unit_test(weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
