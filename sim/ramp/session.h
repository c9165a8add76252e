#ifndef SIM_RAMP_SESSION_H
#define SIM_RAMP_SESSION_H
/* What one of a step's concurrent users does: sign in and stay, or sign in and upload, one after another while the step
 * is held (once when it is not). Each has connections of its own. A session that is refused, or times out, is counted
 * as what it was and not tried again: how many got in is the answer. Layer 3. */
#include "sim/ramp/ramp.h"

struct session {
    struct ramp *r;
    struct ramp_step *s;
    unsigned index;
    struct api *api; /* NULL: gone, or not there yet */
    enum outcome worst;
    bool shares; /* the set-up's sign-in; it has none of its own */
    bool ended;
};
/* For a group: from its due time to its end. */
void session_run(void *arg);
void session_cancel(struct session *x);
/* Notes how an operation ended, in the step, in the command's counters and in sessions.csv. */
void session_note(struct session *x, enum drive_op op, const struct api_result *r, struct mono due);

/* The whole of a step whose sessions are desktop apps (session_apps.c). */
MAY_YIELD enum err session_apps_run(struct ramp *r, struct ramp_step *s, struct errinfo *ei) WARN_UNUSED;
#endif
