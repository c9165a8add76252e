#ifndef SIM_APP_RUN_FOLDERS_H
#define SIM_APP_RUN_FOLDERS_H
/* The folders that a command works in: a top-level one in each account whose apps take part, called after the run so
 * that two runs never meet, and removed for good afterwards. Layer 3. */
#include "sim/app/app.h"

struct run_folder {            /* an account's */
    struct app *app;           /* that made it, borrowed: it removes it, too; NULL: none was asked for */
    char id[DRIVE_ID_MAX + 1]; /* "": it could not be made */
};
struct run_folders {
    struct worker *w;
    char name[60];
    struct run_folder *of; /* each of the worker's accounts */
    /* For servers that nobody has seeded: the tree of a given login is made ours first (api_claim), and where the
     * server knows no folders the top level has to do, with the id "". */
    bool unseeded;
};
/* title: "Pairs" makes folders "Pairs 1a2b3c4d". */
void run_folders_init(struct run_folders *f, struct worker *w, const char *title);
void run_folders_done(struct run_folders *f); /* frees memory only; fine when it was never initialised but zeroed */
/* The folder of the app's account, unless there is one already; as soon as a server that cannot now (503) can again.
 * ERR_ENV, ERR_SAFETY (the place is somebody else's), ERR_INTERRUPTED with a sentence. */
MAY_YIELD enum err run_folders_make(struct run_folders *f, struct app *a, struct errinfo *ei) WARN_UNUSED;
/* Its id, "" where there is none; lives as long as f. */
const char *run_folders_id(const struct run_folders *f, const struct app *a);
/* Removes them all with what is in them. False: some are left, each of which is a warning of this log module. */
MAY_YIELD bool run_folders_remove(struct run_folders *f, const char *module);
#endif
