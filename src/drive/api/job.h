#ifndef DRIVE_API_JOB_H
#define DRIVE_API_JOB_H
/* What a server goes on with after its answer: copying, trashing and purging may be jobs (drive-api.md 3), which a
 * client asks about, less and less often, until they have ended. This is the one place that waits for a job, and the
 * one that removes for good. Who makes the calls, and what an answer means to them (a spent budget, an expired session,
 * a count), differs between an app, the seeder and a command without apps: each says it in a struct job_caller.
 * Layer 2. */
#include "drive/api/files.h"
#include "drive/stats.h"

#define JOB_AWAY_US (30 * US_PER_S) /* without any usable answer for so long: given up, as a rule */

struct job_caller {
    /* Before each call: the client that makes it. NULL: the work has stopped, no more calls. */
    MAY_YIELD struct api *(*begin)(void *arg);
    /* After each call, of operation OP_JOB, OP_TRASH or OP_PURGE. True: the same call again, now; what had to be
     * waited for it (a budget) has been. */
    MAY_YIELD bool (*again)(void *arg, enum drive_op op, const struct api_job *job, const struct api_result *r);
    MAY_YIELD bool (*pause)(void *arg, int64_t us);         /* false: the work has stopped */
    void (*progress)(void *arg, const struct api_job *job); /* after each answer about the job; NULL: not told */
    void *arg;
    int64_t limit_us; /* of the wait for one job; 0: none */
    /* How long the server may give no answer that says anything (api_transient); 0: not even once. Until then the
     * same is asked again. */
    int64_t away_us;
    int64_t pause_most_us; /* between two questions about a job; 0: half a second */
};

/* JOB_LATE: its time was over. JOB_LOST: the server will not tell of it any more. JOB_AWAY: no usable answer for too
 * long. JOB_CUT: the work has stopped. After these four nobody knows whether it was or will be done. */
enum job_fate { JOB_DONE, JOB_FAILED, JOB_LATE, JOB_LOST, JOB_AWAY, JOB_CUT };
struct job_end {
    enum job_fate fate;
    struct mono started; /* when an answer first said that it no longer queues; us 0: none did */
    struct mono told;    /* when the last answer was there; us 0: there was none */
    char why[320];       /* a sentence; "" when done */
};
/* Asks until the job has ended; mem: for what the answers say. */
MAY_YIELD enum job_fate job_wait(const struct job_caller *c, struct api_job *job, struct arena *mem,
                                 struct job_end *end);

/* Each waits for the job, if there is one. What is gone already is fine. False, with the reason in why. n as
 * api_trash. */
MAY_YIELD bool job_trash(const struct job_caller *c, const char *const *ids, size_t n, char *why, size_t why_n);
MAY_YIELD bool job_purge(const struct job_caller *c, const char *const *ids, size_t n, char *why, size_t why_n);
/* Both, one after the other: removes for good. */
MAY_YIELD bool job_remove(const struct job_caller *c, const char *const *ids, size_t n, char *why, size_t why_n);

/* No answer, or one that only says that the server cannot now (429, 502, 503, 504): the same may be asked again
 * later. */
bool api_transient(const struct api_result *r);
#endif
