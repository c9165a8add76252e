#ifndef SIM_APP_STORM_H
#define SIM_APP_STORM_H
/* Event streams put to the test in the middle of a run: all of them broken at once, as when a proxy in front of the
 * server is restarted, and a share of the apps that read theirs slowly. Layer 3. */
#include "sim/app/worker.h"

/* Breaks every stream that is open; each comes back by itself (stream.h). */
void storm_begin(struct worker *w, FILE *out);
/* One is back; the last one is told. */
void storm_back(struct worker *w);
/* "10%" or "0.1". */
bool storm_parse_share(const char *text, double *share);
/* What became of both goes among the result's figures. */
void storm_figures(const struct worker *w, struct result *r);
#endif
