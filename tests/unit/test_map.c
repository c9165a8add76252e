/* The string map: many keys, replacing, removing, and removing while walking. */
#include "base/map.h"
#include "unit.h"

#define N 5000
static int values[N];

static struct sv key_of(char *dst, size_t n, int i)
{
    return (struct sv){dst, (size_t)snprintf(dst, n, "key-%d", i)};
}

static struct map *filled(void)
{
    struct map *m = map_new();
    char key[32];
    for (int i = 0; i < N; i++)
        map_put(m, key_of(key, sizeof key, i), &values[i]);
    return m;
}

static void test_finds_every_key(void **state)
{
    (void)state;
    struct map *m = filled();
    char key[32];
    assert_int_equal(map_count(m), N);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(map_get(m, key_of(key, sizeof key, i)), &values[i]);
    assert_null(map_get(m, SV("key-")));
    assert_null(map_get(m, SV("")));
    map_put(m, SV("key-7"), &values[8]);
    assert_ptr_equal(map_get(m, SV("key-7")), &values[8]);
    assert_int_equal(map_count(m), N);
    map_free(&m);
    assert_null(m);
}

static void test_takes_once(void **state)
{
    (void)state;
    struct map *m = filled();
    char key[32];
    for (int i = 0; i < N; i += 2) {
        assert_ptr_equal(map_take(m, key_of(key, sizeof key, i)), &values[i]);
        assert_null(map_take(m, key_of(key, sizeof key, i)));
    }
    assert_int_equal(map_count(m), N / 2);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(map_get(m, key_of(key, sizeof key, i)), i % 2 ? &values[i] : NULL);
    map_free(&m);
}

static bool keep_odd(void *arg, struct sv key, void *value)
{
    (void)key;
    ++*(int *)arg;
    return ((int *)value - values) % 2;
}

static void test_filter_sees_each_once(void **state)
{
    (void)state;
    struct map *m = filled();
    int seen = 0;
    map_filter(m, keep_odd, &seen);
    assert_int_equal(seen, N);
    assert_int_equal(map_count(m), N / 2);
    assert_null(map_get(m, SV("key-10")));
    assert_ptr_equal(map_get(m, SV("key-11")), &values[11]);
    map_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_every_key),
        cmocka_unit_test(test_takes_once),
        cmocka_unit_test(test_filter_sees_each_once),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
