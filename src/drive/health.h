#ifndef DRIVE_HEALTH_H
#define DRIVE_HEALTH_H
/* How the generator itself fares, and whether what it measured may be partly itself. Being late is a symptom; it is the
 * limit for a cause, each found by itself in one table: a shortage of this machine (base/shortage.h), a quota, its own
 * processor time, others' processor time, memory, a pause, a clock that was set. Readings are of /proc (proc(5)), of
 * control groups and of the process; what cannot be read is -1 or 0, never an error. The one owner of these readings
 * and of their limits. Layer 2; called on the thread whose processor time counts. */
#include "base/shortage.h"
#include "drive/result/result.h"

/* Where a stretch of time begins: counters that only grow. */
struct health {
    struct mono at;
    int64_t wall_us, boot_us;       /* the other two clocks */
    int64_t cpu_us, thread_us;      /* of this process, of this thread */
    int64_t queued_us;              /* this thread could have run, but had no processor; -1: not known */
    uint64_t busy, total, stolen;   /* of the processors that we may use, in ticks */
    int64_t throttled_us;           /* periods in which a quota of ours was used up */
    int64_t memory_us;              /* somebody waited for memory; -1: not known */
    uint64_t memory_limits, faults; /* our control group met its limit; pages of ours that came from disk */
    uint64_t short_of[SHORTAGE_COUNT];
    int64_t away_us;
};
struct health_span {
    int64_t us;       /* how long, at least 1 */
    double own;       /* share of one processor that this process took: 2 is two of them */
    double thread;    /* the same of this thread, the loop's */
    double machine;   /* share of all processors (that we may use) that was at work, stolen time too; -1: not known */
    double queued;    /* shares of the time: this thread waited for a processor, */
    double stolen;    /*   the hypervisor had it, */
    double throttled; /*   periods in which the quota was used up, */
    double memory;    /*   somebody waited for memory. 0 where it is not known */
    double quota;     /* processors' worth of time that is allowed; 0: no quota */
    double memory_limits, faults_per_s;
    double short_of[SHORTAGE_COUNT];
    double away_s, clock_s, suspended_s; /* did not run; the clock was set by (either way); the machine slept */
};
void health_begin(struct health *h);
struct health_span health_since(const struct health *h);
struct health_span health_lap(struct health *h); /* the same, and the next stretch begins */
struct health_span health_between(const struct health *from, const struct health *to);

/* ---- the verdict ---- */

enum health_cause {
    HEALTH_PORTS,
    HEALTH_FILES,
    HEALTH_NO_MEMORY,
    HEALTH_QUOTA,
    HEALTH_OWN,
    HEALTH_AWAY,
    HEALTH_SUSPENDED,
    HEALTH_CLOCK,
    HEALTH_STOLEN,
    HEALTH_MEMORY,
    HEALTH_PAGING,
    HEALTH_OTHERS,
    HEALTH_QUEUED,
    HEALTH_LATE, /* and nothing above explains it */
    HEALTH_CAUSES
};
/* What one or more stretches showed: of each cause the worst stretch, of counted ones the sum. Zeros: nothing yet. */
struct health_verdict {
    unsigned causes; /* bits, 1u << enum health_cause */
    double figure[HEALTH_CAUSES];
    struct health_span at[HEALTH_CAUSES];
};
/* A pure function of the figures; lag_p99_us: how late timers fired in that stretch, -1: no samples. Returns the causes
 * of this stretch alone. */
unsigned health_judge(struct health_verdict *v, const struct health_span *s, int64_t lag_p99_us);
/* The time that is told begins now: of what was before only a shortage counts, since what it cost is missing still. */
void health_forget(struct health_verdict *v);
/* "no local ports were left (37 times): widen …"; "" without a cause. */
char *health_text(const struct health_verdict *v, char *dst, size_t n);
const char *health_key(const struct health_verdict *v); /* the first cause's name for programs; NULL: none */
/* There are causes, all of them others on this machine, on which a server beside us is as well. */
bool health_crowded(unsigned causes);
/* The name of one; NULL beyond the last. */
const char *health_cause_key(enum health_cause c);

int64_t health_rss_bytes(void); /* resident now; 0: not known */
/* Processor time and memory since the program began, the lag of these samples (loop_lag), and the verdict. */
struct generator_summary health_summary(const struct hist *lag, const struct health_verdict *v);

/* The line "cpu  user nice system idle iowait irq softirq steal …" of a /proc/stat, of whichever machine: ticks of all
 * processors at work, and of all there were. False: it is another line. */
bool health_parse_cpu(struct sv line, uint64_t *busy, uint64_t *total);
#endif
