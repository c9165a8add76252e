#ifndef SIM_RAMP_REPORT_H
#define SIM_RAMP_REPORT_H
/* What a ramp tells: its figures (ramp/report.c), and what they come to (ramp/verdict.c). Layer 3. */
#include "sim/ramp/ramp.h"

/* A table's line as soon as a step has ended; the JSON parts "steps" and "ranges"; steps.csv. */
void ramp_print_step(const struct ramp *r, const struct ramp_step *s);
void ramp_print_few(const struct ramp *r); /* what "~" means, when it was used */
void ramp_print_ranges(const struct ramp *r);
void ramp_write_json(const struct ramp *r, struct result *out);
enum err ramp_write_csv(const struct ramp *r, struct errinfo *ei) WARN_UNUSED;

/* Predictions are written down before; knee, limit, what ended it and the score are told after. */
enum err ramp_predict(const struct ramp *r, struct errinfo *ei) WARN_UNUSED;
enum err ramp_verdict(struct ramp *r, struct result *out, struct errinfo *ei) WARN_UNUSED;
#endif
