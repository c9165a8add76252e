/* The event loop: order, removal inside callbacks, timers, posts from threads, signals, no spinning. */
#include "net/loop.h"
#include "unit.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop *loop;

static int setup(void **state)
{
    (void)state;
    return loop_new(&loop, NULL);
}

static int teardown(void **state)
{
    (void)state;
    loop_free(&loop);
    return 0;
}

static struct mono in_ms(int64_t ms)
{
    return mono_add(mono_now(), ms * US_PER_MS);
}

/* ---- timers ---- */

struct named_timer {
    struct timer timer;
    char name;
    struct timer *stops;
};
static char trail[256];

static void leave_name(char c)
{
    size_t n = strlen(trail);
    trail[n] = c;
    trail[n + 1] = '\0';
}

static void on_named(struct timer *t)
{
    struct named_timer *n = container_of(t, struct named_timer, timer);
    leave_name(n->name);
    if (n->stops != NULL)
        loop_timer_stop(n->stops);
}

static void timers_fire_in_order_and_stay_stopped(void **state)
{
    (void)state;
    trail[0] = '\0';
    struct named_timer t[5] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}, {.name = 'e'}};
    static const int at_ms[5] = {4, 1, 3, 2, 5};
    struct mono now = mono_now();
    for (int i = 0; i < 5; i++) {
        t[i].timer.fn = on_named;
        loop_timer_set(loop, &t[i].timer, mono_add(now, at_ms[i] * US_PER_MS));
    }
    t[3].stops = &t[2].timer;                               /* d, second, stops c */
    loop_timer_set(loop, &t[1].timer, mono_add(now, 4500)); /* b moves behind a */
    while (t[4].timer.heap_index != 0)
        loop_step(loop, in_ms(1000));
    assert_string_equal(trail, "dabe");
    loop_timer_stop(&t[0].timer); /* idle: nothing happens */
    assert_int_equal(hist_count(loop_lag(loop)), 4);
}

static void heap_keeps_its_order(void **state)
{
    (void)state;
    enum { N = 500 };
    static struct named_timer t[N];
    memset(t, 0, sizeof t);
    uint32_t x = 12345;
    struct mono base = in_ms(100000);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < N; i++) {
            x = x * 1664525 + 1013904223;
            t[i].timer.fn = on_named;
            if (x >> 30 == 0)
                loop_timer_stop(&t[i].timer);
            else
                loop_timer_set(loop, &t[i].timer, mono_add(base, x >> 8));
        }
    struct named_timer soon = {.timer.fn = on_named, .name = 's'};
    trail[0] = '\0';
    loop_timer_set(loop, &soon.timer, mono_now());
    loop_step(loop, in_ms(1000));
    assert_string_equal(trail, "s"); /* the earliest of 501 */
    for (int i = 0; i < N; i++)
        loop_timer_stop(&t[i].timer);
}

static int self_armed;
static void on_self_arm(struct timer *t)
{
    self_armed++;
    loop_timer_set(loop, t, (struct mono){0});
}

static void timer_that_rearms_for_now_runs_once_a_round(void **state)
{
    (void)state;
    self_armed = 0;
    struct timer t = {.fn = on_self_arm};
    loop_timer_set(loop, &t, (struct mono){0});
    loop_step(loop, in_ms(100));
    assert_int_equal(self_armed, 1);
    loop_step(loop, in_ms(100));
    assert_int_equal(self_armed, 2);
    loop_timer_stop(&t);
    assert_true(hist_max(loop_lag(loop)) < 10 * US_PER_S); /* "long ago" counts as now */
}

static void on_busy(struct timer *t)
{
    (void)t;
    struct mono until = in_ms(30);
    while (mono_before(mono_now(), until))
        ;
}

static void lag_tells_how_late_timers_fire(void **state)
{
    (void)state;
    struct mono at = in_ms(1);
    struct timer busy = {.fn = on_busy}, late = {.fn = on_busy};
    loop_timer_set(loop, &busy, at);
    loop_timer_set(loop, &late, mono_add(at, 1000));
    while (late.heap_index != 0)
        loop_step(loop, in_ms(1000));
    assert_true(hist_max(loop_lag(loop)) >= 28 * US_PER_MS);
    assert_true(hist_max(loop_lag(loop)) - hist_percentile(loop_lag(loop), 0) >= 20 * US_PER_MS); /* the second alone */
}

/* ---- descriptors ---- */

struct end {
    struct io io;
    int calls;
    struct end *removes;
};

static void on_end(struct io *io, uint32_t events)
{
    (void)events;
    struct end *e = container_of(io, struct end, io);
    e->calls++;
    if (e->removes != NULL) {
        loop_io_remove(&e->removes->io);
        loop_io_remove(&e->io);
    }
}

static void removal_inside_a_callback_silences_the_rest_of_the_batch(void **state)
{
    (void)state;
    int p[2], q[2];
    assert_int_equal(pipe(p) | pipe(q), 0);
    struct end a = {.io = {.fd = p[0], .fn = on_end}}, b = {.io = {.fd = q[0], .fn = on_end}};
    a.removes = &b;
    b.removes = &a;
    assert_int_equal(loop_io_add(loop, &a.io, EPOLLIN, NULL), ERR_OK);
    assert_int_equal(loop_io_add(loop, &b.io, EPOLLIN, NULL), ERR_OK);
    assert_int_equal(write(p[1], "x", 1) + write(q[1], "x", 1), 2);
    loop_step(loop, in_ms(1000));
    assert_int_equal(a.calls + b.calls, 1);
    loop_step(loop, in_ms(5));
    assert_int_equal(a.calls + b.calls, 1);
    loop_io_remove(&a.io); /* again: nothing happens */
    close(p[0]), close(p[1]), close(q[0]), close(q[1]);
}

static void no_interest_means_not_even_hangup(void **state)
{
    (void)state;
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    struct end a = {.io = {.fd = s[0], .fn = on_end}};
    assert_int_equal(loop_io_add(loop, &a.io, EPOLLIN, NULL), ERR_OK);
    loop_io_set(&a.io, 0);
    close(s[1]);
    struct mono from = mono_now();
    loop_step(loop, in_ms(20));
    assert_true(mono_diff(mono_now(), from) >= 19 * US_PER_MS); /* it waited */
    assert_int_equal(a.calls, 0);
    loop_io_set(&a.io, EPOLLIN);
    loop_step(loop, in_ms(1000));
    assert_int_equal(a.calls, 1);
    loop_io_remove(&a.io);
    close(s[0]);
}

static void bad_descriptor_is_an_error(void **state)
{
    (void)state;
    struct errinfo ei;
    struct end a = {.io = {.fd = 9999, .fn = on_end}};
    assert_int_equal(loop_io_add(loop, &a.io, EPOLLIN, &ei), ERR_IO);
    assert_non_null(strstr(ei.msg, "9999"));
    loop_io_remove(&a.io);
}

/* With no descriptor left, a loop cannot be made, says so, and leaves nothing open. */
static void no_descriptors_left(void **state)
{
    (void)state;
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &low);
    struct loop *l = NULL;
    struct errinfo ei;
    enum err err = loop_new(&l, &ei);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(err, ERR_ENV);
    assert_null(l);
    assert_non_null(strstr(ei.msg, "open files"));
}

/* ---- calls ---- */

static void on_letter(void *arg)
{
    leave_name(*(char *)arg);
}

static void on_defer_more(void *arg)
{
    leave_name('(');
    loop_defer(loop, on_letter, arg);
    leave_name(')');
}

static void deferred_calls_run_in_order_in_the_same_round(void **state)
{
    (void)state;
    trail[0] = '\0';
    char x = 'x', y = 'y', z = 'z';
    loop_defer(loop, on_defer_more, &x);
    loop_defer(loop, on_letter, &y);
    loop_defer(loop, on_letter, &z);
    loop_undefer(loop, on_letter, &z);
    loop_step(loop, in_ms(1000));
    assert_string_equal(trail, "()yx");
}

enum { POSTS = 2000 };
static int next_post, posts_out_of_order;
static void on_post(void *arg)
{
    posts_out_of_order += *(int *)arg != next_post;
    if (++next_post == POSTS)
        loop_stop(loop);
}
static void *post_many(void *arg)
{
    int *numbers = arg;
    for (int i = 0; i < POSTS; i++)
        loop_post(loop, on_post, &numbers[i]);
    return NULL;
}

static void posts_from_a_thread_arrive_in_order(void **state)
{
    (void)state;
    static int numbers[POSTS];
    next_post = posts_out_of_order = 0;
    for (int i = 0; i < POSTS; i++)
        numbers[i] = i;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, post_many, numbers), 0);
    loop_run(loop);
    pthread_join(t, NULL);
    assert_int_equal(next_post, POSTS);
    assert_int_equal(posts_out_of_order, 0);
}

static void on_signal(void *arg, int signo)
{
    *(int *)arg += signo;
}

static void signals_are_callbacks(void **state)
{
    (void)state;
    int seen = 0;
    assert_int_equal(loop_on_signal(loop, SIGUSR1, on_signal, &seen, NULL), ERR_OK);
    assert_int_equal(loop_on_signal(loop, SIGHUP, on_signal, &seen, NULL), ERR_OK);
    raise(SIGUSR1);
    raise(SIGHUP);
    loop_step(loop, in_ms(1000));
    assert_int_equal(seen, SIGUSR1 + SIGHUP);
    raise(SIGPIPE); /* ignored */
}

static void run_nested(void *arg)
{
    (void)arg;
    loop_step(loop, in_ms(1));
}

static void nest(void)
{
    loop_defer(loop, run_nested, NULL);
    loop_step(loop, in_ms(1));
}

static void a_nested_round_aborts(void **state)
{
    (void)state;
    assert_dies(nest);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(timers_fire_in_order_and_stay_stopped),
        CASE(heap_keeps_its_order),
        CASE(timer_that_rearms_for_now_runs_once_a_round),
        CASE(lag_tells_how_late_timers_fire),
        CASE(removal_inside_a_callback_silences_the_rest_of_the_batch),
        CASE(no_interest_means_not_even_hangup),
        CASE(bad_descriptor_is_an_error),
        CASE(no_descriptors_left),
        CASE(deferred_calls_run_in_order_in_the_same_round),
        CASE(posts_from_a_thread_arrive_in_order),
        CASE(signals_are_callbacks),
        CASE(a_nested_round_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
