#ifndef NET_WORK_H
#define NET_WORK_H
/* A pool of threads for calls that block (libs3, crypt): the coroutine suspends until fn(arg) has run in a thread.
 * Threads start on demand up to max and end with the pool; signals are blocked in them. Layer 1. */
#include "net/coro.h"

struct work;
struct work *work_new(struct loop *l, unsigned max_threads);
/* Waits until every job has run. Their finished() calls are still delivered by the loop's next rounds. */
void work_free(struct work **w);
MAY_YIELD void work_run(struct work *w, void (*fn)(void *arg), void *arg);
/* Starts fn(arg) in a thread and returns; finished(arg) then runs on the loop's thread. */
void work_start(struct work *w, void (*fn)(void *arg), void (*finished)(void *arg), void *arg);

/* A bounded pipe of bytes between a coroutine and a thread (either may be the reader). Closing the write side with an
 * error makes the reader fail with it, after the bytes written before; closing the read side makes the writer fail with
 * ERR_CLOSED. One reader, one writer. Freed on the loop's thread, when neither will touch it again. */
struct wpipe;
struct wpipe *wpipe_new(struct loop *l, size_t capacity);
void wpipe_free(struct wpipe **p);
/* All n bytes or an error. */
MAY_YIELD enum err wpipe_write(struct wpipe *p, const void *data, size_t n) WARN_UNUSED; /* from the coroutine */
enum err wpipe_write_blocking(struct wpipe *p, const void *data, size_t n) WARN_UNUSED;  /* from the thread */
/* At least one byte, at most n; *got 0 at the end. */
MAY_YIELD enum err wpipe_read(struct wpipe *p, void *data, size_t n, size_t *got) WARN_UNUSED; /* from the coroutine */
enum err wpipe_read_blocking(struct wpipe *p, void *data, size_t n, size_t *got) WARN_UNUSED;  /* from the thread */
/* From either side, also while the other one waits. The first close counts. ERR_OK is a clean end. */
void wpipe_close_write(struct wpipe *p, enum err err);
void wpipe_close_read(struct wpipe *p);
#endif
