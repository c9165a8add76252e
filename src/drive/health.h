#ifndef DRIVE_HEALTH_H
#define DRIVE_HEALTH_H
/* How the generator itself fares: how much of a processor it took, what others left of this machine, its memory, and
 * whether what it measured may be partly itself. Read from /proc (proc(5)) of this machine; what cannot be read is -1
 * or 0, never an error. The one owner of these readings and of their limits. Layer 2. */
#include "drive/result/result.h"

/* Where a stretch of time begins. */
struct health {
    struct mono at;
    int64_t cpu_us;       /* of this process */
    uint64_t busy, total; /* of the machine, in its ticks */
};
struct health_span {
    int64_t us;     /* how long, at least 1 */
    double own;     /* share of one processor that this process took: 2 is two of them */
    double machine; /* share of all processors that was at work, steal counted as work; -1: not known */
};
void health_begin(struct health *h);
struct health_span health_since(const struct health *h);
struct health_span health_lap(struct health *h); /* the same, and the next stretch begins */

/* The generator is the limit when it has no processor time left to give, or answers its own timers late (lag_p99_us,
 * -1: no samples): then what it measured is partly itself. Says so in why, else "", and there as well when it was late
 * because the machine is crowded. */
bool health_limited(const struct health_span *s, int64_t lag_p99_us, char *why, size_t n);
/* It would be late not by its own doing: others on this machine took the processors. */
bool health_crowded(const struct health_span *s);

int64_t health_rss_bytes(void); /* resident now; 0: not known */
/* Processor time and memory since the program began, and the lag of these samples (loop_lag). Whether it was the limit
 * is the caller's to say. */
struct generator_summary health_summary(const struct hist *lag);

/* The line "cpu  user nice system idle iowait irq softirq steal …" of a /proc/stat, of whichever machine: ticks of all
 * processors at work, and of all there were. False: it is another line. */
bool health_parse_cpu(struct sv line, uint64_t *busy, uint64_t *total);
#endif
