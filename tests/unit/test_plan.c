#include "base/mem.h"
#include "drive/model.h"
#include "sim/run/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct mix mix;

static struct plan plan(unsigned apps, unsigned folders, double rate, int seconds, unsigned accounts, unsigned logins,
                        unsigned tree)
{
    struct plan p = {.apps = apps,
                     .open_folders = folders,
                     .per_minute = rate,
                     .window_us = seconds * US_PER_S,
                     .accounts = accounts,
                     .logins = logins,
                     .tree_folders = tree,
                     .mix = &mix,
                     .locks = true,
                     .feed = true,
                     .events = true,
                     .sub_users = true,
                     .login_budget = true};
    plan_estimate(&p);
    return p;
}

/* The source document's first row: 50 apps, 300 folders, 2 actions a minute, 180 s made 22,000 requests. */
static void test_estimate_of_a_known_run(void **state)
{
    (void)state;
    struct plan p = plan(50, 300, 2, 180, 1, 10, 2194);
    assert_in_range((int)p.whole, 18700, 25300);
    assert_in_range((int)p.login_15min, 1800, 3200);
    assert_int_equal(plan_check(&p, NULL), ERR_OK);
}

static void test_acceptance_plans_fit(void **state)
{
    (void)state;
    struct plan rows[] = {
        plan(20, 60, 6, 60, 1, 10, 220),
        plan(100, 50, 30, 240, 1, 20, 2194),
        plan(2000, 10, 0.2, 120, 20, 100, 110),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(plan_check(&rows[i], NULL), ERR_OK);
}

static void test_impossible_plans_say_what_would_do(void **state)
{
    (void)state;
    const struct {
        struct plan p;
        unsigned needed;
        const char *says;
    } rows[] = {
        {plan(100, 10, 1, 60, 1, 3, 200), 5, "4 sub-users would do"},
        {plan(41, 1, 1, 1, 1, 2, 2), 3, "2 sub-users would do"},
        {plan(2000, 10, 0.2, 120, 20, 60, 110), 100, "4 sub-users in each of the 20 accounts would do"},
        {plan(150, 1000, 2, 600, 1, 10, 2194), 0 /* computed below */, "requests in 15 minutes"},
        {plan(1, 20000, 1, 60, 1, 1, 20000), 0, "one app alone"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct errinfo ei = {0};
        assert_int_equal(plan_check(&rows[i].p, &ei), ERR_ENV);
        assert_non_null(strstr(ei.msg, rows[i].says));
        if (rows[i].needed)
            assert_int_equal(plan_logins_needed(&rows[i].p), rows[i].needed);
    }
    struct errinfo ei = {0};
    struct plan alone = rows[0].p;
    alone.sub_users = false;
    assert_int_equal(plan_check(&alone, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "5 accounts would do: sim seed 0 SCALE --accounts 5"));
    /* What it says would do, does; one less does not. */
    struct plan p = rows[3].p;
    unsigned needed = plan_logins_needed(&p);
    p.logins = needed;
    plan_estimate(&p);
    assert_int_equal(plan_check(&p, NULL), ERR_OK);
    p.logins = needed - 1;
    plan_estimate(&p);
    assert_int_equal(plan_check(&p, NULL), ERR_ENV);
    p.login_budget = false; /* counted by address, an address an app */
    assert_int_equal(plan_check(&p, NULL), ERR_OK);
}

static void test_without_feed_each_minute_lists_all(void **state)
{
    (void)state;
    struct plan p = plan(1, 100, 0, 600, 1, 1, 100), q = p;
    q.feed = false;
    plan_estimate(&q);
    assert_true(q.requests_whole - p.requests_whole > 900);
}

static int group_setup(void **state)
{
    (void)state;
    mix_default(&mix);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate_of_a_known_run),
        cmocka_unit_test(test_acceptance_plans_fit),
        cmocka_unit_test(test_impossible_plans_say_what_would_do),
        cmocka_unit_test(test_without_feed_each_minute_lists_all),
    };
    return cmocka_run_group_tests_name("plan", tests, group_setup, NULL);
}
