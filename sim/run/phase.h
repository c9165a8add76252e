#ifndef SIM_RUN_PHASE_H
#define SIM_RUN_PHASE_H
/* The course of a run: apps arrive evenly spaced and list their folders; the window asked for is measured; what runs is
 * drained. Layer 3. */
#include "sim/run/chaos.h"
#include "sim/run/inject.h"
#include "sim/run/report.h"
#include "sim/watch/watch.h"

struct phases {
    struct worker *w;
    struct report *report;
    struct inject *inject; /* NULL: nothing comes in between */
    struct chaos *chaos;   /* NULL: no outage is ordered */
    const char *chaos_log;
    const uint32_t *actions; /* of each app */
    double arrive_per_s;
    int64_t report_us, grace_us;
    struct done *begun; /* set when the window begins, or will not; NULL: nobody waits for it */
    bool tells;         /* its parts are those of the command (cmd_phase) */
    struct mono next_report;
    bool interrupted;                       /* out */
    int64_t measured_us;                    /* out: how much of the window was run */
    uint64_t window_requests;               /* out: within the window, as all that follow */
    uint64_t window_writes, busiest_writes; /* acknowledged; of the account that had most */
    struct watch_values watched;
};
/* The apps are initialised. Returns when all of them are stopped, at the latest a grace after the window's end or the
 * first interruption. */
MAY_YIELD void phases_run(struct phases *c);
#endif
