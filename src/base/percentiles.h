#ifndef BASE_PERCENTILES_H
#define BASE_PERCENTILES_H
/* Percentiles as they are told, and which of them the samples cannot carry: in a table, and as members of a JSON object
 * with one more beside them:
 *
 *     "p95_ms": 12.3, …, "few_samples": {"p95_ms": {"samples": 3, "needs": 20}}
 *
 * The member names the object's own keys, and is left out when all of them are carried. Layer 0. */
#include "base/hist.h"
#include "base/json.h"

/* How many samples a percentile needs, so that at least one of them is expected beyond it: 1/(1 - pct/100), rounded up;
 * 2 for the median, 20 for p95, 100 for p99. Minimum and maximum need one. With fewer it is just another name for the
 * slowest ones. */
uint64_t hist_needs(double pct);
bool hist_carries(const struct hist *h, double pct); /* false when h is NULL */
/* The percentile as a table's cell, into dst: in units of unit_us, with so many decimals; "-" when empty or h is NULL,
 * "~7.0" when it has fewer samples than it needs: HIST_FEW says so below the table. */
#define HIST_FEW "~: fewer samples than such a percentile needs (p50 2, p95 20, p99 100)"
char *hist_cell(const struct hist *h, double pct, int64_t unit_us, int decimals, char *dst, size_t n);

#define PERCENTILES_FEW "few_samples"
struct percentile {
    const char *key; /* "p95_ms" */
    double pct;
};
struct few { /* that this key's figure is of fewer samples than it needs; needs 0: it is carried, or no percentile */
    const char *key;
    uint64_t samples, needs;
};
struct few few_of(const char *key, const struct hist *h, double pct);
struct few few_of_count(const char *key, uint64_t samples, double pct);
/* The member itself, of those that need more; nothing when there are none. */
void few_write(struct jsonw *w, const struct few *of, size_t n);
/* The rows of h in milliseconds, null when there is no sample, and the member. At most 16 rows. */
void percentiles_write(struct jsonw *w, const struct hist *h, const struct percentile *rows, size_t n);
/* What an object that few_write wrote says of one of its keys; false: it is carried. */
bool few_read(const struct json *object, const char *key, uint64_t *samples, uint64_t *needs);
#endif
