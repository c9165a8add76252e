#ifndef DRIVE_STATS_H
#define DRIVE_STATS_H
/* Counters of a command: per operation the outcomes and two latency histograms (from the intended start, from the
 * send), per cause the requests, the failure reasons. Interval and total are the same struct: merge adds, and a
 * percentile of merged counters is one of all their samples. Latencies are those of operations that succeeded: a
 * refused connection is not a fast answer. Layer 2, one writer. */
#include "base/hist.h"
#include "drive/api/api.h"
#include "drive/model.h"

#define STATS_REASONS 64

struct stats_op {
    uint64_t by_outcome[OUT_COUNT];
    struct hist *from_send, *from_due; /* NULL until used */
    uint64_t scheduled;                /* so many, whatever their outcome, were due at a time of their own */
    int64_t late_us;                   /* the longest that one of those was sent after it was due */
};
struct stats_reason {
    char text[160];
    uint64_t count;
};
struct stats {
    struct stats_op op[OP_COUNT];
    uint64_t by_cause[CAUSE_COUNT]; /* every request, counted as it is sent: a save is three, a full pass none of its
                                     * own */
    int64_t waited_us;              /* budgets (429) waited out */
    uint64_t throttled, reconnects, bytes_up, bytes_down;
    struct stats_reason reasons[STATS_REASONS];
    size_t n_reasons;
    uint64_t other_reasons; /* of kinds beyond the table */
};

void stats_init(struct stats *s);
void stats_done(struct stats *s);
void stats_reset(struct stats *s); /* keeps the histograms' memory */
void stats_merge(struct stats *into, const struct stats *from);
uint64_t stats_requests(const struct stats *s); /* of all causes */
/* One operation that ended: outcome, bytes, the latencies of a success, the reason of a failure. Requests are counted
 * where they are sent (api_conf.requests). due us 0: no schedule of its own, counts as sent. */
void stats_record(struct stats *s, enum drive_op op, const struct api_result *r, struct mono due);
/* Numbers and ids within the reason are folded to '#', so that a new request id makes no new kind. */
void stats_reason_add(struct stats *s, enum drive_op op, const char *reason);
/* As it is: already folded and escaped. */
void stats_reason_count(struct stats *s, const char *text, uint64_t n);
uint64_t stats_ok(const struct stats *s, enum drive_op op);
uint64_t stats_failed(const struct stats *s, enum drive_op op);
uint64_t stats_calls(const struct stats *s, enum drive_op op); /* every outcome */
uint64_t stats_failed_all(const struct stats *s);
/* Of requests that make or remove objects: those that were broken off, or answered with a server error. */
uint64_t stats_broken(const struct stats *s);
#endif
