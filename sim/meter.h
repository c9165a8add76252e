#ifndef SIM_METER_H
#define SIM_METER_H
/* What a run counts. Every figure is recorded once, into the interval; at the end of an interval it is added to the
 * total and starts again from zero, so that a report shows its interval alone and all reports add up to the summary.
 * Nothing here grows with the number of samples. Layer 3. */
#include "base/err.h"
#include "drive/stats.h"

#define METER_OUTAGES 16

/* From the first failure of a server that could not be connected to, to the first answer after it. */
struct outage {
    struct wall from;
    int64_t us; /* so far, while it lasts */
};
struct tally { /* of actions: planned = done + conflicts + failed + empty + unfinished + not started */
    uint64_t done, conflicts, failed;
    uint64_t empty;      /* nothing in view to act on */
    uint64_t unfinished; /* cut at the end */
    uint64_t late;       /* of all those: started over a second after they were due, since the app was busy */
};
struct meter {
    struct stats interval;
    struct stats *total; /* borrowed: the command's result */
    struct tally actions;
    uint64_t streams_up, streams_peak, streams_refused;
    uint64_t waiting; /* apps waiting for a budget now */
    struct outage outages[METER_OUTAGES];
    unsigned n_outages; /* all of them; the first METER_OUTAGES are kept */
    bool down;
    struct mono down_since, first_failure; /* first_failure us 0: the last request was answered */
    struct wall first_failure_wall;
};

/* Takes the memory of all histograms now, so that it is not mistaken for that of apps. */
void meter_init(struct meter *m, struct stats *total);
void meter_done(struct meter *m); /* total stays */
void meter_requests(struct meter *m, enum cause cause, uint64_t n);
/* An operation that ended; due us 0: as sent. */
void meter_record(struct meter *m, enum drive_op op, const struct api_result *r, struct mono due);
/* Tells from how a request ended whether the server can be reached. */
void meter_reach(struct meter *m, const struct api_result *r);
void meter_stream_up(struct meter *m);
void meter_stream_down(struct meter *m);
/* Adds the interval to the total and starts the next. */
void meter_next_interval(struct meter *m);
int64_t meter_outage_us(const struct meter *m, struct mono now); /* of the one that lasts; 0: none */
#endif
