#ifndef SIM_RAMP_CAUSE_H
#define SIM_RAMP_CAUSE_H
/* Which resource set a knee: what the server showed at the last step on track against the first one off it. A row names
 * a resource when its figure is beyond what leaves room there and, where plenty of it is no sign by itself, has also
 * grown between the two. Layer 3, pure. */
#include "sim/watch/watch.h"

/* "the processors: CPU % 97 (43 before)"; more than one where several gave out, in the order in which they explain each
 * other. link_mb_per_s 0: not known. known: whether one is named. Returns dst. */
char *ramp_cause(const struct watch_values *on, const struct watch_values *off, double link_mb_per_s, bool *known,
                 char *dst, size_t n);
#endif
