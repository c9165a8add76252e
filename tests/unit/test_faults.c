/* Planting faults: what --fault takes, how often they strike, and what the database's connections are told. */
#include "base/mem.h"
#include "server/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static enum err parse(struct faults *f, const char *arg, struct errinfo *ei)
{
    const char *items[] = {arg};
    const struct opt_list list = {items, 1};
    return faults_parse(f, &list, ei);
}

static void names_and_probabilities(void **state)
{
    static const struct {
        const char *arg;
        enum err err;
        enum fault fault;
        double p;
    } rows[] = {
        {"lost-update", ERR_OK, FAULT_LOST_UPDATE, 1},
        {"hang=0.25", ERR_OK, FAULT_HANG, 0.25},
        {"dropped-413=1", ERR_OK, FAULT_DROPPED_413, 1},
        {"hang=0", ERR_USAGE, FAULT_HANG, 0},
        {"hang=1.5", ERR_USAGE, FAULT_HANG, 0},
        {"hang=", ERR_USAGE, FAULT_HANG, 0},
        {"hang=nan", ERR_USAGE, FAULT_HANG, 0},
        {"hangs", ERR_USAGE, FAULT_HANG, 0},
        {"han", ERR_USAGE, FAULT_HANG, 0},
        {"", ERR_USAGE, FAULT_HANG, 0},
        {"double-lock=0.5", ERR_OK, FAULT_DOUBLE_LOCK, 0.5},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct faults f;
        struct errinfo ei;
        assert_int_equal(parse(&f, rows[i].arg, &ei), rows[i].err);
        if (rows[i].err != ERR_OK)
            continue;
        assert_int_equal(f.set, 1u << rows[i].fault);
        assert_true(f.p[rows[i].fault] == rows[i].p);
    }
}

static void strikes_as_often_as_asked(void **state)
{
    struct faults f;
    struct errinfo ei;
    (void)state;
    assert_int_equal(parse(&f, "hang=0.25", &ei), ERR_OK);
    int hits = 0;
    for (int i = 0; i < 10000; i++) {
        hits += faults_strike(&f, FAULT_HANG);
        assert_false(faults_strike(&f, FAULT_DEADLOCK));
    }
    assert_in_range(hits, 2200, 2800);
    assert_int_equal(f.hits[FAULT_HANG], hits);
}

static void connections_are_told(void **state)
{
    static const struct {
        const char *arg, *url, *want;
    } rows[] = {
        {"slow-commit", "postgresql://u:p@h/d", "postgresql://u:p@h/d?options=-c%20drive.slow_commit%3D1%20"},
        {"double-lock=0.5", "postgres://h/d?a=b", "postgres://h/d?a=b&options=-c%20drive.double_lock%3D0.5%20"},
        {"deadlock", "host=h dbname=d", "host=h dbname=d options='-c drive.deadlock=1 '"},
    };
    struct faults none = {.set = 0};
    (void)state;
    assert_null(faults_database_url(&none, "postgresql://h/d"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct faults f;
        struct errinfo ei;
        assert_int_equal(parse(&f, rows[i].arg, &ei), ERR_OK);
        char *url = faults_database_url(&f, rows[i].url);
        assert_string_equal(url, rows[i].want);
        mem_free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_probabilities),
        cmocka_unit_test(strikes_as_often_as_asked),
        cmocka_unit_test(connections_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
