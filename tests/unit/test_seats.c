#include "server/access/seats.h"
#include "unit.h"

static struct mono at(int64_t s)
{
    return (struct mono){(1000 + s) * US_PER_S};
}

static void limit(void **state)
{
    (void)state;
    struct seats *s = seats_new(2);
    assert_true(seats_reserve(s, at(0)));
    assert_true(seats_reserve(s, at(0)));
    assert_false(seats_reserve(s, at(0))); /* two are on their way in */
    seats_give_up(s);
    assert_true(seats_reserve(s, at(0)));
    seats_sit(s, "a", at(0));
    seats_sit(s, "b", at(0));
    assert_int_equal(seats_taken(s), 2);
    assert_false(seats_reserve(s, at(1)));
    seats_leave(s, "a");
    seats_leave(s, "a");
    seats_leave(s, "nobody");
    assert_true(seats_reserve(s, at(1)));
    seats_sit(s, "c", at(1));
    assert_false(seats_reserve(s, at(100)));
    seats_free(&s);
}

static void silence(void **state)
{
    (void)state;
    struct seats *s = seats_new(1);
    assert_true(seats_reserve(s, at(0)));
    seats_sit(s, "a", at(0));
    seats_touch(s, "a", at(100));
    assert_false(seats_reserve(s, at(279)));
    assert_true(seats_reserve(s, at(280)));
    seats_sit(s, "b", at(280));
    seats_touch(s, "a", at(281)); /* signed in as ever: it is let on */
    assert_int_equal(seats_taken(s), 2);
    assert_false(seats_reserve(s, at(282)));
    seats_free(&s);
}

static void no_limit(void **state)
{
    (void)state;
    struct seats *s = seats_new(0);
    for (int i = 0; i < 1000; i++)
        assert_true(seats_reserve(s, at(0)));
    seats_sit(s, "a", at(0));
    assert_int_equal(seats_taken(s), 999);
    seats_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(limit), cmocka_unit_test(silence), cmocka_unit_test(no_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
