#ifndef SIM_RAMP_IMPL_H
#define SIM_RAMP_IMPL_H
/* Internal to a ramp: what its parts ask of each other. Layer 3. */
#include "sim/ramp/ramp.h"

void ramp_say(const struct ramp *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ramp_step_init(struct ramp_step *s, const struct ramp *r, unsigned asked);
void ramp_step_done(struct ramp_step *s);

/* ramp/figure.c. The figure that a line speaks of; false: there is none, a share or percentile of fewer than `least`
 * samples, or a percentile of fewer than it needs. */
bool ramp_figure(const struct ramp_step *s, const struct ramp_line *l, const struct watch_values *server,
                 uint64_t least, double *out);
/* Why a percentile has no figure: so many samples of so many that it needs; false: it has, or is none. */
bool ramp_too_few(const struct ramp_step *s, const struct ramp_line *l, uint64_t *samples, uint64_t *needs);
double ramp_operations_per_s(const struct ramp_step *s); /* < 0: not measured, as the next ones */
double ramp_actions_per_s(const struct ramp_step *s);    /* of apps: what they planned, less what comes with it */
double ramp_sign_ins_per_s(const struct ramp_step *s);
double ramp_p95_ms(const struct ramp_step *s, enum drive_op op);

/* ramp/stop.c: looks at the conditions while a step runs. */
void ramp_guard_start(struct ramp *r, struct ramp_step *s);
void ramp_guard_end(struct ramp *r); /* also when none runs; judges once more what is only known now */

/* ramp/folder.c: what is made is taken away, unless it is to stay. */
MAY_YIELD enum err ramp_make_folders(struct ramp *r, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD void ramp_remove_folders(struct ramp *r);
const char *ramp_folder_of(const struct ramp *r, const struct login *l); /* NULL: the root */

/* ramp/limit.c */
MAY_YIELD enum err ramp_push_past(struct ramp *r, struct errinfo *ei) WARN_UNUSED;
#endif
