#ifndef SIM_APP_METER_H
#define SIM_APP_METER_H
/* What a run counts. Every figure is recorded once, into the interval; at the end of an interval it is added to the
 * total and starts again from zero, so that a report shows its interval alone and all reports add up to the summary.
 * Nothing here grows with the number of samples. Outages stand beside the counters: what was seen of them, and those
 * that the run itself ordered, whose failures are counted apart. Layer 3. */
#include "base/err.h"
#include "drive/stats.h"

#define METER_OUTAGES 64
#define METER_ORDERED 64

/* "server unreachable": from the first failure of a server that could not be connected to, to the first answer after
 * it. "503 DATABASE_UNAVAILABLE" and its like: from the first such answer to the last. "no answer": nobody had one for
 * a while, although a request waited. An ordered one bears the name of the order. */
struct outage {
    char what[80];
    struct wall from;
    struct mono since;
    int64_t us; /* so far, while it lasts */
    bool over;  /* it has ended: us is final */
    bool told;  /* a report has printed it so */
    bool kept;  /* and so it stands in the course (series.h) */
    uint64_t failures;
};
struct tally { /* of actions: planned = done + conflicts + failed + outage + empty + unfinished + not started */
    uint64_t done, conflicts, failed;
    uint64_t outage;     /* failed in an outage that was ordered */
    uint64_t empty;      /* nothing in view to act on */
    uint64_t unfinished; /* cut at the end, or this machine ran short */
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
    struct outage ordered[METER_ORDERED];
    unsigned n_ordered;
    bool down;                  /* unreachable now */
    struct outage *unreachable; /* while down, if it is kept */
    struct mono first_failure;  /* us 0: the last request was answered */
    struct wall first_failure_wall;
    struct mono answered; /* the last answer to anybody; us 0: none yet */
    int64_t away_us;      /* shortage_away_us() then */
};

/* Takes the memory of all histograms now, so that it is not mistaken for that of apps. */
void meter_init(struct meter *m, struct stats *total);
void meter_done(struct meter *m);               /* total stays */
uint64_t meter_requests(const struct meter *m); /* sent so far, of whatever cause */
/* An operation that ended; due us 0: as sent. */
void meter_record(struct meter *m, enum drive_op op, const struct api_result *r, struct mono due);
/* Tells from how a request ended whether the server can be reached, and serves. */
void meter_reach(struct meter *m, const struct api_result *r);
/* An outage that the run causes itself begins; there is room for METER_ORDERED. Returns its number. */
unsigned meter_order(struct meter *m, const char *what);
void meter_order_over(struct meter *m, unsigned order);
/* A failure that an ordered outage explains, by its kind and its time, becomes OUT_OUTAGE. */
void meter_excuse(const struct meter *m, struct api_result *r);
void meter_stream_up(struct meter *m);
void meter_stream_down(struct meter *m);
/* Adds the interval to the total and starts the next. */
void meter_next_interval(struct meter *m);
/* Brings `us` of the outages that go on up to date, and marks those that have ended. */
void meter_look_at_outages(struct meter *m, struct mono now);
#endif
