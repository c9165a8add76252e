#ifndef NET_LOOP_H
#define NET_LOOP_H
/* One event loop a thread: epoll, a timer heap, and posts from other threads. Callbacks run on the loop's stack and
 * must not block, nor run the loop again (loop_step inside a callback aborts: spawn a coroutine instead). Everything
 * except loop_post belongs to the loop's thread. Layer 1.
 *
 * A round is: wait, descriptors and posts, timers, deferred calls. What a callback defers runs in the same round;
 * timers it sets run in the next one at the earliest. */
#include "base/clock.h"
#include "base/err.h"
#include "base/hist.h"
#include <sys/epoll.h>

struct loop;
struct io {
    int fd;
    uint32_t events;
    void (*fn)(struct io *io, uint32_t events);
    struct loop *loop;
};
struct timer {
    struct mono at;
    void (*fn)(struct timer *t);
    struct loop *loop;
    size_t heap_index; /* 0: idle */
};

enum err loop_new(struct loop **out, struct errinfo *ei) WARN_UNUSED;
void loop_free(struct loop **l);
/* The caller owns the structs and keeps them alive while registered. fd is set by the caller before. */
enum err loop_io_add(struct loop *l, struct io *io, uint32_t events, struct errinfo *ei) WARN_UNUSED;
/* Changes the interest. 0: none, not even EPOLLHUP, so that a dead descriptor cannot make the loop spin. */
void loop_io_set(struct io *io, uint32_t events);
void loop_io_remove(struct io *io); /* before close(fd); safe when never added (loop NULL); safe inside any callback */
/* (Re)arms. A time that has passed counts as now, so that lateness measures the loop and not the caller. */
void loop_timer_set(struct loop *l, struct timer *t, struct mono at);
void loop_timer_stop(struct timer *t); /* idle timers are fine */
/* Thread-safe: fn(arg) runs soon on the loop's thread, in order of posting. */
void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);
/* Same thread: fn(arg) after the current round of events (used to resume coroutines in order). */
void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg);
void loop_undefer(struct loop *l, void (*fn)(void *arg), void *arg); /* drops such calls that did not run yet */
void loop_run(struct loop *l);                                       /* until loop_stop */
void loop_stop(struct loop *l);
void loop_step(struct loop *l, struct mono until); /* one round of events, waiting at most until then */
/* A round that begins AWAY_US after it should have, or takes so long without using the processor, is time in which the
 * process did not run: shortage_away (base/shortage.h) is told. */
struct mono loop_now(struct loop *l); /* the time of this round, cached */
/* How late timers fire, in us: the generator's own health. Owned by the loop; hist_reset it to start an interval. */
struct hist *loop_lag(struct loop *l);
/* Signals arrive as callbacks (signalfd; blocks them in the thread, also over exec: a child resets its mask; they are
 * unblocked by loop_free). SIGPIPE is ignored process-wide by loop_new. */
enum err loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg,
                        struct errinfo *ei) WARN_UNUSED;
#endif
