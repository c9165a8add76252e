#include "base/mem.h"
#include "sim/app/meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct fixture {
    struct stats total;
    struct meter m;
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof(*f));
    stats_init(&f->total);
    meter_init(&f->m, &f->total);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    meter_done(&f->m);
    stats_done(&f->total);
    mem_free(f);
    return 0;
}

static struct api_result ended(int status, enum err err, int64_t us)
{
    struct api_result r = {.status = status, .err = err, .outcome = err ? OUT_TRANSPORT : outcome_of_status(status)};
    r.sent = mono_now();
    r.done = mono_add(r.sent, us);
    return r;
}

static void test_starts_empty(void **state)
{
    struct fixture *f = *state;
    for (int op = 0; op < OP_COUNT; op++) {
        assert_int_equal(stats_calls(&f->m.interval, (enum drive_op)op), 0);
        assert_int_equal(stats_calls(&f->total, (enum drive_op)op), 0);
    }
    assert_int_equal(stats_requests(&f->total), 0);
}

/* Shared case L10: an interval holds its own samples only, and all of them add up to the total. */
static void test_intervals_add_up(void **state)
{
    struct fixture *f = *state;
    struct api_result fast = ended(200, ERR_OK, 10000), slow = ended(200, ERR_OK, 1000000);
    for (int i = 0; i < 99; i++)
        meter_record(&f->m, OP_LIST, &fast, (struct mono){0});
    f->m.interval.by_cause[CAUSE_RELIST] += 99;
    meter_next_interval(&f->m);
    assert_int_equal(stats_requests(&f->m.interval), 0);
    meter_record(&f->m, OP_LIST, &slow, (struct mono){0});
    f->m.interval.by_cause[CAUSE_RELIST]++;
    assert_int_equal(hist_percentile(f->m.interval.op[OP_LIST].from_send, 50), 1000000);
    meter_next_interval(&f->m);
    assert_int_equal(stats_ok(&f->total, OP_LIST), 100);
    assert_int_equal(stats_requests(&f->total), 100);
    assert_int_equal(f->total.by_cause[CAUSE_RELIST], 100);
    assert_in_range(hist_percentile(f->total.op[OP_LIST].from_send, 50), 9960, 10040);
    assert_int_equal(hist_max(f->total.op[OP_LIST].from_send), 1000000);
}

static void pause_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

/* From the first failure on, once a connection is refused with no answer to anybody in between. */
static void test_outage(void **state)
{
    struct fixture *f = *state;
    struct api_result ok = ended(200, ERR_OK, 1), reset = ended(0, ERR_RESET, 1), refused = ended(0, ERR_CONNECT, 1),
                      cancelled = ended(0, ERR_CANCELLED, 1), server_error = ended(500, ERR_OK, 1),
                      cut_stream = ended(200, ERR_CLOSED, 1);
    meter_reach(&f->m, &reset);
    meter_reach(&f->m, &ok); /* one cut connection is no outage */
    meter_reach(&f->m, &cancelled);
    assert_int_equal(f->m.n_outages, 0);
    meter_reach(&f->m, &cut_stream);
    pause_ms(30);
    meter_reach(&f->m, &refused);
    meter_reach(&f->m, &refused);
    assert_true(f->m.down);
    meter_look_at_outages(&f->m, mono_now());
    assert_true(f->m.outages[0].us >= 30000);
    assert_false(f->m.outages[0].over);
    pause_ms(20);
    meter_reach(&f->m, &server_error); /* an answer, whatever it says */
    assert_false(f->m.down);
    assert_int_equal(f->m.n_outages, 1);
    assert_string_equal(f->m.outages[0].what, "server unreachable");
    assert_in_range(f->m.outages[0].us, 50000, 5000000);
    assert_int_equal(f->m.outages[0].failures, 2);
    assert_true(f->m.outages[0].over);
    for (int i = 0; i < 2 * METER_OUTAGES; i++) { /* counted all, kept the first */
        meter_reach(&f->m, &refused);
        meter_reach(&f->m, &ok);
    }
    assert_int_equal(f->m.n_outages, 1 + 2 * METER_OUTAGES);
    assert_in_range(f->m.outages[0].us, 50000, 5000000);
}

/* A server that answers, but not with what it was asked for, is an outage of that kind as long as such answers come. */
static void test_unready(void **state)
{
    struct fixture *f = *state;
    struct api_result ok = ended(200, ERR_OK, 1), away = ended(503, ERR_OK, 1), other = ended(503, ERR_OK, 1);
    str_format(away.code, sizeof(away.code), "DATABASE_UNAVAILABLE");
    str_format(other.reason, sizeof(other.reason), "try again");
    meter_reach(&f->m, &away);
    meter_reach(&f->m, &ok); /* a listing that needed no database, say */
    pause_ms(20);
    meter_reach(&f->m, &away);
    meter_reach(&f->m, &other);
    assert_int_equal(f->m.n_outages, 2);
    assert_string_equal(f->m.outages[0].what, "503 DATABASE_UNAVAILABLE");
    assert_string_equal(f->m.outages[1].what, "503 try again");
    assert_int_equal(f->m.outages[0].failures, 2);
    assert_in_range(f->m.outages[0].us, 20000, 5000000);
    assert_false(f->m.outages[0].over);
    meter_look_at_outages(&f->m, mono_add(mono_now(), 6 * US_PER_S));
    assert_true(f->m.outages[0].over);
    meter_reach(&f->m, &away);
    assert_int_equal(f->m.n_outages, 3);
}

/* Nobody was answered for seconds, though a request waited. */
static void test_silence(void **state)
{
    struct fixture *f = *state;
    struct api_result slow = ended(200, ERR_OK, 1);
    meter_reach(&f->m, &slow);
    slow.sent = mono_add(mono_now(), -4 * US_PER_S);
    meter_reach(&f->m, &slow); /* slow, but others were answered meanwhile */
    assert_int_equal(f->m.n_outages, 0);
    f->m.answered = mono_add(mono_now(), -3500000);
    meter_reach(&f->m, &slow);
    assert_int_equal(f->m.n_outages, 1);
    assert_string_equal(f->m.outages[0].what, "no answer");
    assert_in_range(f->m.outages[0].us, 3500000, 3900000);
}

/* What an ordered outage explains is no failure; what it does not is one. */
static void test_ordered(void **state)
{
    struct fixture *f = *state;
    struct api_result cut = ended(0, ERR_RESET, 1), missing = ended(404, ERR_OK, 1), broken = ended(500, ERR_OK, 1);
    struct api_result before = cut, after = cut;
    before.sent = mono_add(before.sent, -US_PER_S);
    before.done = mono_add(before.done, -US_PER_S);
    unsigned order = meter_order(&f->m, "kill server");
    cut.done = mono_now();
    meter_order_over(&f->m, order);
    after.sent = after.done = mono_add(mono_now(), 60 * US_PER_S);
    const struct api_result *all[] = {&cut, &missing, &broken, &before, &after};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        meter_record(&f->m, OP_LIST, all[i], (struct mono){0});
    assert_int_equal(f->m.interval.op[OP_LIST].by_outcome[OUT_OUTAGE], 1);
    assert_int_equal(stats_failed(&f->m.interval, OP_LIST), 4);
    assert_int_equal(stats_calls(&f->m.interval, OP_LIST), 5);
}

static void test_streams(void **state)
{
    struct fixture *f = *state;
    meter_stream_up(&f->m);
    meter_stream_up(&f->m);
    meter_stream_down(&f->m);
    meter_stream_up(&f->m);
    assert_int_equal(f->m.streams_up, 2);
    assert_int_equal(f->m.streams_peak, 2);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_starts_empty), T(test_intervals_add_up), T(test_outage),  T(test_unready),
        T(test_silence),      T(test_ordered),          T(test_streams),
    };
    return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
