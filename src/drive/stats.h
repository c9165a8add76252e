#ifndef DRIVE_STATS_H
#define DRIVE_STATS_H
/* Counters of a command: per operation the outcomes and two latency histograms (from the intended start, from the send), per cause the requests, the failure
 * reasons (at most 64 kinds; digits and ids folded so that a new request id makes no new kind). Interval and total are the same struct: merge adds. Layer 2. */
#include "base/hist.h"
#include <stdio.h>
#include "base/json.h"
#include "drive/model.h"
#include "drive/api.h"
struct stats_op { uint64_t by_outcome[OUT_COUNT]; struct hist *from_send, *from_due; };   /* hists NULL until used */
struct stats_reason { char text[160]; uint64_t count; };
struct stats {
    struct stats_op op[OP_COUNT];
    uint64_t by_cause[CAUSE_COUNT];
    uint64_t requests;                                /* HTTP requests; a save is three, a full pass none of its own */
    int64_t waited_us;                                /* budgets (429) waited out */
    uint64_t throttled, reconnects, bytes_up, bytes_down;
    struct stats_reason reasons[64]; size_t n_reasons; uint64_t other_reasons;
};
void stats_init(struct stats *s);
void stats_done(struct stats *s);
void stats_reset(struct stats *s);
void stats_merge(struct stats *into, const struct stats *from);
/* due us 0: no schedule of its own, counts as sent. */
void stats_record(struct stats *s, enum drive_op op, const struct api_result *r, struct mono due);
void stats_reason_add(struct stats *s, enum drive_op op, const char *reason);
uint64_t stats_ok(const struct stats *s, enum drive_op op);
uint64_t stats_failed(const struct stats *s, enum drive_op op);
uint64_t stats_failed_all(const struct stats *s);
/* The table of design.md: one line an operation that occurred: ok, failed, p50, p95, p99, slowest in ms, "-" for none. */
void stats_print_table(const struct stats *s, FILE *out, bool color);
void stats_print_reasons(const struct stats *s, FILE *out, size_t most);
void stats_write_json(const struct stats *s, struct jsonw *w);   /* "operations", "causes", "failures", "requests", "failed" into the open object */
#endif
