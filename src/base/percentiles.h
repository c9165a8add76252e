#ifndef BASE_PERCENTILES_H
#define BASE_PERCENTILES_H
/* Percentiles as members of a JSON object, and beside them which of those its samples cannot carry (hist_needs):
 *
 *     "p95_ms": 12.3, …, "few_samples": {"p95_ms": {"samples": 3, "needs": 20}}
 *
 * The member names the object's own keys, and is left out when all of them are carried. Layer 0. */
#include "base/hist.h"
#include "base/json.h"

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
