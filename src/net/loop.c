/* epoll, level-triggered. The one decision to doubt: io structs belong to the caller and no table maps descriptors to
 * them, so removing one inside a callback has to blank what the current batch of events still says about it. */
#include "net/loop.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/recycle.h"
#include "base/shortage.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH = 256, /* events a round */
    AWAY_US = US_PER_S / 2,
    DEFER_PASSES = 16, /* calls deferred by deferred calls, before descriptors get their turn again */
};

struct call {
    void (*fn)(void *arg);
    void *arg;
};
struct calls { /* a vector of calls, run and refilled in turns */
    struct call *v;
    size_t n, cap;
};
struct on_signal {
    void (*fn)(void *arg, int signo);
    void *arg;
};

struct loop {
    int epfd;
    struct mono now;
    bool stop, in_round, no_pwait2;
    int64_t cpu_us;     /* of this thread, as of cpu_at */
    struct mono cpu_at; /* us 0: before the first round */

    struct epoll_event batch[BATCH];
    int batch_n, batch_at;

    struct timer **heap; /* heap[1] is the earliest */
    size_t heap_n, heap_cap;
    struct hist *lag;

    struct calls deferred, running;

    pthread_mutex_t post_lock; /* guards posted */
    struct calls posted;
    struct calls taken; /* the posts being run; its memory is reused */
    struct io wake;

    struct io signals;
    sigset_t signal_set;
    struct on_signal on_signal[_NSIG];
};

/* ---- calls ---- */

static void calls_push(struct calls *c, void (*fn)(void *arg), void *arg)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 64;
        c->v = mem_realloc_array(c->v, c->cap, sizeof *c->v);
    }
    c->v[c->n++] = (struct call){fn, arg};
}

static void calls_run(struct calls *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].fn != NULL)
            c->v[i].fn(c->v[i].arg);
    c->n = 0;
}

static void calls_swap(struct calls *a, struct calls *b)
{
    struct calls t = *a;
    *a = *b;
    *b = t;
}

static void calls_drop(struct calls *c, void (*fn)(void *arg), void *arg)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].fn == fn && c->v[i].arg == arg)
            c->v[i].fn = NULL;
}

/* ---- descriptors ---- */

static int io_ctl(struct io *io, int op, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = io};
    return epoll_ctl(io->loop->epfd, op, io->fd, &ev);
}

enum err loop_io_add(struct loop *l, struct io *io, uint32_t events, struct errinfo *ei)
{
    io->loop = l;
    io->events = events;
    if (events == 0 || io_ctl(io, EPOLL_CTL_ADD, events) == 0)
        return ERR_OK;
    io->loop = NULL;
    return err_sys(ei, ERR_IO, "cannot watch descriptor %d", io->fd);
}

void loop_io_set(struct io *io, uint32_t events)
{
    if (io->events == events)
        return;
    int op = events == 0 ? EPOLL_CTL_DEL : io->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (io_ctl(io, op, events) != 0)
        LOGE("loop", "descriptor %d: epoll_ctl: %s", io->fd, strerror(errno));
    io->events = events;
}

void loop_io_remove(struct io *io)
{
    struct loop *l = io->loop;
    if (l == NULL)
        return;
    if (io->events != 0)
        io_ctl(io, EPOLL_CTL_DEL, 0);
    for (int i = l->batch_at; i < l->batch_n; i++)
        if (l->batch[i].data.ptr == io)
            l->batch[i].data.ptr = NULL;
    io->loop = NULL;
}

static void run_descriptors(struct loop *l)
{
    for (l->batch_at = 0; l->batch_at < l->batch_n;) {
        struct epoll_event *ev = &l->batch[l->batch_at++];
        struct io *io = ev->data.ptr;
        if (io != NULL && io->events != 0)
            io->fn(io, ev->events);
    }
    l->batch_n = l->batch_at = 0;
}

/* ---- timers: a binary heap ---- */

static void heap_put(struct loop *l, size_t i, struct timer *t)
{
    l->heap[i] = t;
    t->heap_index = i;
}

static void heap_up(struct loop *l, size_t i, struct timer *t)
{
    for (; i > 1 && mono_before(t->at, l->heap[i / 2]->at); i /= 2)
        heap_put(l, i, l->heap[i / 2]);
    heap_put(l, i, t);
}

static void heap_down(struct loop *l, size_t i, struct timer *t)
{
    for (size_t child; (child = i * 2) <= l->heap_n; i = child) {
        if (child < l->heap_n && mono_before(l->heap[child + 1]->at, l->heap[child]->at))
            child++;
        if (!mono_before(l->heap[child]->at, t->at))
            break;
        heap_put(l, i, l->heap[child]);
    }
    heap_put(l, i, t);
}

static void heap_place(struct loop *l, size_t i, struct timer *t)
{
    if (i > 1 && mono_before(t->at, l->heap[i / 2]->at))
        heap_up(l, i, t);
    else
        heap_down(l, i, t);
}

void loop_timer_set(struct loop *l, struct timer *t, struct mono at)
{
    t->at = mono_later(at, l->now);
    if (t->heap_index != 0) {
        heap_place(l, t->heap_index, t);
        return;
    }
    if (l->heap_n + 1 >= l->heap_cap) {
        l->heap_cap = l->heap_cap ? l->heap_cap * 2 : 64;
        l->heap = mem_realloc_array(l->heap, l->heap_cap, sizeof(struct timer *));
    }
    t->loop = l;
    heap_up(l, ++l->heap_n, t);
}

void loop_timer_stop(struct timer *t)
{
    size_t i = t->heap_index;
    if (i == 0)
        return;
    struct loop *l = t->loop;
    struct timer *last = l->heap[l->heap_n--];
    t->heap_index = 0;
    if (last != t)
        heap_place(l, i, last);
}

/* Only what was due when the round began: a timer that re-arms itself for "now" waits for the next one. */
static void run_timers(struct loop *l)
{
    struct mono due = l->now;
    for (size_t left = l->heap_n; left > 0 && l->heap_n > 0; left--) {
        struct timer *t = l->heap[1];
        if (mono_before(due, t->at))
            return;
        hist_record(l->lag, mono_diff(mono_now(), t->at));
        loop_timer_stop(t);
        t->fn(t);
    }
}

/* ---- calls from here and from other threads ---- */

void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg)
{
    calls_push(&l->deferred, fn, arg);
}

void loop_undefer(struct loop *l, void (*fn)(void *arg), void *arg)
{
    calls_drop(&l->deferred, fn, arg);
    calls_drop(&l->running, fn, arg);
}

static void run_deferred(struct loop *l)
{
    for (int pass = 0; pass < DEFER_PASSES && l->deferred.n > 0; pass++) {
        calls_swap(&l->deferred, &l->running);
        calls_run(&l->running);
    }
}

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&l->post_lock);
    bool first = l->posted.n == 0;
    calls_push(&l->posted, fn, arg);
    if (first) { /* under the lock, so that the loop cannot have been freed by the call it wakes up for */
        uint64_t one = 1;
        if (write(l->wake.fd, &one, sizeof one) < 0 && errno != EAGAIN)
            abort();
    }
    pthread_mutex_unlock(&l->post_lock);
}

static void on_wake(struct io *io, uint32_t events)
{
    (void)events;
    struct loop *l = container_of(io, struct loop, wake);
    uint64_t count;
    if (read(io->fd, &count, sizeof count) < 0 && errno != EAGAIN)
        LOGE("loop", "eventfd: %s", strerror(errno));
    pthread_mutex_lock(&l->post_lock);
    calls_swap(&l->posted, &l->taken);
    pthread_mutex_unlock(&l->post_lock);
    calls_run(&l->taken);
}

/* ---- signals ---- */

static void on_signalfd(struct io *io, uint32_t events)
{
    (void)events;
    struct loop *l = container_of(io, struct loop, signals);
    struct signalfd_siginfo si;
    while (read(io->fd, &si, sizeof si) == (ssize_t)sizeof si) {
        struct on_signal *s = &l->on_signal[si.ssi_signo % _NSIG];
        if (s->fn != NULL)
            s->fn(s->arg, (int)si.ssi_signo);
    }
}

enum err loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg, struct errinfo *ei)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signo);
    sigaddset(&l->signal_set, signo);
    l->on_signal[signo] = (struct on_signal){fn, arg};
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    int fd = signalfd(l->signals.fd, &l->signal_set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return err_sys(ei, ERR_ENV, "cannot receive signals");
    if (l->signals.loop != NULL)
        return ERR_OK;
    l->signals.fd = fd;
    return loop_io_add(l, &l->signals, EPOLLIN, ei);
}

/* ---- rounds ---- */

static int wait_events(struct loop *l, int64_t wait_us)
{
    if (!l->no_pwait2) {
        struct timespec ts = {wait_us / US_PER_S, wait_us % US_PER_S * 1000};
        int n = epoll_pwait2(l->epfd, l->batch, BATCH, wait_us < 0 ? NULL : &ts, NULL);
        if (n >= 0 || errno != ENOSYS)
            return n;
        l->no_pwait2 = true; /* before Linux 5.11: whole milliseconds, rounded up */
    }
    int64_t ms = wait_us < 0 ? -1 : (wait_us + 999) / 1000;
    return epoll_wait(l->epfd, l->batch, BATCH, ms > INT32_MAX ? INT32_MAX : (int)ms);
}

/* The thread's own clock is asked no more than twice in AWAY_US: it is a system call. */
static void note_away(struct loop *l, struct mono from, struct mono now)
{
    int64_t gap = mono_diff(now, from);
    if (gap >= AWAY_US && l->cpu_at.us && clock_thread_cpu_us() - l->cpu_us < gap / 2 + AWAY_US / 4)
        shortage_away(gap);
    if (gap < AWAY_US && mono_diff(now, l->cpu_at) < AWAY_US / 2)
        return;
    l->cpu_us = clock_thread_cpu_us();
    l->cpu_at = now;
}

/* -1: for ever. A far deadline counts as for ever, so that no conversion below can overflow. */
static int64_t wait_time(const struct loop *l, struct mono now, struct mono until)
{
    if (l->deferred.n > 0)
        return 0;
    if (l->heap_n > 0 && mono_before(l->heap[1]->at, until))
        until = l->heap[1]->at;
    int64_t us = mono_diff(until, now);
    return us < 0 ? 0 : us > 86400 * US_PER_S ? -1 : us;
}

void loop_step(struct loop *l, struct mono until)
{
    if (l->in_round) {
        LOGE("loop", "a callback waits: what may wait belongs into a coroutine");
        abort();
    }
    l->in_round = true;
    struct mono before = mono_now();
    int64_t wait_us = wait_time(l, before, until);
    note_away(l, l->now, before);
    int n = wait_events(l, wait_us);
    if (n < 0 && errno != EINTR) {
        LOGE("loop", "epoll_wait: %s", strerror(errno));
        abort();
    }
    l->batch_n = n > 0 ? n : 0;
    l->now = mono_now();
    if (wait_us >= 0)
        note_away(l, mono_add(before, wait_us), l->now);
    run_descriptors(l);
    run_timers(l);
    run_deferred(l);
    l->in_round = false;
}

void loop_run(struct loop *l)
{
    for (l->stop = false; !l->stop;)
        loop_step(l, MONO_NEVER);
}

void loop_stop(struct loop *l)
{
    l->stop = true;
}

struct mono loop_now(struct loop *l)
{
    if (!l->in_round)
        l->now = mono_now();
    return l->now;
}

struct hist *loop_lag(struct loop *l)
{
    return l->lag;
}

/* ---- life ---- */

enum err loop_new(struct loop **out, struct errinfo *ei)
{
    struct loop *l = mem_zalloc(sizeof *l);
    recycle_here();
    l->wake.fd = l->signals.fd = -1;
    sigemptyset(&l->signal_set);
    pthread_mutex_init(&l->post_lock, NULL);
    l->lag = hist_new();
    l->now = mono_now();
    l->wake.fn = on_wake;
    l->signals.fn = on_signalfd;
    signal(SIGPIPE, SIG_IGN);

    enum err err = ERR_OK;
    l->epfd = epoll_create1(EPOLL_CLOEXEC);
    l->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->epfd < 0 || l->wake.fd < 0)
        err = err_sys(ei, ERR_ENV, "cannot make an event loop");
    if (err == ERR_OK)
        err = loop_io_add(l, &l->wake, EPOLLIN, ei);
    if (err != ERR_OK) {
        loop_free(&l);
        return err;
    }
    *out = l;
    return ERR_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void loop_free(struct loop **lp)
{
    struct loop *l = *lp;
    if (l == NULL)
        return;
    pthread_sigmask(SIG_UNBLOCK, &l->signal_set, NULL);
    close_fd(l->signals.fd);
    close_fd(l->wake.fd);
    close_fd(l->epfd);
    pthread_mutex_destroy(&l->post_lock);
    hist_free(&l->lag);
    mem_free(l->heap);
    mem_free(l->deferred.v);
    mem_free(l->running.v);
    mem_free(l->posted.v);
    mem_free(l->taken.v);
    mem_free(l);
    *lp = NULL;
}
