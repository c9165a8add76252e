#ifndef SIM_APP_REMOVER_H
#define SIM_APP_REMOVER_H
/* Removing for good by a client alone, for commands without apps. Budgets are waited out, and a server that is away for
 * as long as its maker says. Layer 3. */
#include "drive/api/job.h"
#include "drive/cmd.h"

struct remover {
    struct cmd_ctx *ctx;
    struct api *api;
    const bool *stop;    /* set by an interruption: nothing more is begun; NULL: nothing stops it */
    const bool *hurried; /* set by one too: what is begun is ended, but no budget is waited for; NULL: never */
    int64_t limit_us;    /* of one job; 0: none */
    int64_t away_us;     /* as job.h */
    unsigned tries;      /* its own: of the call that is made just now */
    bool spent;          /* its own: a budget was not waited for */
};
/* The remover as job.h takes it: for job_trash, job_purge, job_remove. Borrows m. */
struct job_caller remover_caller(struct remover *m);
#endif
