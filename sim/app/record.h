#ifndef SIM_APP_RECORD_H
#define SIM_APP_RECORD_H
/* The ledger's two records around each call of an action: before it is sent what it intends, after its answer what it
 * was told. The second holds only what the first does not. Layer 3. */
#include "sim/app/actions.h"

/* Before the call. t NULL: it is about no file yet. Fills rec and gives it its number. */
void action_intend(struct action *x, struct ledger_record *rec, enum drive_op op, const struct picked *t);
/* After it. f: what the answer showed, may be NULL. */
void action_told(struct action *x, const struct ledger_record *rec, const struct api_result *r,
                 const struct drive_file *f);
/* The same with what was told already in told's fields. */
void action_answer(struct action *x, const struct ledger_record *rec, struct ledger_record *told,
                   const struct api_result *r);
void action_content(struct ledger_record *rec, const struct content *c); /* what is sent or was read */
#endif
