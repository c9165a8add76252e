#ifndef SIM_RAMP_CAUSE_H
#define SIM_RAMP_CAUSE_H
/* Which resource set a knee, by comparing the server's figures at the last step on track with those at the first one
 * off it. A row of the table names a resource when its figure has passed the point from which no room is left; where a
 * high figure alone proves nothing, it must also have grown between the two steps. Layer 3, pure. */
#include "sim/watch/watch.h"

/* "the processors: CPU % 97 (43 before)"; all of them where several gave out, causes before their effects.
 * link_mb_per_s 0: not known. *known: whether one is named. Returns dst. */
char *ramp_cause(const struct watch_values *on, const struct watch_values *off, double link_mb_per_s, bool *known,
                 char *dst, size_t n);
#endif
