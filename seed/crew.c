/* How many at once is measured, not guessed: the crew grows while the rate grows with it and falls back to the smallest
 * size that had the rate. What then holds it is named from what was seen to be busy. */
#include "base/mem.h"
#include "seed/seed.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TICK_US       (200 * US_PER_MS)
#define WINDOW_US     (2 * US_PER_S)
#define WINDOW_MIN_US (400 * US_PER_MS)
#define WINDOW_UNITS  150  /* enough of them end a window early */
#define GAIN          1.07 /* a larger crew has to pay this much */
#define HOLD          8    /* windows until a larger crew is tried again */

struct cpu {
    uint64_t busy, all;
    int64_t own_us;
};

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
    struct cpu cpu;
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

static struct cpu cpu_now(void)
{
    struct cpu c = {.own_us = clock_process_cpu_us()};
    unsigned long long v[8] = {0};
    FILE *f = fopen("/proc/stat", "re");
    if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
                    &v[7]) == 8) {
        c.busy = v[0] + v[1] + v[2] + v[5] + v[6];
        c.all = c.busy + v[3] + v[4] + v[7];
    }
    if (f)
        fclose(f);
    return c;
}

/* What held the last window. Own processor first: more of it is the only cure that the user of this program has. */
static void name_bound(struct run *r, int64_t us)
{
    struct cpu now = cpu_now();
    double machine = now.all > r->cpu.all ? (double)(now.busy - r->cpu.busy) / (double)(now.all - r->cpu.all) : 0;
    double own = (double)(now.own_us - r->cpu.own_us) / (double)us;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    r->cpu = now;
    if (own > 0.85)
        snprintf(r->bound, sizeof r->bound, "bound by this program's own CPU");
    else if (machine > 0.93)
        snprintf(r->bound, sizeof r->bound, "bound by the %ld CPUs of this machine, this program's share %.0f %%", cpus,
                 own * 100 / (double)cpus);
    else if (!r->settled)
        snprintf(r->bound, sizeof r->bound, "%u at a time, trying more", r->limit);
    else if (r->s->n_accounts == 1 && r->c->writes)
        snprintf(r->bound, sizeof r->bound, "one account commits one write at a time: %.0f commits/s, %u at once",
                 r->call_rate, r->limit);
    else
        snprintf(r->bound, sizeof r->bound, "bound by the server's answers: %.0f/s, %u at a time", r->call_rate,
                 r->limit);
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

static void measure(struct run *r)
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
    name_bound(r, us);
    r->window = now;
    r->window_done = r->c->done;
    r->window_calls = r->calls;
}

void crew_begin(struct seeder *s, struct crew *c)
{
    if (s->conf->jobs)
        c->least = c->most = (unsigned)s->conf->jobs;
    c->progress = progress_new(s->ctx->common->quiet ? NULL : s->ctx->out, s->ctx->tty, c->what, c->units);
}

void crew_run(struct seeder *s, struct crew *c, size_t items)
{
    struct run r = {.s = s, .c = c, .items = items, .window = mono_now(), .window_done = c->done, .cpu = cpu_now()};
    r.limit = r.best_limit = c->learned ? c->learned : c->least;
    r.settled = c->most <= c->least;
    spawn(&r);
    while (r.active > 0) {
        if (done_wait_until(s->ctx->loop, &r.idle, mono_add(mono_now(), TICK_US)) && r.active == 0)
            break;
        measure(&r);
        progress_set(c->progress, c->done, r.bound[0] ? r.bound : NULL);
        spawn(&r);
    }
    c->learned = r.best_limit;
    progress_set(c->progress, c->done, r.bound[0] ? r.bound : NULL);
}

void crew_end(struct crew *c)
{
    progress_free(&c->progress);
}
