/* What takes the place of what a server lacks. */
#include "drive/api/caps.h"
#include "unit.h"
#include <string.h>

static void nothing_is_said_of_a_server_that_has_all(void **state)
{
    char text[400];
    (void)state;
    assert_string_equal(caps_fallbacks(API_CAP_ALL, text, sizeof(text)), "");
}

static void each_lack_has_its_place_taken(void **state)
{
    (void)state;
    for (unsigned cap = 1; cap < API_CAP_ALL; cap <<= 1) {
        char text[400];
        const char *instead = caps_instead((enum api_cap)cap, API_CAP_ALL & ~cap);
        assert_non_null(instead);
        caps_fallbacks(API_CAP_ALL & ~cap, text, sizeof(text));
        assert_non_null(strstr(text, api_cap_text((enum api_cap)cap)));
        assert_non_null(strstr(text, instead));
        assert_null(strchr(text, ';'));
    }
}

static void without_versions_a_missing_lock_leaves_nothing(void **state)
{
    char text[400];
    (void)state;
    caps_fallbacks(API_CAP_ALL & ~(API_CAP_LOCKS | API_CAP_VERSIONS), text, sizeof(text));
    assert_string_equal(text,
                        "no edit locks: saves without either, the last one stays; no versions: saves unconditionally");
    assert_string_equal(caps_instead(API_CAP_LOCKS, API_CAP_ALL & ~API_CAP_LOCKS), "saves by version alone");
}

static void what_stands_in_may_need_something_too(void **state)
{
    (void)state;
    assert_string_equal(caps_instead(API_CAP_FEED, API_CAP_ALL & ~API_CAP_FEED),
                        "folders named in events, all of them each minute");
    assert_string_equal(caps_instead(API_CAP_FEED, API_CAP_ALL & ~(API_CAP_FEED | API_CAP_EVENTS)),
                        "each app lists all its open folders once a minute");
}

static void a_matter_of_course_is_not_told(void **state)
{
    char text[800];
    (void)state;
    caps_fallbacks(API_CAP_ALL & ~(API_CAP_SIGN_UP | API_CAP_JOBS | API_CAP_STORAGE_CONFIG), text, sizeof(text));
    assert_string_equal(text, "no sign-up: the given logins sign in");
    caps_fallbacks(API_CAP_ALL & ~API_CAP_JOBS, text, sizeof(text));
    assert_string_equal(text, "no jobs: long work is done within its request");
}

static void what_does_not_fit_is_left_out_whole(void **state)
{
    char text[60];
    (void)state;
    assert_string_equal(caps_fallbacks(0, text, sizeof(text)), "no sign-up: the given logins sign in");
}

static void the_result_keeps_it(void **state)
{
    (void)state;
    const struct cmd_common common = {.quiet = true};
    struct result result;
    struct buf json = BUF_INIT(1 << 20);
    result_init(&result, "sample");
    struct cmd_ctx ctx = {.common = &common, .result = &result, .out = stdout};
    caps_tell(&ctx, API_CAP_ALL & ~API_CAP_FEED);
    assert_string_equal(result.note, "no change feed: folders named in events, all of them each minute");
    assert_int_equal(result_json(&result, &json), ERR_OK);
    assert_non_null(strstr(buf_cstr(&json), "\"lacks\""));
    assert_non_null(strstr(strstr(buf_cstr(&json), "\"lacks\""), "change feed"));
    buf_done(&json);
    result_done(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_of_a_server_that_has_all),
        cmocka_unit_test(each_lack_has_its_place_taken),
        cmocka_unit_test(without_versions_a_missing_lock_leaves_nothing),
        cmocka_unit_test(what_stands_in_may_need_something_too),
        cmocka_unit_test(a_matter_of_course_is_not_told),
        cmocka_unit_test(what_does_not_fit_is_left_out_whole),
        cmocka_unit_test(the_result_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
