#ifndef SIM_LARGE_BULK_H
#define SIM_LARGE_BULK_H
/* The work of many items at once: the largest top-level folder is copied, the copy goes to the trash, then for good.
 * Each step is timed: the request, the wait for its turn, the work. A step whose time is over is of unknown outcome:
 * it is looked for and never asked for again. Runs on any worker whose logins are signed in: alone, or in the middle
 * of a run. Layer 3. */
#include "sim/app/worker.h"

struct bulk_conf {
    int64_t timeout_us;               /* of a step */
    enum drive_op copy, trash, purge; /* as which they are counted */
    bool alone; /* nobody else is at work on the account: totals and storage use are compared before and after */
    FILE *out;  /* NULL: nothing is printed */
    bool tty;
};
/* ERR_ENV when there is nothing to copy or no folder for the copy can be made; steps that fail are counted, not errors.
 * What was made is removed in the end. Figures go into the command's result. */
MAY_YIELD enum err bulk_run(struct worker *w, const struct bulk_conf *conf, struct errinfo *ei) WARN_UNUSED;
void bulk_sample(struct result *r); /* as struct command's */
#endif
