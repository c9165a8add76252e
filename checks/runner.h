#ifndef CHECKS_RUNNER_H
#define CHECKS_RUNNER_H
/* The checks as the commands use them: all rows in one call. Layer 3. */
#include "checks/check.h"

/* ERR_USAGE for a name in only that is no check. */
enum err checks_judge_names(const struct opt_list *only, struct errinfo *ei) WARN_UNUSED;
/* Runs all rows, or those named in only ("aggregates,storage"; NULL or empty: all); results go to ctx->result.
 * ERR_CHECK when one is violated, else ERR_ENV when one is blocked or the ledger lacks what it should hold.
 * since: what the counters stood at before the command; NULL for `sim check`, where the run's folder tells. Then it is
 * also ERR_ENV when a check that was asked for by name could not run, or when none ran that proves anything. */
MAY_YIELD enum err checks_run(struct cmd_ctx *ctx, const struct opt_list *only, const char *run_dir,
                              const struct check_baseline *since, struct errinfo *ei) WARN_UNUSED;
/* What the checks tell beside their rows, with nothing in it: a sample as in cmd.h. */
void checks_sample(struct result *r);
#endif
