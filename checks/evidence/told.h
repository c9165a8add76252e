#ifndef CHECKS_EVIDENCE_TOLD_H
#define CHECKS_EVIDENCE_TOLD_H
/* What the server tells of itself, held against the rows: for databases that keep no totals of their own. Asked as the
 * accounts' owners, of accounts that drivesim made alone. Layer 3. */
#include "checks/check.h"
#include "drive/api/api.h"

/* A session of this login; NULL when it has none to give. The caller frees. */
MAY_YIELD struct api *told_sign_in(struct check_ctx *c, const char *email);
/* Frees the session that the functions below keep in the context. */
void told_sign_out(struct check_ctx *c);
/* Folder totals as `info` tells them, which leave out what is in the trash. Of many folders only some
 * are asked about, since each is a request. */
MAY_YIELD void told_totals(struct check_ctx *c, const struct tree *t, struct check_result *r);
/* Storage use as the server tells each owner, against the sum of the account's files, trashed ones included. */
MAY_YIELD void told_storage(struct check_ctx *c, const struct tree *t, struct check_result *r);
#endif
