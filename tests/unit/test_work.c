/* The thread pool and the byte pipe between a coroutine and a thread. Run it under V=tsan too. */
#include "base/mem.h"
#include "net/work.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct loop *loop;
static struct work *work;

static int setup(void **state)
{
    (void)state;
    enum err err = loop_new(&loop, NULL);
    work = work_new(loop, 8);
    return err;
}

static int teardown(void **state)
{
    (void)state;
    work_free(&work);
    coro_pool_trim();
    loop_free(&loop);
    return 0;
}

/* ---- the pool ---- */

struct sum {
    int from, to;
    int64_t sum;
    bool other_thread;
    pthread_t loop_thread;
};

static void add_up(void *arg)
{
    struct sum *s = arg;
    s->other_thread = !pthread_equal(pthread_self(), s->loop_thread);
    for (int i = s->from; i < s->to; i++)
        s->sum += i;
}

static void run_sum(void *arg)
{
    struct sum *s = arg;
    s->loop_thread = pthread_self();
    work_run(work, add_up, s);
}

static void jobs_run_in_threads_and_return(void **state)
{
    (void)state;
    enum { N = 200 };
    static struct sum s[N];
    memset(s, 0, sizeof s);
    struct group g = {0};
    for (int i = 0; i < N; i++) {
        s[i].from = i;
        s[i].to = i + 10;
        group_spawn(loop, &g, run_sum, &s[i]);
    }
    group_wait(loop, &g);
    for (int i = 0; i < N; i++) {
        assert_int_equal(s[i].sum, 10 * i + 45);
        assert_true(s[i].other_thread);
    }
    struct sum one = {.from = 0, .to = 3};
    run_sum(&one); /* outside a coroutine */
    assert_int_equal(one.sum, 3);
}

static atomic_int at_once, most_at_once;
static pthread_barrier_t barrier;

static void meet(void *arg)
{
    (void)arg;
    int n = atomic_fetch_add(&at_once, 1) + 1;
    for (int most = atomic_load(&most_at_once); n > most && !atomic_compare_exchange_weak(&most_at_once, &most, n);)
        ;
    pthread_barrier_wait(&barrier); /* passes only when as many run at once */
    atomic_fetch_sub(&at_once, 1);
}

static void count_finished(void *arg)
{
    ++*(int *)arg;
}

static void as_many_threads_as_allowed_and_no_more(void **state)
{
    (void)state;
    int finished = 0;
    atomic_store(&most_at_once, 0);
    pthread_barrier_init(&barrier, NULL, 8);
    for (int i = 0; i < 32; i++)
        work_start(work, meet, count_finished, &finished);
    while (finished < 32)
        loop_step(loop, MONO_NEVER);
    assert_int_equal(atomic_load(&most_at_once), 8);
    pthread_barrier_destroy(&barrier);
}

static void pause_a_little(void *arg)
{
    (void)arg;
    usleep(2000);
}

static void freeing_waits_for_jobs_and_loses_none(void **state)
{
    (void)state;
    int finished = 0;
    for (int i = 0; i < 30; i++)
        work_start(work, pause_a_little, count_finished, &finished);
    work_free(&work);
    loop_step(loop, MONO_NEVER);
    assert_int_equal(finished, 30);
}

static void ask_mask(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
}

static void signals_are_blocked_in_threads(void **state)
{
    (void)state;
    sigset_t mask;
    sigemptyset(&mask);
    work_run(work, ask_mask, &mask);
    assert_true(sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGINT));
}

/* ---- the pipe ---- */

struct flow {
    struct wpipe *pipe;
    size_t total, read_max, write_max;
    uint64_t seed;
    enum err write_err, read_err, close_with;
    size_t stop_reading_after; /* 0: never */
    size_t read_n;
    bool wrong;
};

static char byte_at(size_t i)
{
    return (char)(i * 31 + (i >> 8) * 17);
}

static uint64_t next_rand(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return *x >> 33;
}

typedef enum err write_fn(struct wpipe *p, const void *data, size_t n);
typedef enum err read_fn(struct wpipe *p, void *data, size_t n, size_t *got);

static void write_all(struct flow *f, write_fn *write_some)
{
    char piece[5000];
    uint64_t x = f->seed;
    for (size_t at = 0; at < f->total && f->write_err == ERR_OK;) {
        size_t n = 1 + next_rand(&x) % f->write_max;
        if (n > f->total - at)
            n = f->total - at;
        for (size_t i = 0; i < n; i++)
            piece[i] = byte_at(at + i);
        f->write_err = write_some(f->pipe, piece, n);
        at += n;
    }
    wpipe_close_write(f->pipe, f->close_with);
}

static void read_all(struct flow *f, read_fn *read_some)
{
    char piece[5000];
    uint64_t x = f->seed + 1;
    for (;;) {
        size_t got;
        f->read_err = read_some(f->pipe, piece, 1 + next_rand(&x) % f->read_max, &got);
        if (f->read_err != ERR_OK || got == 0)
            break;
        for (size_t i = 0; i < got; i++)
            f->wrong |= piece[i] != byte_at(f->read_n + i);
        f->read_n += got;
        if (f->stop_reading_after != 0 && f->read_n >= f->stop_reading_after)
            break;
    }
    wpipe_close_read(f->pipe);
}

static void thread_writes(void *arg)
{
    write_all(arg, wpipe_write_blocking);
}
static void thread_reads(void *arg)
{
    read_all(arg, wpipe_read_blocking);
}
static void coro_writes(void *arg)
{
    write_all(arg, wpipe_write);
}
static void coro_reads(void *arg)
{
    read_all(arg, wpipe_read);
}
static void run_thread_writes(void *arg)
{
    work_run(work, thread_writes, arg);
}
static void run_thread_reads(void *arg)
{
    work_run(work, thread_reads, arg);
}

static const struct {
    void (*writer)(void *arg), (*reader)(void *arg);
} pairs[] = {
    {coro_writes, run_thread_reads},
    {run_thread_writes, coro_reads},
    {coro_writes, coro_reads},
    {run_thread_writes, run_thread_reads},
};

static void flow_run(struct flow *f, size_t capacity, size_t pair)
{
    f->pipe = wpipe_new(loop, capacity);
    struct group g = {0};
    group_spawn(loop, &g, pairs[pair].writer, f);
    group_spawn(loop, &g, pairs[pair].reader, f);
    group_wait(loop, &g);
    wpipe_free(&f->pipe);
}

static void bytes_arrive_in_order_whoever_writes(void **state)
{
    (void)state;
    static const size_t capacities[] = {1, 7, 4096, 1 << 16};
    for (size_t pair = 0; pair < ARRAY_LEN(pairs); pair++)
        for (size_t c = 0; c < ARRAY_LEN(capacities); c++) {
            struct flow f = {.total = capacities[c] < 100 ? 3000 : 1 << 20, .read_max = 4999, .write_max = 4999};
            f.seed = pair * 100 + c;
            flow_run(&f, capacities[c], pair);
            assert_int_equal(f.write_err, ERR_OK);
            assert_int_equal(f.read_err, ERR_OK);
            assert_int_equal(f.read_n, f.total);
            assert_false(f.wrong);
        }
}

static void an_error_of_the_writer_reaches_the_reader_after_the_bytes(void **state)
{
    (void)state;
    for (size_t pair = 0; pair < ARRAY_LEN(pairs); pair++) {
        struct flow f = {.total = 9000, .read_max = 1000, .write_max = 3000, .close_with = ERR_RESET};
        flow_run(&f, 2048, pair);
        assert_int_equal(f.read_err, ERR_RESET);
        assert_int_equal(f.read_n, 9000);
    }
}

static void a_reader_that_leaves_stops_the_writer(void **state)
{
    (void)state;
    for (size_t pair = 0; pair < ARRAY_LEN(pairs); pair++) {
        struct flow f = {.total = 1 << 20, .read_max = 1000, .write_max = 3000, .stop_reading_after = 5000};
        flow_run(&f, 2048, pair);
        assert_int_equal(f.write_err, ERR_CLOSED);
        assert_in_range(f.read_n, 5000, 6000);
    }
}

static void waits_for_bytes(void *arg)
{
    struct flow *f = arg;
    char c;
    size_t got;
    f->read_err = wpipe_read_blocking(f->pipe, &c, 1, &got);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static void a_third_party_can_close_while_one_waits(void **state)
{
    (void)state;
    struct flow f = {.pipe = wpipe_new(loop, 10)};
    work_start(work, waits_for_bytes, do_nothing, &f);
    wpipe_close_write(f.pipe, ERR_CANCELLED);
    wpipe_close_write(f.pipe, ERR_OK); /* the first one counts */
    work_free(&work);
    assert_int_equal(f.read_err, ERR_CANCELLED);
    wpipe_free(&f.pipe);
    loop_step(loop, mono_now());
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(jobs_run_in_threads_and_return),        CASE(as_many_threads_as_allowed_and_no_more),
        CASE(freeing_waits_for_jobs_and_loses_none), CASE(signals_are_blocked_in_threads),
        CASE(bytes_arrive_in_order_whoever_writes),  CASE(an_error_of_the_writer_reaches_the_reader_after_the_bytes),
        CASE(a_reader_that_leaves_stops_the_writer), CASE(a_third_party_can_close_while_one_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
