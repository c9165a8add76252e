#ifndef SIM_RAMP_CROWD_H
#define SIM_RAMP_CROWD_H
/* The sessions of one step, from their arrival to their end. Layer 3. */
#include "sim/ramp/session.h"

struct crowd {
    struct ramp *r;
    struct ramp_step *s;
    struct session *all;
    struct group group;
};
/* They arrive at the step's rate, each in a coroutine of its own. */
void crowd_start(struct crowd *c, struct ramp *r, struct ramp_step *s);
bool crowd_at_work(const struct crowd *c);    /* false also when all is to end */
MAY_YIELD void crowd_gather(struct crowd *c); /* until every session is in or was turned away */
MAY_YIELD void crowd_stay(struct crowd *c, int64_t us);
/* No new work begins; waits until what they do has ended. When the whole ramp is to end, their work is cancelled at
 * once, and signing out after 2 s. */
MAY_YIELD void crowd_end(struct crowd *c);
#endif
