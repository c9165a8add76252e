/* The pool: one queue, one condition. A finished job travels back by loop_post, so results arrive in order. */
#include "net/work.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct job *next;
    void (*fn)(void *arg);
    void (*finished)(void *arg);
    void *arg;
    struct work *work;
};

struct work {
    struct loop *loop;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct job *head, **tail;
    size_t queued;
    unsigned idle;
    bool ending;

    pthread_t *threads; /* loop's thread only */
    unsigned n, max;
};

struct work *work_new(struct loop *l, unsigned max_threads)
{
    struct work *w = mem_zalloc(sizeof *w);
    w->loop = l;
    w->max = max_threads > 0 ? max_threads : 1;
    w->threads = mem_realloc_array(NULL, w->max, sizeof *w->threads);
    w->tail = &w->head;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    return w;
}

static void deliver(void *arg)
{
    struct job j = *(struct job *)arg;
    mem_free(arg);
    j.finished(j.arg);
}

static struct job *next_job(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    w->idle++;
    while (w->head == NULL && !w->ending)
        pthread_cond_wait(&w->wake, &w->lock);
    w->idle--;
    struct job *j = w->head;
    if (j != NULL) {
        w->head = j->next;
        w->queued--;
        if (w->head == NULL)
            w->tail = &w->head;
    }
    pthread_mutex_unlock(&w->lock);
    return j;
}

static void *worker(void *arg)
{
    struct work *w = arg;
    for (struct job *j; (j = next_job(w)) != NULL;) {
        j->fn(j->arg);
        loop_post(w->loop, deliver, j);
    }
    return NULL;
}

/* A thread inherits the signal mask of its creator: none is to be delivered there. */
static void start_thread(struct work *w)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&w->threads[w->n], NULL, worker, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0) {
        w->n++;
    } else if (w->n == 0) { /* nobody would ever run the job */
        LOGE("work", "cannot start a thread: %s", strerror(rc));
        abort();
    }
}

void work_start(struct work *w, void (*fn)(void *arg), void (*finished)(void *arg), void *arg)
{
    struct job *j = mem_alloc(sizeof *j);
    *j = (struct job){NULL, fn, finished, arg, w};
    pthread_mutex_lock(&w->lock);
    *w->tail = j;
    w->tail = &j->next;
    bool short_of_threads = ++w->queued > w->idle;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (short_of_threads && w->n < w->max)
        start_thread(w);
}

struct run {
    void (*fn)(void *arg);
    void *arg;
    struct done done;
};

static void run_fn(void *arg)
{
    struct run *r = arg;
    r->fn(r->arg);
}

static void run_finished(void *arg)
{
    struct run *r = arg;
    done_set(&r->done);
}

void work_run(struct work *w, void (*fn)(void *arg), void *arg)
{
    struct run r = {.fn = fn, .arg = arg};
    work_start(w, run_fn, run_finished, &r);
    done_wait(w->loop, &r.done);
}

void work_free(struct work **wp)
{
    struct work *w = *wp;
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->threads);
    mem_free(w);
    *wp = NULL;
}
