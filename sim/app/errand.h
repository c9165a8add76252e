#ifndef SIM_APP_ERRAND_H
#define SIM_APP_ERRAND_H
/* Work that outlives a request: waiting for the server's job, and removing for good what a command made. Both outlast a
 * server that is away for a while (half a minute), and both end when the worker is cut. Layer 3. */
#include "sim/app/call.h"

#define ERRAND_AWAY_US (30 * US_PER_S) /* without any usable answer for so long: given up */

enum job_fate { FATE_DONE, FATE_FAILED, FATE_TIMED_OUT, FATE_LOST, FATE_AWAY, FATE_CUT };
/* One job that is waited for. */
struct errand {
    struct app *app;
    enum cause cause;
    int64_t limit_us;                                       /* from the call on; 0: none */
    void (*progress)(void *arg, const struct api_job *job); /* after each answer; may be NULL */
    void *arg;
    struct mono started; /* out: when an answer first said that it no longer queues; us 0: none did */
    char why[320];       /* out: "" when done */
};
/* Asks until the job has ended. mem: for what the last answer says. */
MAY_YIELD enum job_fate errand_wait(struct errand *e, struct api_job *job, struct arena *mem);

/* Makes a top-level folder for the work of a command, as soon as a server that cannot now (503) can again: ERR_ENV with
 * a sentence when that cannot be. */
MAY_YIELD enum err errand_folder(struct app *a, const char *name, char id[DRIVE_ID_MAX + 1],
                                 struct errinfo *ei) WARN_UNUSED;
/* Trashes and deletes for good; what is gone already is fine. False, with the reason, when it could not be done. */
MAY_YIELD bool errand_remove(struct app *a, const char *const *ids, size_t n, enum cause cause, char *why,
                             size_t why_n);
/* The server did not answer, or only that it cannot now: the same may be asked again later. */
bool errand_transient(const struct api_result *r);
#endif
