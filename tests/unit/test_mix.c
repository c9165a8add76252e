#include "base/mem.h"
#include "sim/app/mix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_default_is_the_audit_log(void **state)
{
    (void)state;
    static const struct {
        enum drive_op op;
        double pct;
    } rows[] = {{OP_DOWNLOAD, 55}, {OP_SAVE, 26},      {OP_UPLOAD, 7}, {OP_TRASH, 4}, {OP_RENAME, 3},
                {OP_COPY, 2},      {OP_NEW_FOLDER, 2}, {OP_MOVE, 1},   {OP_LIST, 0},  {OP_SIGN_IN, 0}};
    struct mix m;
    mix_default(&m);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_true(fabs(mix_share(&m, rows[i].op) * 100 - rows[i].pct) < 1e-9);
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err err;
        const char *says;
    } rows[] = {
        {"download 1\nsave 3\n", ERR_OK, NULL},
        {"# all\n\n download = 0.5 # half\r\nsave:\t2", ERR_OK, NULL},
        {"download 1\rsave 3\r", ERR_OK, NULL},
        {"download 1\r\rsave\r", ERR_USAGE, "line 3: save needs a weight"},
        {"", ERR_USAGE, "no action"},
        {"download 0\n", ERR_USAGE, "no action"},
        {"download\n", ERR_USAGE, "line 1: download needs a weight"},
        {"save 1\ndownload -1\n", ERR_USAGE, "line 2: download needs a weight"},
        {"download nan\n", ERR_USAGE, "line 1"},
        {"download 1e99\n", ERR_USAGE, "line 1"},
        {"download 1,5\n", ERR_USAGE, "line 1"},
        {"list 1\n", ERR_USAGE, "list is not an action: download, save"},
        {"fly\x1b[2J 1\n", ERR_USAGE, "line 1: fly\\x1b"},
        {"save 1\nsave 2\n", ERR_USAGE, "line 2: save is there twice"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1\n", ERR_USAGE, "is not an action"},
    };
    struct errinfo why = {0};
    struct mix none;
    assert_int_equal(mix_parse(&none, "day.mix", SV("save 1\ndown\0load 1\n"), &why), ERR_USAGE);
    assert_non_null(strstr(why.msg, "line 2: a byte of 0"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mix m;
        struct errinfo ei = {0};
        assert_int_equal(mix_parse(&m, "day.mix", sv_of(rows[i].text), &ei), rows[i].err);
        if (rows[i].says) {
            assert_non_null(strstr(ei.msg, rows[i].says));
            assert_non_null(strstr(ei.msg, "day.mix"));
        }
    }
}

static void test_draw_follows_the_weights(void **state)
{
    (void)state;
    struct mix m;
    struct rng r;
    unsigned n[OP_COUNT] = {0};
    assert_int_equal(mix_parse(&m, "x", SV("download 3\nmove 1\n"), NULL), ERR_OK);
    assert_true(fabs(mix_share(&m, OP_DOWNLOAD) - 0.75) < 1e-9);
    rng_init(&r, 1, 1);
    for (int i = 0; i < 40000; i++)
        n[mix_draw(&m, &r)]++;
    assert_int_equal(n[OP_DOWNLOAD] + n[OP_MOVE], 40000);
    assert_in_range(n[OP_DOWNLOAD], 29700, 30300); /* 3.5 standard deviations */
}

static void test_missing_file(void **state)
{
    (void)state;
    struct mix m;
    struct errinfo ei = {0};
    assert_int_equal(mix_load(&m, "/nonexistent/mix", &ei), ERR_USAGE);
    assert_non_null(strstr(ei.msg, "/nonexistent/mix"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_is_the_audit_log),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_draw_follows_the_weights),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests_name("mix", tests, NULL, NULL);
}
