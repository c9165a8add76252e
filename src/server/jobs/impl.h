#ifndef SERVER_JOBS_IMPL_H
#define SERVER_JOBS_IMPL_H
/* What jobs.c and the files of single kinds share. Layer 3. */
#include "server/jobs/jobs.h"
#include "server/meta/meta.h"

struct job { /* claimed by this server */
    struct server *server;
    struct arena *mem;
    const char *id, *kind;
    struct meta_who who;
    int64_t attempts;
};

/* How a run ended. LATER: something that a job needs is away; it is claimed again after a while. */
enum job_end { JOB_DONE, JOB_FAILED, JOB_LATER };
/* True when the server stops: the run ends with JOB_LATER at the next step. */
bool jobs_stopping(const struct server *s);

/* Copies the objects, then makes the copy visible. On JOB_FAILED, *code says why. */
MAY_YIELD enum job_end job_copy_run(struct job *j, const char **code);
#endif
