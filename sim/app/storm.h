#ifndef SIM_APP_STORM_H
#define SIM_APP_STORM_H
/* Event streams put to the test in the middle of a run: all of them broken at once, as when a proxy in front of the
 * server is restarted, and a share of the apps that read theirs slowly. Layer 3. */
#include "base/clock.h"

#include <stdio.h>

struct result;
struct worker;

struct stream_tally {
    uint64_t replayed, resyncs;         /* frames: changes repeated after a reconnect; told to list everything */
    uint64_t slow_ended;                /* streams of slow readers that ended */
    uint64_t refused_in_storm;          /* 429 */
    bool retry_capped;                  /* "retry:" asked for more than is waited: told once */
    uint32_t broken, back;              /* by the storm; opened again since */
    struct mono storm_from, storm_over; /* us 0: none; not over */
    uint64_t replayed_before, resyncs_before;
    FILE *out; /* NULL: says nothing */
};

/* Breaks every stream that is open; each comes back by itself (stream.h). */
void storm_begin(struct worker *w, FILE *out);
/* One is back; the last one is told. */
void storm_back(struct worker *w);
/* "10%" or "0.1". */
bool storm_parse_share(const char *text, double *share);
/* What became of both goes among the result's figures. */
void storm_figures(const struct worker *w, struct result *r);
#endif
