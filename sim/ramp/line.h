#ifndef SIM_RAMP_LINE_H
#define SIM_RAMP_LINE_H
/* A line drawn before a ramp: what is expected (--expect) or what ends it (--stop-on), "FIGURE[@STEP] SIGN VALUE".
 *   p95_upload@300<2s   p50, p95, p99 or max of an operation, in ms or with a unit; "login" is the sign-in
 *   p95<2s              of what a session does: op is OP_COUNT until the caller, who knows, sets it
 *   failed_pct>5        a figure of a step: RAMP_FIGURES
 *   disk_write_ms>100   a figure of the server: watch.h
 *   knee=150 limit=150  of the ramp as a whole, for --expect alone
 * cpu, swap, failure_rate, throughput and the like stand for the figures that carry a unit in their names.
 * @STEP is a step's number of sessions; without it every step is meant. '.' and '-' count as '_'. Layer 3, pure. */
#include "base/compare.h"
#include "base/str.h"
#include "drive/model.h"
#include "sim/watch/watch.h"

/* clang-format off */
#define RAMP_FIGURES(X) \
    X(UP, "up") X(OK, "ok") X(REFUSED, "refused") X(TIMED_OUT, "timed_out") X(FAILED, "failed") \
    X(UNFINISHED, "unfinished") /* sessions */ \
    X(REFUSED_PCT, "refused_pct") X(TIMED_OUT_PCT, "timed_out_pct") /* of the sessions asked for */ \
    X(FAILED_PCT, "failed_pct") /* of the operations: those neither well, nor refused, nor a conflict */ \
    X(MB_PER_S, "mb_per_s") X(OPERATIONS_PER_S, "operations_per_s") X(SIGN_INS_PER_S, "sign_ins_per_s")
/* clang-format on */
enum ramp_figure {
#define X(sym, key) RAMP_FIGURE_##sym,
    RAMP_FIGURES(X)
#undef X
        RAMP_FIGURE_COUNT
};
enum ramp_line_kind { RAMP_LINE_TIME, RAMP_LINE_STEP, RAMP_LINE_WATCH, RAMP_LINE_KNEE, RAMP_LINE_LIMIT };

struct ramp_line {
    const char *text; /* as given; borrowed */
    enum ramp_line_kind kind;
    enum drive_op op; /* TIME, with its percentile; 100 is the slowest */
    double pct;
    enum ramp_figure figure; /* STEP */
    enum watch_figure watch; /* WATCH */
    unsigned at;             /* sessions of the step meant; 0: each */
    enum compare compare;
    double want; /* ms for TIME */
};
/* ERR_USAGE with a sentence that begins with the option's name. */
enum err ramp_line_parse(const char *option, const char *text, bool of_whole, struct ramp_line *out,
                         struct errinfo *ei) WARN_UNUSED;
/* "=" is not asked to the last digit of what is measured: within a tenth. Counts are exact. */
bool ramp_line_holds(const struct ramp_line *l, double value);
/* The value as the line's unit has it: "1.24 s", "3", "0.8 %". */
char *ramp_line_value(const struct ramp_line *l, double value, char *dst, size_t n);
#endif
