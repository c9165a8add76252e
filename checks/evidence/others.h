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
/* The epoch of the reference server's database; "" when it has none, or does not tell. */
MAY_YIELD void check_read_history(struct pg_pool *pg, char *dst, size_t n);
/* ERR_ENV when the accounts are not those of then, or were put back to a state before: its ledger says nothing about
 * these. */
MAY_YIELD enum err check_same_accounts(struct check_ctx *c, const struct check_baseline *then,
                                       struct errinfo *ei) WARN_UNUSED;
/* Whether somebody but the run's apps changed an item since the run began. Without the database those alone are known
 * that other runs of this server changed whose folders stand beside the run's; there id may be a spot too. */
MAY_YIELD bool check_changed_by_others(struct check_ctx *c, const char *id);
#define CHECK_SPOT_MAX (DRIVE_ID_MAX + DRIVE_NAME_MAX + 8)
/* "folder/name"; "folder/" for whatever is in it. */
char *check_spot(char dst[CHECK_SPOT_MAX], const char *folder, const char *name);
/* Notes in a row with something wrong that others may have done it, where nobody tells. */
void check_note_blind(const struct check_ctx *c, struct check_result *r);
char *check_others_text(char *dst, size_t n, uint64_t items); /* a clause about so many, "" for none */
#endif
