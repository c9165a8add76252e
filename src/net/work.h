#ifndef NET_WORK_H
#define NET_WORK_H
/* A pool of threads for calls that block (libs3, crypt): the coroutine suspends until fn(arg) has run in a thread.
 * Threads start on demand up to max and end with the pool. Layer 1. */
#include "net/coro.h"
struct work;
struct work *work_new(struct loop *l, unsigned max_threads);
void work_free(struct work **w);                     /* waits for running jobs */
MAY_YIELD void work_run(struct work *w, void (*fn)(void *arg), void *arg);
/* Starts fn(arg) in a thread and returns; finished(arg) then runs on the loop's thread. */
void work_start(struct work *w, void (*fn)(void *arg), void (*finished)(void *arg), void *arg);

/* A bounded pipe of bytes between a coroutine and a thread (either may be the reader). Closing the write side with an
 * error makes the reader fail with it; closing the read side makes the writer fail with ERR_CLOSED. */
struct wpipe;
struct wpipe *wpipe_new(struct loop *l, size_t capacity);
void wpipe_free(struct wpipe **p);
MAY_YIELD enum err wpipe_write(struct wpipe *p, const void *data, size_t n) WARN_UNUSED;           /* from the coroutine */
MAY_YIELD enum err wpipe_read(struct wpipe *p, void *data, size_t n, size_t *got) WARN_UNUSED;     /* from the coroutine; *got 0: end */
enum err wpipe_write_blocking(struct wpipe *p, const void *data, size_t n) WARN_UNUSED;            /* from the thread */
enum err wpipe_read_blocking(struct wpipe *p, void *data, size_t n, size_t *got) WARN_UNUSED;      /* from the thread */
void wpipe_close_write(struct wpipe *p, enum err err);   /* either side; ERR_OK is a clean end */
void wpipe_close_read(struct wpipe *p);
#endif
