#ifndef SIM_RAMP_TOLD_H
#define SIM_RAMP_TOLD_H
/* What a ramp tells while it runs: its plan, and how far a step is. Nothing under --quiet. Layer 3. */
#include "sim/ramp/ramp.h"

void ramp_tell_plan(const struct ramp *r);
void ramp_progress_start(struct ramp *r, const struct ramp_step *s);
/* doing: what it does now; NULL: how many sessions are in. May be called at any rate. */
void ramp_progress(struct ramp *r, const struct ramp_step *s, const char *doing);
void ramp_progress_end(struct ramp *r); /* also when none was started */
#endif
