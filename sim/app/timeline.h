#ifndef SIM_APP_TIMELINE_H
#define SIM_APP_TIMELINE_H
/* The outages of a run on its time axis, those that were ordered and those that were seen: while it runs, in its
 * summary, in its JSON. Layer 3. */
#include "drive/result/result.h"
#include "sim/app/meter.h"

/* Outages not told yet, and those that last each time. */
void timeline_tell(struct meter *m, FILE *out);
/* All of them, by their beginning, in seconds from zero on; nothing when there was none. */
void timeline_print(struct meter *m, struct mono zero, FILE *out);
/* The same as the result's part "timeline", an array: {"at_seconds", "seconds", "from", "what", "ordered", "failures"}.
 */
void timeline_result(struct meter *m, struct mono zero, struct result *r);
/* Those not told in full yet, as the member "outages" of the open object; nothing when there are none. Seconds count
 * from zero on, "over" says whether it is the last word on this one. */
void timeline_course(struct meter *m, struct mono zero, struct jsonw *w);
/* Time in which at least one outage was seen. */
int64_t timeline_outage_us(struct meter *m);
#endif
