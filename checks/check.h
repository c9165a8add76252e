#ifndef CHECKS_CHECK_H
#define CHECKS_CHECK_H
/* The judge: a table of checks, one file each. A check that cannot run says why; it never passes silently. Layer 3. */
#include "drive/cmd.h"
#include "store/blob.h"
#include "store/pg.h"
struct check_ctx {
    struct cmd_ctx *cmd;
    struct pg_pool *pg;              /* NULL: no DATABASE_URL or not reachable; why in pg_why */
    struct errinfo pg_why;
    struct blob *blob;               /* NULL likewise */
    struct errinfo blob_why;
    const char *run_dir;             /* NULL: no ledger */
};
struct check { const char *name; const char *what; MAY_YIELD enum err (*run)(struct check_ctx *c, struct check_result *r); };
/* Helpers for the files: add a detail line (kept up to 50, counted beyond), or say that it could not run. */
void check_detail(struct check_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_not_run(struct check_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Runs all rows, or those named in only ("aggregates,storage"); results go to ctx->result. ERR_CHECK when one is violated, ERR_ENV when one asked for by name
 * could not run. */
MAY_YIELD enum err checks_run(struct cmd_ctx *ctx, const char *only, const char *run_dir, struct errinfo *ei) WARN_UNUSED;
#endif
