#ifndef DRIVE_RESULT_COURSE_H
#define DRIVE_RESULT_COURSE_H
/* The course of a command as points for a plot: stretches joined until there are no more than a plot can show, their
 * counters added, so that a percentile of a point is one of all its samples. Layer 2. */
#include "drive/result/doc.h"

struct course_point {
    double x, seconds; /* x: its middle */
    const struct doc_span *first;
    size_t n; /* stretches, from first on */
    struct stats stats;
};
struct course {
    struct course_point *points;
    size_t n;
    double from, to;
    double *x; /* of all points */
};
struct course *course_new(const struct doc *d, size_t points_most);
void course_free(struct course **c);
/* One value a point into out (c->n of them). */
void course_rates(const struct course *c, double *out, double (*count)(const struct stats *s));
void course_percentiles(const struct course *c, double *out, enum drive_op op, bool from_due, double pct); /* ms; NAN
    where a point has fewer samples than it needs */
/* The mean of a number of the stretches, "watch.cpu_pct"; NAN where none has it. */
void course_numbers(const struct course *c, double *out, const char *path);
#endif
