#include "base/percentiles.h"
#include "base/rng.h"
#include "unit.h"
#include <math.h>
#include <stdlib.h>

#define MS 1000

/* L02: percentiles of merged data, not averages (1,005) nor the worst worker's (2,000). */
static void merge_is_not_an_average(void **state)
{
    (void)state;
    struct hist *a = hist_new(), *b = hist_new();
    for (int i = 0; i < 1000; i++)
        hist_record(a, 10 * MS);
    for (int i = 0; i < 10; i++)
        hist_record(b, 2000 * MS);
    hist_merge(a, b);
    assert_int_equal(hist_count(a), 1010);
    assert_int_equal(hist_percentile(a, 95), 10 * MS);
    assert_int_equal(hist_percentile(a, 99), 10 * MS);
    assert_int_equal(hist_max(a), 2000 * MS);
    assert_int_equal(hist_percentile(a, 100), 2000 * MS);
    hist_free(&a);
    hist_free(&b);
}

/* L08 */
static void empty_and_one_sample(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    const double pcts[] = {0, 50, 95, 99, 100};
    for (size_t i = 0; i < ARRAY_LEN(pcts); i++)
        assert_int_equal(hist_percentile(h, pcts[i]), -1);
    assert_int_equal(hist_percentile(h, 0), -1);
    assert_int_equal(hist_max(h), -1);
    assert_true(hist_mean(h) == 0 && hist_stddev(h) == 0);
    hist_record(h, 123457);
    for (size_t i = 0; i < ARRAY_LEN(pcts); i++)
        assert_int_equal(hist_percentile(h, pcts[i]), 123457);
    assert_int_equal(hist_percentile(h, 0), 123457);
    assert_true(hist_mean(h) == 123457);
    assert_true(hist_stddev(h) == 0);
    hist_reset(h);
    assert_int_equal(hist_percentile(h, 50), -1);
    hist_free(&h);
    hist_free(&h);
}

/* L09: no ceiling, the slowest exact, no percentile above it. */
static void no_ceiling(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    const int64_t calls[] = {3500 * MS, 61000 * MS, 125000 * MS};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        hist_record(h, calls[i]);
    assert_int_equal(hist_count(h), 3);
    assert_int_equal(hist_percentile(h, 50), 61000 * MS);
    assert_int_equal(hist_percentile(h, 99), 125000 * MS);
    hist_record(h, INT64_MAX);
    hist_record(h, -5);
    assert_int_equal(hist_max(h), INT64_MAX);
    assert_int_equal(hist_percentile(h, 0), 0);
    assert_int_equal(hist_percentile(h, 100), INT64_MAX);
    assert_int_equal(hist_percentile(h, 0), 0);
    hist_free(&h);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Against the sorted samples: the nearest-rank value within 1/256. */
static void error_is_bounded(void **state)
{
    (void)state;
    enum { N = 5000 };
    static int64_t v[N];
    struct rng r;
    struct hist *h = hist_new();
    const double pcts[] = {0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9};
    rng_init(&r, 1, 1);
    for (int i = 0; i < N; i++) {
        v[i] = (int64_t)rng_lognormal(&r, 8, 3);
        hist_record(h, v[i]);
    }
    qsort(v, N, sizeof *v, compare);
    for (size_t i = 0; i < ARRAY_LEN(pcts); i++) {
        int64_t want = v[(size_t)ceil(pcts[i] / 100 * N - 1e-9) - 1], got = hist_percentile(h, pcts[i]);
        assert_true(llabs(got - want) <= want / 256 + 1);
    }
    assert_int_equal(hist_max(h), v[N - 1]);
    assert_int_equal(hist_percentile(h, 0), v[0]);
    hist_free(&h);
}

/* Nearest rank: 95 % of 20 is the 19th, although 0.95 * 20 is a little above 19 in binary. */
static void ranks_are_exact(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    for (int i = 1; i <= 20; i++)
        hist_record(h, i);
    assert_int_equal(hist_percentile(h, 95), 19);
    assert_int_equal(hist_percentile(h, 50), 10);
    assert_int_equal(hist_percentile(h, 5), 1);
    assert_int_equal(hist_percentile(h, 5.1), 2);
    assert_true(hist_mean(h) == 10.5);
    assert_true(fabs(hist_stddev(h) - 5.766281) < 1e-5);
    hist_free(&h);
}

struct walk {
    uint64_t n;
    int64_t last;
    bool ordered;
};

static void walk_one(void *arg, int64_t us, uint64_t n)
{
    struct walk *w = arg;
    w->ordered = w->ordered && us >= w->last && n > 0;
    w->last = us;
    w->n += n;
}

static void values_come_in_order(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    struct walk w = {.last = -1, .ordered = true};
    for (int64_t v = 1; v > 0; v = v < INT64_MAX / 2 ? v * 2 : -1)
        for (int d = -1; d <= 1; d++)
            hist_record(h, v + d);
    hist_each(h, walk_one, &w);
    assert_true(w.ordered);
    assert_int_equal(w.n, hist_count(h));
    hist_free(&h);
}

static void record_again(void *arg, int64_t us, uint64_t n)
{
    hist_record_n(arg, us, n);
}

static void values_make_it_again(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 50000};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        struct hist *h = hist_new(), *again = hist_new();
        struct rng rng;
        rng_init(&rng, 7, k);
        for (size_t i = 0; i < sizes[k]; i++)
            hist_record(h, (int64_t)(rng_unit(&rng) * 3e6));
        hist_each(h, record_again, again);
        assert_int_equal(hist_count(again), hist_count(h));
        assert_int_equal(hist_percentile(again, 0), hist_percentile(h, 0));
        assert_int_equal(hist_max(again), hist_max(h));
        for (double pct = 0.5; pct < 100; pct += 0.5)
            assert_true(llabs(hist_percentile(again, pct) - hist_percentile(h, pct)) <= 1);
        assert_true(fabs(hist_mean(again) - hist_mean(h)) <= 0.5);
        hist_free(&h);
        hist_free(&again);
    }
}

static void cells_of_a_table(void **state)
{
    struct hist *h = hist_new();
    char cell[16];
    (void)state;
    assert_string_equal(hist_cell(NULL, 50, 1000, 1, cell, sizeof(cell)), "-");
    assert_string_equal(hist_cell(h, 50, 1000, 1, cell, sizeof(cell)), "-");
    hist_record(h, 1250);
    hist_record(h, 2000000);
    assert_string_equal(hist_cell(h, 0, 1000, 2, cell, sizeof(cell)), "1.25");
    assert_string_equal(hist_cell(h, 100, 1000000, 0, cell, sizeof(cell)), "2");
    hist_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_is_not_an_average),
        cmocka_unit_test(empty_and_one_sample),
        cmocka_unit_test(no_ceiling),
        cmocka_unit_test(error_is_bounded),
        cmocka_unit_test(ranks_are_exact),
        cmocka_unit_test(values_come_in_order),
        cmocka_unit_test(values_make_it_again),
        cmocka_unit_test(cells_of_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
