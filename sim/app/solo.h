#ifndef SIM_APP_SOLO_H
#define SIM_APP_SOLO_H
/* A scenario that has the server for itself: logins signed in and kept, the server's memory watched, one Ctrl-C drains
 * and the second cuts, the command's result complete in the end. Layer 3. */
#include "sim/app/worker.h"
#include "sim/watch/server_watch.h"

struct solo {
    unsigned apps;      /* how many connections' worth of logins and open files */
    int64_t timeout_us; /* of a request */
    int64_t server_pid; /* 0: found by itself */
    bool watched;       /* worker.watch is there, for what `watch` names (watch.h) */
    const char *watch;
    bool judges_generator; /* the body says itself, in the result, whether the generator was the limit */
    bool recorded;         /* its course is kept for the page; the body does not read worker.meter.interval */
    MAY_YIELD enum err (*body)(struct worker *w, struct server_watch *watch, const void *arg, struct errinfo *ei);
    const void *arg;
};
MAY_YIELD enum err solo_run(const struct solo *s, struct cmd_ctx *ctx, struct errinfo *ei) WARN_UNUSED;
/* The figures that every such scenario has; as struct command's. */
void solo_sample(struct result *r);
#endif
