/* The tables of the domain: each name maps both ways, each status to the outcome that the reports promise. */
#include "drive/model.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void names(void **state)
{
    (void)state;
    double weights = 0;
    for (unsigned i = 0; i < OP_COUNT; i++) {
        enum drive_op op;
        assert_true(drive_op_parse(drive_op_key((enum drive_op)i), &op));
        assert_int_equal(op, i);
        char shown[40]; /* as its row is called, with '_' for a blank */
        snprintf(shown, sizeof(shown), "%s", drive_op_text((enum drive_op)i));
        for (char *c = shown; *c; c++)
            *c = *c == ' ' ? '_' : *c;
        assert_true(drive_op_parse(shown, &op));
        assert_int_equal(op, i);
        weights += drive_op_weight((enum drive_op)i);
    }
    assert_true(weights > 99.99 && weights < 100.01);
    enum drive_op op;
    assert_false(drive_op_parse("no such", &op));
    unsigned mask = 0;
    for (unsigned i = 0; i < PERM_COUNT; i++)
        assert_true(perm_parse(perm_name((enum perm_bit)i), &mask));
    assert_int_equal(mask, PERM_ALL);
    assert_false(perm_parse("files.none", &mask));
}

static void statuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum outcome want;
        bool failure;
    } rows[] = {
        {200, OUT_OK, false},     {201, OUT_OK, false},       {202, OUT_OK, false},       {204, OUT_OK, false},
        {206, OUT_OK, false},     {304, OUT_OK, false},       {301, OUT_CLIENT, true},    {400, OUT_CLIENT, true},
        {401, OUT_CLIENT, true},  {404, OUT_CLIENT, true},    {422, OUT_CLIENT, true},    {499, OUT_CLIENT, true},
        {408, OUT_TIMEOUT, true}, {409, OUT_CONFLICT, false}, {412, OUT_CONFLICT, false}, {423, OUT_CONFLICT, false},
        {403, OUT_REFUSED, true}, {413, OUT_REFUSED, true},   {507, OUT_REFUSED, true},   {429, OUT_THROTTLED, false},
        {500, OUT_SERVER, true},  {503, OUT_SERVER, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(outcome_of_status(rows[i].status), rows[i].want);
        assert_int_equal(outcome_is_failure(rows[i].want), rows[i].failure);
    }
}

/* After which it helps to say what the server lacks; a server that did not answer is not told to be filled. */
static void noes(void **state)
{
    (void)state;
    assert_true(outcome_is_no(outcome_of_status(401)));
    assert_true(outcome_is_no(outcome_of_status(403)));
    assert_false(outcome_is_no(outcome_of_status(429)));
    assert_false(outcome_is_no(outcome_of_status(503)));
    assert_false(outcome_is_no(OUT_TIMEOUT));
}

static void sums_stay_in_range(void **state)
{
    (void)state;
    static const struct {
        int64_t a, b, sum, difference;
    } rows[] = {
        {1, 2, 3, -1},
        {INT64_MAX, 1, INT64_MAX, INT64_MAX - 1},
        {INT64_MAX, -1, INT64_MAX - 1, INT64_MAX},
        {INT64_MIN, 1, INT64_MIN + 1, INT64_MIN},
        {INT64_MIN, -1, INT64_MIN, INT64_MIN + 1},
        {INT64_MAX, INT64_MAX, INT64_MAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(drive_sum(rows[i].a, rows[i].b), rows[i].sum);
        assert_int_equal(drive_difference(rows[i].a, rows[i].b), rows[i].difference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(statuses),
                                       cmocka_unit_test(sums_stay_in_range), cmocka_unit_test(noes)};
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
