/* Coroutines: completions with and without deadlines, semaphores, groups, registers and stacks over switches. */
#include "net/coro.h"
#include "unit.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop *loop;
static char trail[512];

static int setup(void **state)
{
    (void)state;
    trail[0] = '\0';
    return loop_new(&loop, NULL);
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(coro_count(), 0);
    coro_pool_trim();
    loop_free(&loop);
    return 0;
}

static void leave(const char *s)
{
    strncat(trail, s, sizeof trail - strlen(trail) - 1);
}

static struct mono in_ms(int64_t ms)
{
    return mono_add(mono_now(), ms * US_PER_MS);
}

static void run_all(void)
{
    while (coro_count() > 0)
        loop_step(loop, MONO_NEVER);
}

/* ---- sleep ---- */

static void sets_the_mark(void *arg)
{
    *(bool *)arg = true;
}

static void sleep_ends_at_its_time_or_at_a_mark(void **state)
{
    (void)state;
    bool stop = false;
    assert_true(coro_sleep_unless(loop, mono_add(mono_now(), 2 * US_PER_MS), &stop));
    coro_spawn(loop, sets_the_mark, &stop);
    assert_false(coro_sleep_unless(loop, MONO_NEVER, &stop));
    assert_false(coro_sleep_unless(loop, MONO_NEVER, &stop)); /* set before */
}

/* ---- done ---- */

static struct done first, second;

static void waits_then_says(void *arg)
{
    done_wait(loop, &first);
    leave(arg);
    done_set(&second);
}

static void set_first(void *arg)
{
    (void)arg;
    leave("set ");
    done_set(&first);
    done_set(&first); /* twice wakes once */
}

static void done_wakes_its_waiter_once(void **state)
{
    (void)state;
    coro_spawn(loop, waits_then_says, (char[]){"woken "});
    coro_spawn(loop, set_first, NULL);
    done_wait(loop, &second); /* outside a coroutine: runs the loop */
    assert_string_equal(trail, "set woken ");
    assert_false(first.set || second.set);
}

static void done_set_before_the_wait_is_kept(void **state)
{
    (void)state;
    done_set(&first);
    coro_spawn(loop, waits_then_says, (char[]){"at once"});
    done_wait(loop, &second);
    assert_string_equal(trail, "at once");
}

static void on_set_first(struct timer *t)
{
    (void)t;
    done_set(&first);
}

struct race {
    int set_after_ms, deadline_ms;
    bool expect;
};

static void waits_until(void *arg)
{
    struct race *r = arg;
    struct timer setter = {.fn = on_set_first};
    struct mono now = mono_now();
    if (r->set_after_ms >= 0)
        loop_timer_set(loop, &setter, mono_add(now, r->set_after_ms * US_PER_MS));
    assert_int_equal(done_wait_until(loop, &first, mono_add(now, r->deadline_ms * US_PER_MS)), r->expect);
    loop_timer_stop(&setter);
    assert_false(first.set);
    assert_null(first.waiter);
}

static void deadlines(void **state)
{
    (void)state;
    struct race races[] = {
        {-1, 3, false}, {1, 1000, true}, {-1, -5, false},
        {-1, 0, false}, {2, 2, true}, /* both in one round: the signal came first */
    };
    for (size_t i = 0; i < ARRAY_LEN(races); i++) {
        coro_spawn(loop, waits_until, &races[i]);
        run_all();
        if (races[i].set_after_ms != races[i].deadline_ms)
            waits_until(&races[i]); /* the same outside a coroutine */
    }
}

static void sleeps(void *arg)
{
    int *ms = arg;
    struct mono at = in_ms(*ms);
    coro_sleep_until(loop, at);
    assert_false(mono_before(mono_now(), at));
}

static void many_sleep_at_once(void **state)
{
    (void)state;
    static int ms[200];
    struct group g = {0};
    struct mono from = mono_now();
    for (int i = 0; i < 200; i++) {
        ms[i] = 200 + i % 20;
        group_spawn(loop, &g, sleeps, &ms[i]);
    }
    assert_int_equal(coro_count(), 200);
    group_wait(loop, &g);
    assert_int_equal(g.running, 0);
    assert_true(mono_diff(mono_now(), from) < 20 * US_PER_S); /* one after the other takes twice that */
    sleeps(&ms[3]);
}

static void nothing(void *arg)
{
    ++*(int *)arg;
}

static void spawns_and_waits(void *arg)
{
    struct group g = {0};
    for (int round = 0; round < 3; round++) { /* a group is reusable */
        for (int i = 0; i < 10; i++)
            group_spawn(loop, &g, nothing, arg);
        group_wait(loop, &g);
    }
    group_wait(loop, &g); /* empty: returns */
}

static void groups_nest(void **state)
{
    (void)state;
    int n = 0;
    struct group g = {0};
    for (int i = 0; i < 5; i++)
        group_spawn(loop, &g, spawns_and_waits, &n);
    group_wait(loop, &g);
    assert_int_equal(n, 150);
}

/* ---- semaphore ---- */

struct taker {
    struct sem *sem;
    int64_t n;
    const char *name;
    int64_t deadline_ms; /* 0: none */
};

static void takes(void *arg)
{
    struct taker *t = arg;
    struct mono until = t->deadline_ms != 0 ? in_ms(t->deadline_ms) : MONO_NEVER;
    if (!sem_take_until(loop, t->sem, t->n, until)) {
        leave("!");
        leave(t->name);
        return;
    }
    leave(t->name);
    coro_sleep_until(loop, in_ms(3));
    sem_give(t->sem, t->n);
}

static void semaphore_is_first_come_first_served(void **state)
{
    (void)state;
    struct sem s;
    sem_init_coro(&s, 3);
    struct taker t[] = {{&s, 2, "a", 0}, {&s, 3, "b", 0}, {&s, 1, "c", 0}, {&s, 1, "d", 0}};
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        coro_spawn(loop, takes, &t[i]);
    loop_step(loop, in_ms(0));
    assert_string_equal(trail, "a"); /* c fits, but b was first */
    assert_int_equal(sem_waiting(&s), 3);
    run_all();
    assert_string_equal(trail, "abcd");
    assert_int_equal(s.free, 3);
}

static void a_waiter_that_gives_up_lets_the_next_ones_in(void **state)
{
    (void)state;
    struct sem s;
    sem_init_coro(&s, 3);
    struct taker hold = {&s, 2, "a", 0}, big = {&s, 3, "b", 1}, small = {&s, 1, "c", 0}, last = {&s, 5, "d", 20};
    coro_spawn(loop, takes, &hold);
    coro_spawn(loop, takes, &big);
    coro_spawn(loop, takes, &small);
    coro_spawn(loop, takes, &last);
    run_all();
    assert_string_equal(trail, "a!bc!d");
    assert_int_equal(s.free, 3);
    assert_int_equal(sem_waiting(&s), 0);
    sem_take(loop, &s, 3);
    sem_give(&s, 3);
}

/* ---- the switch itself ---- */

static void counts(void *arg)
{
    volatile double x = 1.0 / 3;
    char big[16 * 1024];
    int seed = *(int *)arg;
    memset(big, seed, sizeof big);
    double sum = 0;
    for (int i = 0; i < 100; i++) {
        sum += x * i;
        done_set(&first);
        struct done pause = {.set = false};
        (void)done_wait_until(loop, &pause, (struct mono){0});
    }
    for (size_t i = 0; i < sizeof big; i++)
        assert_int_equal(big[i], (char)seed);
    char text[64];
    snprintf(text, sizeof text, "%.3f %Lf", sum, (long double)seed);
    char *end;
    assert_true(strtod(text, &end) == 1650.0);
}

static void stacks_and_registers_survive(void **state)
{
    (void)state;
    static int seeds[50];
    struct group g = {0};
    for (int i = 0; i < 50; i++) {
        seeds[i] = i;
        group_spawn(loop, &g, counts, &seeds[i]);
    }
    group_wait(loop, &g);
    first.set = false;
}

static int depth(volatile char *above, int left)
{
    volatile char here[4096];
    here[0] = above[0];
    return left == 0 ? here[0] : depth(here, left - 1) + here[0];
}

static void overflows(void *arg)
{
    volatile char top[1] = {0};
    *(int *)arg = depth(top, 1 << 20);
}

static void overflow_a_stack(void)
{
    int sum = 0;
    coro_spawn(loop, overflows, &sum);
    loop_step(loop, in_ms(0));
}

/* The guard page turns an overflow into a crash, not into a neighbour's wrong data. */
static void overflow_hits_the_guard_page(void **state)
{
    (void)state;
    assert_dies(overflow_a_stack);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sleep_ends_at_its_time_or_at_a_mark),
        CASE(done_wakes_its_waiter_once),
        CASE(done_set_before_the_wait_is_kept),
        CASE(deadlines),
        CASE(many_sleep_at_once),
        CASE(groups_nest),
        CASE(semaphore_is_first_come_first_served),
        CASE(a_waiter_that_gives_up_lets_the_next_ones_in),
        CASE(stacks_and_registers_survive),
        CASE(overflow_hits_the_guard_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
