#ifndef SIM_RUN_REPORT_H
#define SIM_RUN_REPORT_H
/* What people read while a run goes on: every 15 s the figures of that interval alone, with the state of the generator
 * itself; what came of the whole goes into the command's result. Plain text, each report out at once. Layer 3. */
#include "drive/health.h"
#include "sim/app/worker.h"

struct report {
    struct worker *w;
    FILE *out; /* NULL: nothing is printed */
    bool color;
    struct health interval;        /* began then */
    struct hist *lag;              /* of the measured window; of all so far, until it begins */
    bool over;                     /* the window: lag and verdict stand */
    struct health_verdict verdict; /* of the same time */
    struct hist *lag_now;          /* of the interval, so far */
    struct stats now;              /* of the interval, as far as it was gathered */
    struct stats course;           /* since the last line of the course that is kept, likewise */
    struct timer tick;             /* of the course: finer than the reports */
    int64_t tick_us;
    struct health tick_began;
    int64_t lag_p99_us;          /* of the last interval; -1: no samples */
    struct health_span last;     /* of the last interval */
    int64_t rss_floor, rss_peak; /* bytes; floor: before the apps */
    uint64_t actions_before;     /* done by the interval's start */
};
void report_init(struct report *p, struct worker *w, FILE *out, bool color);
void report_done(struct report *p);
/* Takes the resident memory now as the floor: call it before the first app exists. */
void report_floor(struct report *p);
/* Starts the first interval. */
void report_begin(struct report *p);
/* Ends a stretch of the course that is kept, so that the next one begins with what comes next. */
void report_tick(struct report *p);
/* Ends the interval: prints it under `head`, adds it to the total, starts the next. */
void report_interval(struct report *p, const char *head);
/* The measured window begins, right after a report_interval, or is over: how the generator fared in it is what the
 * result tells. */
void report_window_begin(struct report *p);
void report_window_over(struct report *p);
/* What the meter has counted goes to the interval, the course and the total: for who needs the total at once. */
void report_gather(struct report *p);
/* Brings the command's result up to date with all intervals ended so far. */
void report_result(struct report *p);
#endif
