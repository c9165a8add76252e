#include "base/clock.h"
#include "unit.h"
#include <stdlib.h>
#include <time.h>

static void saturates(void **state)
{
    (void)state;
    struct mono a = {10};
    assert_int_equal(mono_add(a, 5).us, 15);
    assert_int_equal(mono_add(a, -5).us, 5);
    assert_int_equal(mono_add(a, INT64_MAX).us, INT64_MAX);
    assert_int_equal(mono_add(MONO_NEVER, -1).us, INT64_MAX);
    assert_int_equal(mono_diff(MONO_NEVER, (struct mono){-1}), INT64_MAX);
    assert_int_equal(mono_diff((struct mono){3}, a), -7);
    assert_true(mono_before((struct mono){9}, a));
    assert_false(mono_before(a, a));
    assert_int_equal(mono_earlier(a, (struct mono){9}).us, 9);
    assert_int_equal(mono_later(a, (struct mono){9}).us, 10);
    assert_true(mono_passed(mono_now()));
    assert_false(mono_passed(MONO_NEVER));
}

static void goes_forward(void **state)
{
    (void)state;
    struct mono a = mono_now(), b = mono_now();
    assert_true(mono_diff(b, a) >= 0);
    assert_true(clock_thread_cpu_us() >= 0 && clock_process_cpu_us() >= 0);
    assert_true(wall_now().us > INT64_C(1600000000) * US_PER_S);
}

static void stamps(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {{0, "1970-01-01T00:00:00.000Z"},
                {-1, "1969-12-31T23:59:59.999Z"},
                {INT64_C(951782400) * US_PER_S, "2000-02-29T00:00:00.000Z"},
                {INT64_C(1796029292123456), "2026-11-30T09:01:32.123Z"},
                {INT64_C(4102444799999999), "2099-12-31T23:59:59.999Z"}};
    char s[32];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(wall_format(s, sizeof s, (struct wall){rows[i].us}), rows[i].text);
    assert_string_equal(wall_format_seconds(s, sizeof s, (struct wall){-1}), "1969-12-31T23:59:59Z");
}

static void parsing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t us;
    } rows[] = {{"1970-01-01T00:00:00Z", true, 0},
                {"2026-11-30T09:01:32.123Z", true, INT64_C(1796029292123000)},
                {"2026-11-30T10:01:32.123456+01:00", true, INT64_C(1796029292123456)},
                {"2026-11-30 09:01:32.1234567+00", true, INT64_C(1796029292123456)},
                {"2026-11-30T04:01:32-0500", true, INT64_C(1796029292000000)},
                {"2024-02-29T00:00:00Z", true, INT64_C(1709164800000000)},
                {"2023-02-29T00:00:00Z", false, 0},
                {"2026-11-30T09:01:32", false, 0}, /* no zone: not a point in time */
                {"2026-11-30", false, 0},
                {"2026-13-01T00:00:00Z", false, 0},
                {"2026-00-01T00:00:00Z", false, 0},
                {"2026-01-01T24:00:00Z", false, 0},
                {"2026-01-01T00:00:00.Z", false, 0},
                {"2026-01-01T00:00:00Zjunk", false, 0},
                {"2026-01-01T00:00:00+1", false, 0},
                {"2026-01-01T00:00:00+25:00", false, 0},
                {"", false, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wall w = {77};
        assert_int_equal(wall_parse(rows[i].text, &w), rows[i].good);
        assert_int_equal(w.us, rows[i].good ? rows[i].us : 77);
    }
}

/* X13: the time zone of the process changes nothing, across a change of daylight saving time either. */
static void time_zone_is_ignored(void **state)
{
    (void)state;
    char s[32];
    struct wall w;
    assert_int_equal(setenv("TZ", "America/New_York", 1), 0);
    tzset();
    assert_string_equal(wall_format(s, sizeof s, (struct wall){INT64_C(1793512799) * US_PER_S}),
                        "2026-11-01T05:59:59.000Z");
    assert_string_equal(wall_format(s, sizeof s, (struct wall){INT64_C(1793512800) * US_PER_S}),
                        "2026-11-01T06:00:00.000Z");
    assert_true(wall_parse("2026-11-01T06:00:00Z", &w));
    assert_int_equal(w.us, INT64_C(1793512800) * US_PER_S);
    unsetenv("TZ");
}

static void every_day_goes_round(void **state)
{
    (void)state;
    char s[32];
    for (int64_t day = -40000; day < 60000; day++) {
        struct wall w = {day * 86400 * US_PER_S + 1234000}, back;
        assert_true(wall_parse(wall_format(s, sizeof s, w), &back));
        assert_int_equal(back.us, w.us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saturates), cmocka_unit_test(goes_forward),         cmocka_unit_test(stamps),
        cmocka_unit_test(parsing),   cmocka_unit_test(time_zone_is_ignored), cmocka_unit_test(every_day_goes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
