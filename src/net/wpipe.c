/* A ring of bytes under one mutex. Both ends can be on either side, so each has two ways to be woken: a condition for a
 * thread, a posted done_set for a coroutine. A full ring's writer is woken when half of it is free, not at the first
 * byte: that saves most of the switches. */
#include "net/work.h"

#include "base/mem.h"

#include <pthread.h>
#include <string.h>

struct end {
    bool suspended; /* a coroutine waits here; under the lock */
    pthread_cond_t cond;
    struct done done; /* loop's thread only */
};

struct wpipe {
    struct loop *loop;
    pthread_mutex_t lock; /* guards what follows, but for done */
    char *ring;
    size_t cap, start, len;
    bool write_closed, read_closed;
    enum err write_err;
    struct end reader, writer;
    unsigned posts; /* wake-ups under way in the loop: the memory lives until they have arrived */
    bool dead;
};

struct wpipe *wpipe_new(struct loop *l, size_t capacity)
{
    struct wpipe *p = mem_zalloc(sizeof *p);
    p->loop = l;
    p->cap = capacity > 0 ? capacity : 1;
    p->ring = mem_alloc(p->cap);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->reader.cond, NULL);
    pthread_cond_init(&p->writer.cond, NULL);
    return p;
}

static void destroy(struct wpipe *p)
{
    pthread_cond_destroy(&p->reader.cond);
    pthread_cond_destroy(&p->writer.cond);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->ring);
    mem_free(p);
}

void wpipe_free(struct wpipe **pp)
{
    struct wpipe *p = *pp;
    if (p == NULL)
        return;
    *pp = NULL;
    pthread_mutex_lock(&p->lock);
    p->dead = true;
    bool now = p->posts == 0;
    pthread_mutex_unlock(&p->lock);
    if (now)
        destroy(p);
}

/* ---- waking and waiting ---- */

static void arrive(struct wpipe *p, struct end *e)
{
    pthread_mutex_lock(&p->lock);
    bool last = --p->posts == 0 && p->dead;
    pthread_mutex_unlock(&p->lock);
    if (last)
        destroy(p);
    else
        done_set(&e->done);
}

static void arrive_reader(void *arg)
{
    struct wpipe *p = arg;
    arrive(p, &p->reader);
}

static void arrive_writer(void *arg)
{
    struct wpipe *p = arg;
    arrive(p, &p->writer);
}

static void wake(struct wpipe *p, struct end *e)
{
    pthread_cond_signal(&e->cond);
    if (e->suspended) {
        e->suspended = false;
        p->posts++;
        loop_post(p->loop, e == &p->reader ? arrive_reader : arrive_writer, p);
    }
}

/* Gives the lock up while it waits. */
static MAY_YIELD void wait_here(struct wpipe *p, struct end *e, bool blocking)
{
    if (blocking) {
        pthread_cond_wait(&e->cond, &p->lock);
        return;
    }
    e->suspended = true;
    pthread_mutex_unlock(&p->lock);
    done_wait(p->loop, &e->done);
    pthread_mutex_lock(&p->lock);
}

/* ---- bytes ---- */

static size_t put(struct wpipe *p, const char *data, size_t n)
{
    size_t room = p->cap - p->len;
    if (n > room)
        n = room;
    size_t at = (p->start + p->len) % p->cap;
    size_t first = n < p->cap - at ? n : p->cap - at;
    memcpy(p->ring + at, data, first);
    memcpy(p->ring, data + first, n - first);
    p->len += n;
    return n;
}

static size_t get(struct wpipe *p, char *data, size_t n)
{
    if (n > p->len)
        n = p->len;
    size_t first = n < p->cap - p->start ? n : p->cap - p->start;
    memcpy(data, p->ring + p->start, first);
    memcpy(data + first, p->ring, n - first);
    p->start = (p->start + n) % p->cap;
    p->len -= n;
    return n;
}

static MAY_YIELD enum err write_side(struct wpipe *p, const char *data, size_t n, bool blocking)
{
    pthread_mutex_lock(&p->lock);
    while (!p->read_closed && !p->write_closed && n > 0) {
        size_t k = put(p, data, n);
        data += k;
        n -= k;
        if (k > 0)
            wake(p, &p->reader);
        if (n > 0)
            wait_here(p, &p->writer, blocking);
    }
    enum err err = p->read_closed || p->write_closed ? ERR_CLOSED : ERR_OK;
    pthread_mutex_unlock(&p->lock);
    return err;
}

static MAY_YIELD enum err read_side(struct wpipe *p, char *data, size_t n, size_t *got, bool blocking)
{
    pthread_mutex_lock(&p->lock);
    while (p->len == 0 && !p->write_closed && !p->read_closed)
        wait_here(p, &p->reader, blocking);
    enum err err = ERR_OK;
    if (p->read_closed)
        err = ERR_CLOSED;
    else if (p->len == 0)
        err = p->write_err;
    *got = err == ERR_OK ? get(p, data, n) : 0;
    if (p->len <= p->cap / 2)
        wake(p, &p->writer);
    pthread_mutex_unlock(&p->lock);
    return err;
}

enum err wpipe_write(struct wpipe *p, const void *data, size_t n)
{
    return write_side(p, data, n, false);
}

enum err wpipe_write_blocking(struct wpipe *p, const void *data, size_t n)
{
    return write_side(p, data, n, true);
}

enum err wpipe_read(struct wpipe *p, void *data, size_t n, size_t *got)
{
    return read_side(p, data, n, got, false);
}

enum err wpipe_read_blocking(struct wpipe *p, void *data, size_t n, size_t *got)
{
    return read_side(p, data, n, got, true);
}

void wpipe_close_write(struct wpipe *p, enum err err)
{
    pthread_mutex_lock(&p->lock);
    if (!p->write_closed) {
        p->write_closed = true;
        p->write_err = err;
    }
    wake(p, &p->reader);
    wake(p, &p->writer);
    pthread_mutex_unlock(&p->lock);
}

void wpipe_close_read(struct wpipe *p)
{
    pthread_mutex_lock(&p->lock);
    p->read_closed = true;
    wake(p, &p->reader);
    wake(p, &p->writer);
    pthread_mutex_unlock(&p->lock);
}
