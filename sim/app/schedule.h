#ifndef SIM_APP_SCHEDULE_H
#define SIM_APP_SCHEDULE_H
/* How far a run is, and who waits for it to go on. Coroutines of apps are counted as lanes: nothing is at work when
 * none is left. worker.h has the functions. Layer 3. */
#include "net/coro.h"

enum phase {
    PHASE_SETUP,   /* signing in, reading the tree */
    PHASE_ARRIVE,  /* apps start and list all their folders */
    PHASE_MEASURE, /* the window that was asked for: actions */
    PHASE_SETTLE,  /* no more actions; the apps take in what they were told */
    PHASE_DRAIN,   /* what runs is finished, nothing new begins */
    PHASE_CUT      /* what still runs is given up */
};
struct sleeper;
struct schedule {
    enum phase phase;
    struct mono window;       /* when it began; us 0: not yet */
    bool settled;             /* all was quiet at the end */
    uint64_t lanes;           /* that run */
    struct sleeper *sleepers; /* worker_sleep */
    struct done wake;         /* for the coroutine that conducts the run */
};
#endif
