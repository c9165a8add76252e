#include "drive/result/course.h"
#include "base/mem.h"
#include "drive/result/series.h"
#include <math.h>
#include <string.h>

/* The arrival of all apps at once would make everything else look flat: where there is a window, plots begin with it.
 */
static size_t first_shown(const struct doc *d)
{
    for (size_t i = 0; i < d->n_spans; i++)
        if (strcmp(d->spans[i].phase, "window") == 0 || strcmp(d->spans[i].phase, "step") == 0)
            return i;
    return 0;
}

/* A report that falls between two ticks leaves a stretch of nearly no length: half a usual one is the least. */
static double least_seconds(const struct doc *d, size_t first, double total, size_t points_most)
{
    double longest = 0;
    for (size_t i = first; i < d->n_spans; i++)
        longest = fmax(longest, d->spans[i].seconds);
    return fmax(total / (double)points_most, longest / 2);
}

static void join(struct course_point *p, const struct doc_span *span)
{
    if (p->n++ == 0) {
        p->first = span;
        stats_init(&p->stats);
    }
    p->seconds += span->seconds;
    series_read(span->line, &p->stats);
}

struct course *course_new(const struct doc *d, size_t points_most)
{
    struct course *c = mem_zalloc(sizeof(*c));
    size_t first = first_shown(d);
    double rest = 0;
    for (size_t i = first; i < d->n_spans; i++)
        rest += d->spans[i].seconds;
    double least = least_seconds(d, first, rest, points_most);
    c->points = mem_zalloc((d->n_spans + 1) * sizeof(*c->points));
    for (size_t i = first; i < d->n_spans; i++) {
        struct course_point *p = &c->points[c->n];
        join(p, &d->spans[i]);
        rest -= d->spans[i].seconds;
        c->n += p->seconds >= least && rest >= least / 2;
    }
    c->n += c->points[c->n].n > 0;
    c->x = mem_zalloc((c->n + 1) * sizeof(*c->x));
    for (size_t i = 0; i < c->n; i++)
        c->x[i] = c->points[i].x = c->points[i].first->at + c->points[i].seconds / 2;
    if (c->n) {
        const struct course_point *last = &c->points[c->n - 1];
        c->from = c->points[0].first->at;
        c->to = last->first->at + last->seconds;
    }
    return c;
}

void course_free(struct course **cp)
{
    struct course *c = *cp;
    for (size_t i = 0; i < c->n; i++)
        stats_done(&c->points[i].stats);
    mem_free(c->points);
    mem_free(c->x);
    MEM_FREE(*cp);
}

void course_rates(const struct course *c, double *out, double (*count)(const struct stats *s))
{
    for (size_t i = 0; i < c->n; i++)
        out[i] = c->points[i].seconds > 0 ? count(&c->points[i].stats) / c->points[i].seconds : NAN;
}

void course_percentiles(const struct course *c, double *out, enum drive_op op, bool from_due, double pct)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct stats_op *o = &c->points[i].stats.op[op];
        const struct hist *h = from_due ? o->from_due : o->from_send;
        out[i] = hist_carries(h, pct) ? (double)hist_percentile(h, pct) / 1e3 : NAN;
    }
}

static const struct json *at_path(const struct json *v, const char *path)
{
    struct sv rest = sv_of(path), name;
    char key[64];
    while (sv_split(&rest, '.', &name)) {
        str_format(key, sizeof(key), SV_FMT, SV_ARG(name));
        v = json_get(v, key);
    }
    return v;
}

void course_numbers(const struct course *c, double *out, const char *path)
{
    for (size_t i = 0; i < c->n; i++) {
        double sum = 0, v;
        size_t n = 0;
        for (size_t k = 0; k < c->points[i].n; k++)
            if (json_f64(at_path(c->points[i].first[k].line, path), &v)) {
                sum += v;
                n++;
            }
        out[i] = n ? sum / (double)n : NAN;
    }
}
