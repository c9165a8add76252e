#include "base/mem.h"
#include "sim/meter.h"

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
    assert_int_equal(f->total.requests, 0);
}

/* Shared case L10: an interval holds its own samples only, and all of them add up to the total. */
static void test_intervals_add_up(void **state)
{
    struct fixture *f = *state;
    struct api_result fast = ended(200, ERR_OK, 10000), slow = ended(200, ERR_OK, 1000000);
    for (int i = 0; i < 99; i++)
        meter_record(&f->m, OP_LIST, &fast, (struct mono){0});
    meter_requests(&f->m, CAUSE_RELIST, 99);
    meter_next_interval(&f->m);
    assert_int_equal(f->m.interval.requests, 0);
    meter_record(&f->m, OP_LIST, &slow, (struct mono){0});
    meter_requests(&f->m, CAUSE_RELIST, 1);
    assert_int_equal(hist_percentile(f->m.interval.op[OP_LIST].from_send, 50), 1000000);
    meter_next_interval(&f->m);
    assert_int_equal(stats_ok(&f->total, OP_LIST), 100);
    assert_int_equal(f->total.requests, 100);
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
    assert_true(meter_outage_us(&f->m, mono_now()) >= 30000);
    pause_ms(20);
    meter_reach(&f->m, &server_error); /* an answer, whatever it says */
    assert_false(f->m.down);
    assert_int_equal(f->m.n_outages, 1);
    assert_in_range(f->m.outages[0].us, 50000, 5000000);
    assert_int_equal(meter_outage_us(&f->m, mono_now()), 0);
    for (int i = 0; i < 2 * METER_OUTAGES; i++) { /* counted all, kept the first */
        meter_reach(&f->m, &refused);
        meter_reach(&f->m, &ok);
    }
    assert_int_equal(f->m.n_outages, 1 + 2 * METER_OUTAGES);
    assert_in_range(f->m.outages[0].us, 50000, 5000000);
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
    const struct CMUnitTest tests[] = {T(test_starts_empty), T(test_intervals_add_up), T(test_outage), T(test_streams)};
    return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
