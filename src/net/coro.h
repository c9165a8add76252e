#ifndef NET_CORO_H
#define NET_CORO_H
/* Coroutines on a loop: straight-line scenario code that suspends instead of blocking. Outside a coroutine the same
 * calls run the loop until their condition holds, so that one text serves both (style.md, "Scenarios"). Stacks are
 * 64 KiB with a guard page (256 KiB under sanitizers), pooled. The switch is assembly on x86-64 and aarch64,
 * swapcontext elsewhere. A coroutine never leaves its loop's thread. Layer 1. */
#include "net/loop.h"

struct coro;
/* Starts fn(arg) in a coroutine of its own, at the end of this round. Freed by itself when fn returns. */
void coro_spawn(struct loop *l, void (*fn)(void *arg), void *arg);
size_t coro_count(void);   /* alive in this thread */
void coro_pool_trim(void); /* frees this thread's pooled stacks */

/* A completion: one waiter, any number of signals before or after the wait. The base of every blocking call here.
 * Zero is its initial state. */
struct done {
    struct coro *waiter;
    bool set;
};
void done_set(struct done *d); /* loop's thread; use loop_post from others */
/* Suspends (or runs the loop) until set. Clears it again. */
MAY_YIELD void done_wait(struct loop *l, struct done *d);
/* False when the deadline came first. */
MAY_YIELD bool done_wait_until(struct loop *l, struct done *d, struct mono deadline);
MAY_YIELD void coro_sleep_until(struct loop *l, struct mono at);
/* Ends early when *stop, which a signal's handler may set without waking anybody: it is looked at in steps. False then.
 */
MAY_YIELD bool coro_sleep_unless(struct loop *l, struct mono at, const bool *stop);

/* A counting semaphore, first come first served: pools, per-account order, limits. */
struct sem_waiter;
struct sem {
    int64_t free;
    struct sem_waiter *head, **tail;
};
void sem_init_coro(struct sem *s, int64_t free);
MAY_YIELD void sem_take(struct loop *l, struct sem *s, int64_t n);
MAY_YIELD bool sem_take_until(struct loop *l, struct sem *s, int64_t n, struct mono deadline);
void sem_give(struct sem *s, int64_t n);
size_t sem_waiting(const struct sem *s);

/* A group: run many coroutines, wait for all of them. Zero is its initial state. */
struct group {
    size_t running;
    struct done done;
};
void group_spawn(struct loop *l, struct group *g, void (*fn)(void *arg), void *arg);
MAY_YIELD void group_wait(struct loop *l, struct group *g);
#endif
