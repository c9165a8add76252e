/* Where a key is in a sorted array, or would be. */
#include "base/sorted.h"
#include "unit.h"

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void test_first_of_those_not_below(void **state)
{
    static const int values[] = {1, 3, 3, 3, 7};
    static const struct {
        int key;
        size_t n, place;
    } rows[] = {{0, 5, 0}, {1, 5, 0}, {2, 5, 1}, {3, 5, 1}, {4, 5, 4}, {7, 5, 4}, {8, 5, 5}, {3, 1, 1}, {3, 0, 0}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t place = sorted_place(&rows[i].key, values, rows[i].n, sizeof(*values), by_value);
        if (place != rows[i].place)
            fail_msg("%d among %zu: %zu, not %zu", rows[i].key, rows[i].n, place, rows[i].place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_of_those_not_below)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
