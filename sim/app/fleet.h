#ifndef SIM_APP_FLEET_H
#define SIM_APP_FLEET_H
/* All apps of a worker, as many as its conf says: who they are and which folders there are, then the apps. Layer 3. */
#include "sim/app/app.h"

/* Signs in and reads the folders. Errors are those of logins.h. */
MAY_YIELD enum err fleet_find(struct worker *w, struct errinfo *ei) WARN_UNUSED;
/* After an error, too, fleet_free is to be called. */
enum err fleet_make(struct worker *w, struct errinfo *ei) WARN_UNUSED;
void fleet_free(struct worker *w); /* before worker_done; fine when none were made */
#endif
