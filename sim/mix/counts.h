#ifndef SIM_MIX_COUNTS_H
#define SIM_MIX_COUNTS_H
/* How often each action stands in an audit log, and the mix that follows from it. Nobody's name and no id gets in here:
 * a log is counted where it lies, by the query of query.h, or while its export is read. Layer 3. */
#include "base/buf.h"
#include "base/str.h"
#include "drive/model.h"
#include <stdio.h>

struct action_count {
    char action[64];  /* of the log, control characters shown as \xNN */
    enum drive_op op; /* OP_COUNT: an app does nothing of the kind */
    uint64_t n;
};
struct mix_counts {
    struct action_count *rows;
    size_t n, cap;
    uint64_t sum;                             /* of all that was added */
    uint64_t failed;                          /* lines of what did not succeed: not counted */
    uint64_t users, user_hours, busiest_hour; /* of an app's actions; 0: not told. busiest_hour: actions in it */
};
/* A name that the query gives to a figure that is no action's. */
#define COUNT_USERS        "total.users"
#define COUNT_USER_HOURS   "total.user_hours"
#define COUNT_BUSIEST_HOUR "total.busiest_hour"

void mix_counts_done(struct mix_counts *c);
/* The operation that an app answers to this action of the log with; OP_COUNT when there is none. */
enum drive_op mix_counts_op(struct sv action);
/* Appends what an app can do of a log, as names in SQL: 'file.copy', 'file.delete' … */
enum err mix_counts_actions(struct buf *out) WARN_UNUSED;
/* ERR_LIMIT when there are more than a thousand different actions, or 10^15 in all: it is no audit log then. */
enum err mix_counts_add(struct mix_counts *c, struct sv action, uint64_t n, struct errinfo *ei) WARN_UNUSED;
/* Reads CSV (also with ';', tab or '|' between the fields, as psql prints a table): lines "action,count", or any
 * columns under a header that names `action` and perhaps `count`, `actions` or `n` and `status`; without a count a line
 * is one action, with a status only "success" counts. name stands in messages. ERR_USAGE with the line's number. */
enum err mix_counts_read(struct mix_counts *c, FILE *f, const char *name, struct errinfo *ei) WARN_UNUSED;
uint64_t mix_counts_total(const struct mix_counts *c, bool of_apps); /* of_apps false: of the others */
/* Sorts, and appends a file for --mix; what else is known stands in it as comments. from: where the counts come from.
 * ERR_USAGE when no action is one of an app's. */
enum err mix_counts_write(struct mix_counts *c, const char *from, struct buf *out, struct errinfo *ei) WARN_UNUSED;
#endif
