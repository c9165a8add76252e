#ifndef SIM_APP_ACTIONS_H
#define SIM_APP_ACTIONS_H
/* Internal to the actions: what each of them carries and shares. An action is one file (act_*.c) with one straight-line
 * function, one row of the table in actions.c, and its weight in the model. Layer 3. */
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

MAY_YIELD void action_download(struct action *x);
MAY_YIELD void action_save(struct action *x);
MAY_YIELD void action_upload(struct action *x);
MAY_YIELD void action_trash(struct action *x);
MAY_YIELD void action_rename(struct action *x);
MAY_YIELD void action_copy(struct action *x);
MAY_YIELD void action_new_folder(struct action *x);
MAY_YIELD void action_move(struct action *x);

bool action_pick_file(struct action *x, uint64_t pick, struct picked *t); /* false: the view has none */
/* An open folder that is there, other than `but`; VIEW_NONE when there is none. */
uint32_t action_pick_folder(const struct action *x, uint64_t pick, uint32_t but);
/* Where people put new things: folders in proportion to what they hold already, so that busy ones stay busy. */
uint32_t action_pick_busy_folder(const struct action *x, uint64_t pick);
const char *action_extension(struct action *x, const char *name);
/* "Upload 1a2b-7-3.txt" into dst: no other app and no other run gives that name. ext "": none. */
void action_new_name(struct action *x, const char *verb, const char *ext, char dst[DRIVE_NAME_MAX + 1]);
void action_text(char *dst, size_t n, const char *src); /* src may be NULL */

/* The ledger's records around a call: before it is sent, after its answer. f may be NULL: what the answer showed. The
 * second record holds only what the first one does not. */
void action_intend(struct action *x, struct ledger_record *rec, enum drive_op op, const struct picked *t);
void action_told(struct action *x, const struct ledger_record *rec, const struct api_result *r,
                 const struct drive_file *f);
/* The same with what was told already in its fields. */
void action_answer(struct action *x, const struct ledger_record *rec, struct ledger_record *told,
                   const struct api_result *r);
void action_content(struct ledger_record *rec, const struct content *c);

/* "Not found" becomes a conflict when a fresh listing does not show the file either. */
MAY_YIELD void action_judge_missing(struct action *x, struct api_result *r, const struct picked *t);
/* The same for a folder that something was put into. */
MAY_YIELD void action_judge_folder(struct action *x, struct api_result *r, uint32_t at);
/* Counts the action's end, and lists again after a conflict. t NULL: no file that could be missing. */
MAY_YIELD void action_finish(struct action *x, const struct call *c, enum drive_op op, struct api_result *r,
                             const struct picked *t);
void action_tally(struct app *a, enum drive_op op, enum outcome o);
void action_nothing_to_do(struct action *x);
/* Polls until the job has ended, whose end is the action's and goes into r. False when it failed or was given up. */
MAY_YIELD bool action_job(struct action *x, struct api_job *job, struct api_result *r);
#endif
