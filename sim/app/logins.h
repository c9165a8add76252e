#ifndef SIM_APP_LOGINS_H
#define SIM_APP_LOGINS_H
/* Finding out whom a run can be: the owners that seed made, their sub-users, their folders; and keeping their sessions.
 * Sign-ins are few at a time and wait out the login limiter, so that a run never looks like a stampede. Layer 3. */
#include "sim/app/worker.h"

/* Signs in owner@load.test, owner-2@load.test, … until one is absent, lists their sub-users, signs in as many logins as
 * the apps can use, spread over the accounts. ERR_ENV with one sentence when the server was not seeded. */
MAY_YIELD enum err logins_discover(struct worker *w, struct errinfo *ei) WARN_UNUSED;
/* Reads the folders of all accounts, the logins sharing the work. */
MAY_YIELD enum err logins_read_trees(struct worker *w, struct errinfo *ei) WARN_UNUSED;
/* From here on sessions are renewed before they expire, each login at a time of its own. Until worker_draining. */
void logins_keep(struct worker *w);
/* The session of generation `seen` has expired: signs in again unless another app just did. False when it could not. */
MAY_YIELD bool login_renew(struct worker *w, struct login *l, uint32_t seen);
#endif
