#ifndef SIM_APP_DELIVERY_H
#define SIM_APP_DELIVERY_H
/* How long changes take to reach the other apps of their account: from the acknowledgement to the event there, and to
 * the end of the listing that shows it there. An acknowledgement and its event know nothing of each other: they are put
 * together by file and operation, whichever comes first; an event that came before the acknowledgement counts as 0. The
 * app that made the change is left out, and so are apps that read slowly on purpose and folders that an app has not
 * open. What finds no partner within two minutes is forgotten: whether events are missing is the checks' business, not
 * that of figures. Layer 3. */
#include "sim/app/worker.h"

struct api_event;
struct delivery;
struct delivery_pending;
struct deliveries { /* of one app: what it has heard of, and its view does not show yet */
    struct delivery_pending *items;
    uint32_t n, cap;
};

void delivery_free(struct delivery **d);
/* Tells one change from others, the same at all apps. */
uint64_t delivery_identity(const struct api_event *ev);
void delivery_told(struct app *a, enum drive_op op, const char *file_id); /* acknowledged just now */
void delivery_event(struct app *a, const struct api_event *ev);
/* Open folder `at` was listed by a request that left then; VIEW_NONE: the server said then that nothing is new in any
 * folder but those that are marked dirty. */
void delivery_shown(struct app *a, uint32_t at, struct mono asked);
void deliveries_done(struct app *a);
#endif
