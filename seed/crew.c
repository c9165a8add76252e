/* How many at once is measured, not guessed: the crew grows while the rate grows with it and falls back to the smallest
 * size that had the rate. What then holds it is named from what was seen to be busy. */
#include "seed/crew.h"
#include "base/mem.h"
#include <stdio.h>

#define TICK_US       (200 * US_PER_MS)
#define WINDOW_US     (2 * US_PER_S)
#define WINDOW_MIN_US (400 * US_PER_MS)
#define WINDOW_UNITS  150  /* enough of them end a window early */
#define GAIN          1.07 /* a larger crew has to pay this much */
#define HOLD          8    /* windows until a larger crew is tried again */

struct run {
    struct seeder *s;
    struct crew *c;
    size_t next, items;
    unsigned active, limit;
    struct done idle;
    /* the climb */
    struct mono window;
    uint64_t window_done, window_calls, calls;
    double best_rate, rate, call_rate;
    unsigned best_limit, hold;
    bool settled;
    char bound[120];
};

static void worker(void *arg)
{
    struct run *r = arg;
    while (!r->s->stop && r->next < r->items && r->active <= r->limit) {
        size_t item = r->next++;
        r->c->one(r->s, r->c->arg, item);
        r->calls++;
    }
    if (--r->active == 0)
        done_set(&r->idle);
}

static void spawn(struct run *r)
{
    size_t waiting = r->items - r->next;
    for (; !r->s->stop && r->active < r->limit && waiting > 0; waiting--) {
        r->active++;
        coro_spawn(r->s->ctx->loop, worker, r);
    }
}

static void climb(struct run *r)
{
    unsigned more = r->limit + r->limit / 2 + 1;
    if (more > r->c->most)
        more = r->c->most;
    if (r->settled) {
        r->best_rate = 0.7 * r->best_rate + 0.3 * r->rate;
        if (--r->hold == 0 && more > r->limit) {
            r->settled = false;
            r->limit = more;
        }
        return;
    }
    bool paid = r->rate > r->best_rate * GAIN;
    if (paid) {
        r->best_rate = r->rate;
        r->best_limit = r->limit;
    }
    if (paid && more > r->limit) {
        r->limit = more;
        return;
    }
    r->limit = r->best_limit;
    r->settled = true;
    r->hold = HOLD;
}

static MAY_YIELD void measure(struct run *r)
{
    struct mono now = mono_now();
    int64_t us = mono_diff(now, r->window);
    uint64_t units = r->c->done - r->window_done;
    if (us < WINDOW_US && (us < WINDOW_MIN_US || units < WINDOW_UNITS))
        return;
    r->rate = (double)units * 1e6 / (double)us;
    r->call_rate = (double)(r->calls - r->window_calls) * 1e6 / (double)us;
    if (r->c->most > r->c->least)
        climb(r);
    struct pulse_change change = pulse_take(&r->s->pulse);
    if (r->settled)
        pulse_name(&change, r->s->n_accounts, r->call_rate, r->bound, sizeof r->bound);
    else
        snprintf(r->bound, sizeof r->bound, "%u at a time, trying more", r->limit);
    r->window = now;
    r->window_done = r->c->done;
    r->window_calls = r->calls;
}

/* Waiting for a budget is what holds all else, while it lasts. */
static const char *bound_now(struct run *r, char *dst, size_t n)
{
    struct mono now = mono_now();
    char left[32];
    if (!mono_before(now, r->s->budget_back))
        return r->bound[0] ? r->bound : NULL;
    snprintf(dst, n, "the logins' request budgets are spent: %s to wait",
             str_duration(left, sizeof left, mono_diff(r->s->budget_back, now)));
    return dst;
}

void crew_begin(struct seeder *s, struct crew *c)
{
    if (s->conf->jobs)
        c->least = c->most = (unsigned)s->conf->jobs;
    c->progress = progress_new(s->ctx->common->quiet ? NULL : s->ctx->out, s->ctx->tty, c->what, c->units);
}

void crew_run(struct seeder *s, struct crew *c, size_t items)
{
    struct run r = {.s = s, .c = c, .items = items, .window = mono_now(), .window_done = c->done};
    r.limit = r.best_limit = c->learned ? c->learned : c->least;
    r.settled = c->most <= c->least;
    char waits[120];
    spawn(&r);
    while (r.active > 0) {
        if (done_wait_until(s->ctx->loop, &r.idle, mono_add(mono_now(), TICK_US)) && r.active == 0)
            break;
        measure(&r);
        progress_set(c->progress, c->done, bound_now(&r, waits, sizeof waits));
        spawn(&r);
    }
    c->learned = r.best_limit;
    progress_set(c->progress, c->done, bound_now(&r, waits, sizeof waits));
}

void crew_end(struct crew *c)
{
    progress_free(&c->progress);
}
