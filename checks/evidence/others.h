#ifndef CHECKS_EVIDENCE_OTHERS_H
#define CHECKS_EVIDENCE_OTHERS_H
/* Whether what a run's folder tells can still be held against the server: when the run began and ended, whether the
 * accounts are still the same, and what somebody else has changed since. Layer 3. */
#include "checks/check.h"

/* When the run began, by the database's clock where it is known. */
int64_t check_began_us(const struct check_ctx *c);
/* And when it had ended, likewise; INT64_MAX: judged at its own end, or not known. */
int64_t check_ended_us(const struct check_ctx *c);
/* The id of the first owner, "" when there is none. */
MAY_YIELD enum err check_read_owner(struct cmd_ctx *ctx, struct pg_pool *pg, char *dst, size_t n,
                                    struct errinfo *ei) WARN_UNUSED;
/* Whether the first owner still has that id; ERR_ENV when it is known that it has not. */
MAY_YIELD enum err check_same_owner(struct check_ctx *c, const char *then, struct errinfo *ei) WARN_UNUSED;
/* Whether somebody but the run's apps changed an item since the run began; false without the database. */
MAY_YIELD bool check_changed_by_others(struct check_ctx *c, const char *id);
char *check_others_text(char *dst, size_t n, uint64_t items); /* a clause about so many, "" for none */
#endif
