#ifndef SIM_APP_ERRAND_H
#define SIM_APP_ERRAND_H
/* Work of an app that outlives a request: waiting for the server's job, and removing for good what a command made. Both
 * outlast a server that is away for a while, and both end when the worker is cut. Layer 3. */
#include "drive/api/job.h"
#include "sim/app/call.h"

/* One job that is waited for. */
struct errand {
    struct app *app;
    enum cause cause;
    int64_t limit_us;                                       /* from the call on; 0: none */
    int64_t away_us;                                        /* 0: JOB_AWAY_US */
    int64_t pause_most_us;                                  /* between two questions; 0: as job.h */
    void (*progress)(void *arg, const struct api_job *job); /* as job.h */
    void *arg;
    bool record_all;    /* every question is recorded as OP_JOB, not only those that failed */
    struct job_end end; /* out */
    int64_t waited_us;  /* out: for budgets */
    struct call call;   /* the errand's own: the one that is made just now */
};
/* Asks until the job has ended. mem: for what the last answer says. */
MAY_YIELD enum job_fate errand_wait(struct errand *e, struct api_job *job, struct arena *mem);

/* Trashes and deletes for good; what is gone already is fine. False, with the reason, when it could not be done. */
MAY_YIELD bool errand_remove(struct app *a, const char *const *ids, size_t n, enum cause cause, char *why,
                             size_t why_n);
#endif
