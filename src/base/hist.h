#ifndef BASE_HIST_H
#define BASE_HIST_H
/* Log-linear latency histogram (HdrHistogram's shape): values in microseconds, relative error at most 1/256, minimum,
 * maximum and count exact. Merging adds bucket by bucket, so percentiles of merged data are percentiles, never
 * averages. Values up to INT64_MAX: there is no ceiling. Layer 0, one writer. */
#include <stddef.h>
#include <stdint.h>
struct hist;
struct hist *hist_new(void);
void hist_free(struct hist **h);
void hist_record(struct hist *h, int64_t us); /* negative counts as 0 */
void hist_record_n(struct hist *h, int64_t us, uint64_t n);
void hist_merge(struct hist *into, const struct hist *from);
void hist_reset(struct hist *h);
uint64_t hist_count(const struct hist *h);
/* Nearest rank (rank = ceil(pct/100*n)), never above the maximum; pct 0 is the minimum, 100 the maximum, both exact.
 * -1 when empty: print it as "-" and as JSON null. */
int64_t hist_percentile(const struct hist *h, double pct);
/* The same in milliseconds; -1 also when h is NULL. */
double hist_percentile_ms(const struct hist *h, double pct);
int64_t hist_max(const struct hist *h); /* -1 when empty */
double hist_mean(const struct hist *h); /* exact; 0 when empty */
double hist_stddev(const struct hist *h);
/* Calls fn with values, never falling, and how many samples each stands for; together they are all samples. A value is
 * the mean of what it stands for, within 1/256 of each; minimum and maximum come for themselves. hist_record_n of them
 * makes the same histogram again, but for the rounding of the means to whole microseconds. */
typedef void (*hist_fn)(void *arg, int64_t us, uint64_t n);
void hist_each(const struct hist *h, hist_fn fn, void *arg);
#endif
