#ifndef CHECKS_EVIDENCE_ASKER_H
#define CHECKS_EVIDENCE_ASKER_H
/* Sessions to read back with what a run's apps wrote: a few logins an account, as many as the budget of requests takes.
 * A spent budget is waited out, a session that is over renewed and a server that stumbles asked again, each within
 * limits, so that none of them looks like a finding. Layer 3. */
#include "checks/check.h"
#include "drive/api/api.h"

struct asker;
struct session;
/* requests: how many are to be expected of each account, by number. Signs in only as accounts whose number is not 0. */
MAY_YIELD enum err asker_new(struct asker **out, struct check_ctx *c, const uint64_t *requests, uint32_t n_accounts,
                             struct errinfo *ei) WARN_UNUSED;
void asker_free(struct asker **a);
struct asking {               /* of one question; zero at its start */
    unsigned tries, refusals; /* refusals: of the session, 401 */
    int64_t waited_us;
    struct session *session; /* asker.c's: which was used last, and which of its renewals */
    uint32_t generation;
};
/* The account's sessions in turn, for one try of the question; NULL: it has none. */
struct api *asker_api(struct asker *a, uint32_t account, struct asking *q);
/* After a call: true when the same is to be asked again, after a wait. */
MAY_YIELD bool asker_again(struct asker *a, struct asking *q, const struct api_result *r);
#endif
