#include "sim/ramp/knee.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>

#define ONE_STEP_APART 1.05 /* the lines cross at the first step, as far as can be told */

double knee_expected(const struct knee_step *first, unsigned sessions, double link_rate)
{
    double linear = first->rate / first->sessions * sessions;
    return link_rate > 0 && link_rate < linear ? link_rate : linear;
}

/* A Poisson count of n has a standard deviation of sqrt(n), and the first step's number is one too. */
static double slack(const struct knee_step *first, const struct knee_step *s)
{
    double chance = first->drawn > 0 && s->drawn > 0 ? 2 * sqrt(1 / first->drawn + 1 / s->drawn) : 0;
    return fmax(1 - KNEE_TRACK, chance);
}

static bool on_track(const struct knee_step *first, const struct knee_step *s, double link_rate)
{
    double expected = knee_expected(first, s->sessions, link_rate);
    bool full = link_rate > 0 && expected >= link_rate; /* only then the link says how long an operation takes */
    bool slow = full && s->p95 >= 0 && s->p95_bound >= 0 && s->p95 > KNEE_SLOW * s->p95_bound;
    return s->rate >= (1 - slack(first, s)) * expected && !slow;
}

static int by_sessions(const void *a, const void *b)
{
    const struct knee_step *const *x = a, *const *y = b;
    return ((*x)->sessions > (*y)->sessions) - ((*x)->sessions < (*y)->sessions);
}

static double crossing(const struct knee_step *first, const struct knee_step *steps, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (steps[i].rate > most)
            most = steps[i].rate;
    return most / (first->rate / first->sessions);
}

static void place(struct knee *k, const struct knee_step *first, const struct knee_step *steps, size_t n,
                  double link_rate)
{
    double cross = crossing(first, steps, n);
    bool at_first = k->on == 0 || (k->on == first->sessions && cross < ONE_STEP_APART * first->sessions);
    if (at_first && (k->on == 0 || link_rate <= 0)) {
        k->state = KNEE_BELOW;
        k->at = first->sessions;
        return;
    }
    k->state = KNEE_FOUND;
    k->at = link_rate > 0 ? (k->on + k->off) / 2.0 : fmin(fmax(cross, k->on), k->off);
    k->recommended = (unsigned)floor(KNEE_SHARE * k->at);
}

struct knee knee_find(const struct knee_step *steps, size_t n, double link_rate)
{
    struct knee k = {.state = KNEE_UNKNOWN};
    const struct knee_step **sorted = mem_zalloc((n + 1) * sizeof(const struct knee_step *));
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &steps[i];
        if (steps[i].rate >= 0 && steps[i].sessions > k.highest)
            k.highest = steps[i].sessions;
    }
    qsort(sorted, n, sizeof(*sorted), by_sessions);
    const struct knee_step *first = n ? sorted[0] : NULL;
    if (n >= 2 && first->rate > 0) {
        size_t i = 0;
        for (; i < n && on_track(first, sorted[i], link_rate); i++) {
            k.on = sorted[i]->sessions;
            k.on_row = (size_t)(sorted[i] - steps);
        }
        k.state = KNEE_NONE;
        if (i < n) {
            k.off = sorted[i]->sessions;
            k.off_row = (size_t)(sorted[i] - steps);
            place(&k, first, steps, n, link_rate);
        }
    }
    mem_free(sorted);
    return k;
}

char *knee_text(const struct knee *k, char *dst, size_t n)
{
    switch (k->state) {
    case KNEE_UNKNOWN:
        str_format(dst, n, "not known: it takes two steps that were held, the first with some work done");
        break;
    case KNEE_NONE:
        str_format(dst, n, "none up to %u sessions, the most that were held", k->highest);
        break;
    case KNEE_BELOW:
        str_format(dst, n, "at or below %.0f sessions, the first step: begin with fewer", k->at);
        break;
    case KNEE_FOUND:
        str_format(dst, n, "about %.*f sessions: %u are on track, %u are not", k->at < 10 ? 1 : 0, k->at, k->on,
                   k->off);
        break;
    }
    return dst;
}
