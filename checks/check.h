#ifndef CHECKS_CHECK_H
#define CHECKS_CHECK_H
/* The judge: a table of checks, one file each. A check that cannot run says why; it never passes silently. It is "not
 * run" when the server does not offer what it needs, or the user did not say where that is; it is "blocked" when its
 * database, store or ledger was named and cannot be read, which ends the command with status 3. What several checks
 * look at (the tree of rows, the ledger) is loaded once and lives in the context. Layer 3. */
#include "checks/evidence/journal.h"
#include "checks/evidence/tree.h"
#include "drive/cmd.h"
#include "store/blob.h"
#include "store/pg.h"

/* What has to be at rest before anything is judged. */
enum check_rest { CHECK_REST_JOBS, CHECK_REST_RESERVED, CHECK_REST_STREAMS, CHECK_RESTS };

struct api;
struct map;

struct check_ctx {
    struct cmd_ctx *cmd;
    struct pg_pool *pg; /* NULL: no DATABASE_URL or not reachable; why in pg_why */
    struct errinfo pg_why;
    unsigned schema;           /* enum schema_bit */
    int64_t left[CHECK_RESTS]; /* what was still not at rest when the wait was over; -1: nobody tells */
    int64_t waited_us;
    struct tree *tree; /* NULL: could not be read; why in pg_why */
    struct blob *blob; /* NULL likewise */
    struct errinfo blob_why;
    struct work *work;
    struct journal *journal; /* NULL likewise */
    struct errinfo journal_why;
    const char *run_dir; /* NULL: no ledger */
    struct api *owner;   /* told.c's: the session that it used last; NULL: none */
    const char *owner_email;
    struct map *others;                 /* others.c's: what somebody else changed; NULL: not asked yet */
    const struct check_baseline *since; /* of the command that is judged, now or from its run folder; NULL: not known */
    bool offline;                       /* an earlier process made the run */
    bool silent;       /* it left a request of a check without an answer: what would only wait once more is not asked */
    bool calls_broken; /* an outage ended calls of the run: the server may still be putting things in order */
};
struct check {
    const char *name;
    const char *what; /* one line for --help */
    MAY_YIELD void (*run)(struct check_ctx *c, struct check_result *r);
};
extern const struct check check_drain, check_aggregates, check_storage, check_structure, check_objects, check_ledger,
    check_answers, check_reads, check_versions, check_locks, check_changes, check_events, check_convergence,
    check_database, check_server;
/* Waits until the server is at rest, within limits, and fills left. */
MAY_YIELD void check_drain_wait(struct check_ctx *c);

#define CHECK_OWNER_MAX 64
/* What the counters stood at when the command began, so that only its own deadlocks and errors are held against it. */
struct check_baseline {
    bool known_pg, known_server, known_overrun, known_streams, known_clock;
    int64_t deadlocks, server_errors, streams;
    int64_t clock_us;            /* the database's: only by its own clock can rows be told to be younger than the run */
    int64_t wall_us;             /* this machine's at that moment */
    int64_t overrun;             /* bytes that accounts use beyond their limits */
    char owner[CHECK_OWNER_MAX]; /* id of the first owner: other accounts have others; "": not known */
    char history[CHECK_OWNER_MAX]; /* the database's epoch: put back by a fixture it has another one; "": not known */
};
#define CHECK_STREAMS "drive_streams" /* the metric of the event streams open now */
/* Reads the counters; what can't be read stays unknown and then counts from the beginning. */
MAY_YIELD void check_baseline_take(struct cmd_ctx *ctx, struct check_baseline *out);
/* As JSON for the run folder, and back. The caller frees. */
char *check_baseline_json(const struct check_baseline *b);
void check_baseline_read(struct check_baseline *out, const struct json *j);
MAY_YIELD enum err check_read_deadlocks(struct pg_pool *pg, int64_t *out, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err check_read_overrun(struct pg_pool *pg, int64_t *out, struct errinfo *ei) WARN_UNUSED;
/* A figure of the server's /metrics; ERR_NOTFOUND: not offered. */
MAY_YIELD enum err check_read_metric(struct cmd_ctx *ctx, const char *name, int64_t *out,
                                     struct errinfo *ei) WARN_UNUSED;

/* How a check speaks. A detail is one wrong thing: it raises r->wrong; the first 50 are kept. */
void check_detail(struct check_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_not_run(struct check_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_blocked(struct check_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_summary(struct check_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* What a check looks at, loaded before the first one runs. NULL: not to be had; r then says that the check is not run,
 * or blocked, and why. */
const struct tree *check_tree(struct check_ctx *c, struct check_result *r);
const struct tree *check_rows(struct check_ctx *c, struct check_result *r); /* the database's own, not a listed one */
const struct journal *check_journal(struct check_ctx *c, struct check_result *r);
struct pg_pool *check_pg(struct check_ctx *c, struct check_result *r);
struct blob *check_blob(struct check_ctx *c, struct check_result *r);

/* listing.c: the tree by listing every folder of the given logins. */
MAY_YIELD enum err tree_list(struct check_ctx *c, struct tree **out, struct errinfo *ei) WARN_UNUSED;
#endif
