#ifndef SERVER_FAULTS_H
#define SERVER_FAULTS_H
/* Bugs that can be planted: `sim serve --fault NAME[=probability]`, so that the judge can be judged. Each is one hook
 * where a real bug of its kind would sit; without the option no hook does anything. Those of SQL ask drive_fault() in
 * sql/505_faults.sql, which reads what faults_database_url gave the connections. Layer 3; the loop's thread. */
#include "base/clock.h"
#include "base/err.h"
#include "base/opt.h"
#include "base/rng.h"

#include <stdbool.h>

/* clang-format off */
#define SERVER_FAULTS(X) \
    X(LOST_UPDATE, "lost-update", "a save is taken whatever version it was made from") \
    X(DOUBLE_LOCK, "double-lock", "an edit lock is granted although another one holds the file") \
    X(LOCK_IGNORED, "lock-ignored", "a save is taken although another's lock holds the file") \
    X(LOST_UPLOAD, "lost-upload", "an upload is acknowledged, then its transaction is rolled back") \
    X(TRUNCATED_OBJECT, "truncated-object", "the last bytes of a stored body are missing") \
    X(ORPHAN_OBJECT, "orphan-object", "the object of a replaced content is never deleted") \
    X(EVENT_DROPPED, "event-dropped", "a committed change is not published") \
    X(EVENT_LATE, "event-late", "a committed change is published 8 s later") \
    X(STALE_LISTING, "stale-listing", "a listing leaves out files of the last 10 s") \
    X(FEED_GAP, "feed-gap", "the change feed leaves out the first folder it has to name") \
    X(AGGREGATE_DRIFT, "aggregate-drift", "a change is not added to the totals of the folders above it") \
    X(STORAGE_DRIFT, "storage-drift", "a change of size is not added to the storage use") \
    X(QUOTA_OVERRUN, "quota-overrun", "the storage limit is not looked at") \
    X(COPY_PARTIAL, "copy-partial", "a copy is called complete although a body was not copied") \
    X(TRASH_LEAK, "trash-leak", "an acknowledged move to the trash leaves the item where it was") \
    X(CORRUPT_DOWNLOAD, "corrupt-download", "one bit of a download is flipped") \
    X(DUPLICATE_ON_RETRY, "duplicate-on-retry", "a copy is queued twice, as if its request had been repeated") \
    X(DROPPED_413, "dropped-413", "the connection is closed in place of the answer 413") \
    X(SLOW_COMMIT, "slow-commit", "a commit takes 1 s longer, holding its locks") \
    X(DEADLOCK, "deadlock", "an edit lock takes rows in the order opposite to all other writes") \
    X(HANG, "hang", "a request for or with file content is never answered")
/* clang-format on */
enum fault {
#define X(sym, name, text) FAULT_##sym,
    SERVER_FAULTS(X)
#undef X
        FAULT_COUNT
};

struct faults {
    uint32_t set; /* bit: enum fault */
    double p[FAULT_COUNT];
    uint64_t hits[FAULT_COUNT]; /* of the hooks in C */
    struct rng rng;
};

/* Lists them all if one of the arguments is "help"; true: that was asked for. */
bool faults_help(const struct opt_list *args, FILE *out);
/* ERR_USAGE with the names when one is unknown, or a probability is none. */
enum err faults_parse(struct faults *out, const struct opt_list *args, struct errinfo *ei) WARN_UNUSED;
/* Says aloud on stderr what is planted; at the end, how often it struck. */
void faults_announce(const struct faults *f);
void faults_sum_up(const struct faults *f);
/* The URL whose connections know the faults; the caller frees it. NULL: none is set, the URL does as it is. */
char *faults_database_url(const struct faults *f, const char *url);

bool faults_draw(struct faults *f, enum fault which);
static inline bool faults_strike(struct faults *f, enum fault which)
{
    return (f->set >> which & 1) && faults_draw(f, which);
}
/* In the server: struct server *. */
#define fault_hit(s, which) faults_strike(&(s)->faults, which)
#endif
