#ifndef SIM_RAMP_H
#define SIM_RAMP_H
/* A ramp: steps of so many sessions at once, each step ramped in at a rate, held, measured without its first part, and
 * drained before the next. What a session does is session.h's; this is the course, the figures of each step, the table.
 * Layer 3. */
#include "sim/ramp_plan.h"
#include "sim/worker.h"

struct ramp_conf {
    struct ramp_steps steps;
    struct ramp_work work;
    double arrive_per_s, link_bytes_per_s; /* 0: all at once; 0: not told */
    int64_t hold_us;                       /* 0: each session does its work once */
    int64_t settle_us, drain_us, timeout_us;
    unsigned open_folders; /* of an app, with per_minute */
    double per_minute;
    bool keep;           /* what was uploaded stays */
    const char *run_dir; /* NULL: runs/TIME-SEED */
    FILE *out;           /* for people; NULL: nothing */
};

/* One step and what came of it. asked = ok + refused + timed_out + failed + unfinished, when it has ended. */
struct ramp_step {
    unsigned number, asked; /* number: from 1 */
    unsigned entered;       /* in, or turned away */
    unsigned up, peak;      /* signed in and not yet gone; the most at once */
    unsigned ok, refused, timed_out, failed, unfinished;
    struct stats stats;                     /* sign-ins of the whole step, everything else of the measured part */
    struct mono began, measure_from;        /* MONO_NEVER: not yet */
    bool once, over;                        /* over: no new work */
    uint64_t sent, sent_before, sent_after; /* bytes of uploads: so far, when the measured part began, when it ended */
    int64_t measured_us, took_us, drained_us;
    struct ramp_measure measured, expected;
};

struct ramp {
    const struct ramp_conf *conf;
    struct worker *w;
    struct ramp_step *steps;
    unsigned n;                    /* begun */
    FILE *log;                     /* one line a sign-in or upload: sessions.csv of the run's folder */
    char folder[DRIVE_ID_MAX + 1]; /* of the uploads; "": the root */
    char run_dir[256];
    int64_t quiet_us; /* how fast a probe is answered while nothing runs; -1: it cannot be asked */
};
MAY_YIELD enum err ramp_run(struct worker *w, const struct ramp_conf *conf, struct errinfo *ei) WARN_UNUSED;

/* ramp_report.c: a table's line as soon as a step has ended; the JSON part "steps"; steps.csv. */
void ramp_print_step(const struct ramp *r, const struct ramp_step *s);
void ramp_write_json(const struct ramp *r, struct result *out);
enum err ramp_write_csv(const struct ramp *r, struct errinfo *ei) WARN_UNUSED;
#endif
