#ifndef SIM_LARGE_BIGFILES_H
#define SIM_LARGE_BIGFILES_H
/* Many large files at once: all uploaded, then all downloaded and compared byte for byte while they stream. Content is
 * made and judged piece by piece, so that memory depends on how many files there are, never on their size. Runs on any
 * worker whose logins are signed in: alone, or in the middle of a run. Layer 3. */
#include "sim/app/worker.h"
#include "sim/watch/server_watch.h"

#define BIGFILES_LEAST_MIB 0.001 /* a file that is too short to say whose it is proves nothing */
#define BIGFILES_MOST_MIB  1048576.0

struct bigfiles_conf {
    unsigned count;
    uint64_t bytes; /* of each */
    bool keep;      /* leave them there */
    int64_t timeout_us;
    enum drive_op upload, download; /* as which they are counted */
    FILE *out;                      /* NULL: nothing is printed */
    bool tty;
};
/* ERR_ENV when the folders for them cannot be made; failed transfers are counted, not errors. They end early when the
 * worker drains; what was made is removed even then, until it is cut. Figures go into the command's result. */
MAY_YIELD enum err bigfiles_run(struct worker *w, struct server_watch *watch, const struct bigfiles_conf *conf,
                                struct errinfo *ei) WARN_UNUSED;
void bigfiles_sample(struct result *r); /* as struct command's */
#endif
