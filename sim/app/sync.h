#ifndef SIM_APP_SYNC_H
#define SIM_APP_SYNC_H
/* The background lane: how an app keeps its open folders up to date. Layer 3. */
#include "sim/app/app.h"

/* Does the most urgent thing of the background; false when nothing is due. */
MAY_YIELD bool sync_step(struct app *a);
struct mono sync_next_due(const struct app *a);
void sync_event(struct app *a, const struct api_event *ev);
/* The event stream is open: what happens from here on comes on it, what happened since the last listing is asked for.
 * resumed: the server repeats what came after the last event, or says resync. certain: its first frame has come too;
 * a server may answer before it listens, so until then the question waits for it, 2 s at most. */
void sync_stream_open(struct app *a, bool resumed, bool certain);
/* Lists one open folder and brings the view up to date. False when it could not. */
MAY_YIELD bool sync_list(struct app *a, uint32_t at, enum drive_op op, enum cause cause);
/* The folder is known to be out of date: it is listed as soon as the lane is free, without waiting for more events. */
void sync_soon(struct app *a, uint32_t at);
#endif
