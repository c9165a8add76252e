/* Coroutines are resumed from the loop's stack only, through loop_defer: a wake-up is a queued call, never a nested
 * switch, so resumption is in order and a callback may wake anything at any time. */
#include "net/coro.h"

#include "base/mem.h"
#include "net/coro_stack.h"

#define LOOK_US (200 * US_PER_MS)

struct coro {
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
    struct stack *stack; /* NULL until the first run */
};

static __thread struct stack own_stack; /* the loop's, while a coroutine runs */
static __thread struct coro *current;
static __thread struct stack *left_stack; /* of a coroutine that has just ended */
static __thread size_t alive;

size_t coro_count(void)
{
    return alive;
}

void coro_pool_trim(void)
{
    stack_pool_trim();
}

static void run_current(void)
{
    struct coro *c = current;
    stack_entered(c->stack, &own_stack);
    c->fn(c->arg);

    struct stack *s = left_stack = c->stack;
    alive--;
    mem_free(c);
    stack_switch(s, &own_stack, 1);
}

static void resume(void *arg)
{
    struct coro *c = arg;
    if (c->stack == NULL)
        c->stack = stack_take(run_current);
    current = c;
    stack_switch(&own_stack, c->stack, 0);
    current = NULL;
    if (left_stack != NULL) {
        stack_give(left_stack);
        left_stack = NULL;
    }
}

static void suspend(void)
{
    stack_switch(current->stack, &own_stack, 0);
}

void coro_spawn(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct coro *c = mem_zalloc(sizeof *c);
    c->loop = l;
    c->fn = fn;
    c->arg = arg;
    alive++;
    loop_defer(l, resume, c);
}

/* ---- done ---- */

void done_set(struct done *d)
{
    d->set = true;
    struct coro *c = d->waiter;
    if (c != NULL) {
        d->waiter = NULL;
        loop_defer(c->loop, resume, c);
    }
}

void done_wait(struct loop *l, struct done *d)
{
    while (!d->set) {
        if (current == NULL) {
            loop_step(l, MONO_NEVER);
            continue;
        }
        d->waiter = current;
        suspend();
    }
    d->set = false;
}

struct deadline {
    struct timer timer;
    struct done *done;
};

/* Wakes without setting. A waiter that done_set has woken already is gone from done, and is not woken twice. */
static void on_deadline(struct timer *t)
{
    struct done *d = container_of(t, struct deadline, timer)->done;
    struct coro *c = d->waiter;
    if (c != NULL) {
        d->waiter = NULL;
        loop_defer(c->loop, resume, c);
    }
}

bool done_wait_until(struct loop *l, struct done *d, struct mono at)
{
    if (at.us == MONO_NEVER.us) {
        done_wait(l, d);
        return true;
    }
    if (!d->set && current != NULL) {
        struct deadline until = {.timer.fn = on_deadline, .done = d};
        loop_timer_set(l, &until.timer, at);
        d->waiter = current;
        suspend();
        loop_timer_stop(&until.timer);
    }
    while (!d->set && current == NULL && !mono_passed(at))
        loop_step(l, at);
    bool set = d->set;
    d->set = false;
    return set;
}

void coro_sleep_until(struct loop *l, struct mono at)
{
    struct done never = {0};
    (void)done_wait_until(l, &never, at);
}

bool coro_sleep_unless(struct loop *l, struct mono at, const bool *stop)
{
    while (!*stop && !mono_passed(at))
        coro_sleep_until(l, mono_earlier(at, mono_add(mono_now(), LOOK_US)));
    return !*stop;
}

/* ---- semaphore ---- */

struct sem_waiter {
    struct sem_waiter *next;
    int64_t n;
    bool granted;
    struct done done;
};

void sem_init_coro(struct sem *s, int64_t n)
{
    *s = (struct sem){.free = n, .tail = &s->head};
}

void sem_take(struct loop *l, struct sem *s, int64_t n)
{
    (void)sem_take_until(l, s, n, MONO_NEVER);
}

static void sem_forget(struct sem *s, struct sem_waiter *w)
{
    struct sem_waiter **at = &s->head;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (s->tail == &w->next)
        s->tail = at;
}

bool sem_take_until(struct loop *l, struct sem *s, int64_t n, struct mono deadline)
{
    if (s->head == NULL && s->free >= n) {
        s->free -= n;
        return true;
    }
    struct sem_waiter w = {.n = n};
    *s->tail = &w;
    s->tail = &w.next;
    (void)done_wait_until(l, &w.done, deadline);
    if (w.granted)
        return true;
    sem_forget(s, &w);
    sem_give(s, 0); /* those behind may ask for less */
    return false;
}

void sem_give(struct sem *s, int64_t n)
{
    s->free += n;
    for (struct sem_waiter *w; (w = s->head) != NULL && s->free >= w->n;) {
        s->free -= w->n;
        s->head = w->next;
        if (s->head == NULL)
            s->tail = &s->head;
        w->granted = true;
        done_set(&w->done);
    }
}

size_t sem_waiting(const struct sem *s)
{
    size_t n = 0;
    for (const struct sem_waiter *w = s->head; w != NULL; w = w->next)
        n++;
    return n;
}

/* ---- group ---- */

struct member {
    struct group *group;
    void (*fn)(void *arg);
    void *arg;
};

static void run_member(void *arg)
{
    struct member m = *(struct member *)arg;
    mem_free(arg);
    m.fn(m.arg);
    if (--m.group->running == 0)
        done_set(&m.group->done);
}

void group_spawn(struct loop *l, struct group *g, void (*fn)(void *arg), void *arg)
{
    struct member *m = mem_alloc(sizeof *m);
    *m = (struct member){g, fn, arg};
    g->running++;
    coro_spawn(l, run_member, m);
}

void group_wait(struct loop *l, struct group *g)
{
    while (g->running > 0)
        done_wait(l, &g->done);
}
