#ifndef SIM_APP_REMOVE_H
#define SIM_APP_REMOVE_H
/* Removing for good through the client's own calls, for commands without apps: trash, purge, and the server's jobs
 * waited for. Budgets are waited out. Layer 3. */
#include "drive/api/api.h"
#include "drive/cmd.h"

struct remover {
    struct cmd_ctx *ctx;
    struct api *api;
    const bool *stop;            /* set by an interruption: nothing more is begun */
    int64_t limit_us;            /* of one job; 0: none */
    uint64_t requests;           /* counted up */
    void (*progress)(void *arg); /* after each answer about a job; may be NULL */
    void *arg;
};
/* False with the reason. n at most 500. */
MAY_YIELD bool remove_to_trash(struct remover *m, const char *const *ids, size_t n, char *why, size_t why_n);
MAY_YIELD bool remove_from_trash(struct remover *m, const char *const *ids, size_t n, char *why, size_t why_n);
#endif
