#ifndef SIM_APP_ACTIONS_H
#define SIM_APP_ACTIONS_H
/* The user's actions. Each is one file (act_*.c) with one straight-line function, one row of the table in actions.c,
 * and its weight in the model. What it works on comes from pick.h, what it says of itself goes through record.h, and
 * its end is judged here. Layer 3. */
#include "sim/app/call.h"
#include "sim/app/sync.h"

#define ACTION_SIZE_MAX (64 << 20) /* a save or upload is no larger */

struct action {
    struct app *app;
    const struct planned *plan;
    struct mono due;
    int64_t waited_us; /* for budgets, in earlier calls of the same action */
    struct arena *mem; /* freed with the action */
};
/* A file picked from the view, copied out of it. */
struct picked {
    uint32_t at;
    char folder[DRIVE_ID_MAX + 1], id[DRIVE_ID_MAX + 1], version[DRIVE_ID_MAX + 1]; /* version "": none */
    char name[DRIVE_NAME_MAX + 1];
    int64_t size;
};

/* Does what is planned, to its end. due: when it should have begun. */
MAY_YIELD void action_run(struct app *a, const struct planned *p, struct mono due);

MAY_YIELD void action_download(struct action *x);
MAY_YIELD void action_save(struct action *x);
MAY_YIELD void action_upload(struct action *x);
MAY_YIELD void action_trash(struct action *x);
MAY_YIELD void action_rename(struct action *x);
MAY_YIELD void action_copy(struct action *x);
MAY_YIELD void action_new_folder(struct action *x);
MAY_YIELD void action_move(struct action *x);

/* "Not found" becomes a conflict when a fresh listing does not show the file either. */
MAY_YIELD void action_judge_missing(struct action *x, struct api_result *r, const struct picked *t);
/* The same for a folder that something was put into. */
MAY_YIELD void action_judge_folder(struct action *x, struct api_result *r, uint32_t at);
/* Counts the action's end, and lists again after a conflict. t NULL: no file that could be missing. */
MAY_YIELD void action_finish(struct action *x, const struct call *c, enum drive_op op, struct api_result *r,
                             const struct picked *t);
void action_tally(struct app *a, enum drive_op op, enum outcome o);
void action_nothing_to_do(struct action *x);
/* Waits for the job, whose end is the action's: r becomes that of the whole. False when it failed (OUT_SERVER) or was
 * given up (OUT_UNKNOWN). */
MAY_YIELD bool action_job(struct action *x, struct api_job *job, struct api_result *r);
#endif
