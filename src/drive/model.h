#ifndef DRIVE_MODEL_H
#define DRIVE_MODEL_H
/* The words of the domain: a file entry, operations, outcomes, causes, permissions, limits. Tables, no behaviour beyond
 * names. Shared by everything above. Layer 2. */
#include "base/clock.h"
#include "base/str.h"
#include "drive/limits.h"

/* operation: symbol, JSON key, text, weight in the default mix (0: not drawn) */
/* clang-format off */
#define DRIVE_OPS(X) \
    X(SIGN_IN, "sign_in", "sign in", 0) \
    X(FULL_PASS, "full_pass", "full pass", 0) \
    X(FIRST_LIST, "first_list", "first list", 0) /* within the first full pass: cold, so kept apart from "list" */ \
    X(LIST, "list", "list", 0) \
    X(CHANGES, "changes", "changes", 0) \
    X(HEARTBEAT, "heartbeat", "heartbeat", 0) \
    X(STREAM, "stream", "stream connect", 0) \
    X(DOWNLOAD, "download", "download", 55) \
    X(SAVE, "save", "save", 26) \
    X(LOCK, "lock", "lock", 0) \
    X(UNLOCK, "unlock", "unlock", 0) \
    X(UPLOAD, "upload", "upload", 7) \
    X(BULK_UPLOAD, "bulk_upload", "bulk upload", 0) \
    X(TRASH, "trash", "trash", 4) \
    X(RENAME, "rename", "rename", 3) \
    X(COPY, "copy", "copy", 2) \
    X(NEW_FOLDER, "new_folder", "new folder", 2) \
    X(MOVE, "move", "move", 1) \
    X(RESTORE, "restore", "restore", 0) \
    X(PURGE, "purge", "delete for good", 0) \
    X(INFO, "info", "info", 0) \
    X(SEARCH, "search", "search", 0) \
    X(RECENT, "recent", "recent", 0) \
    X(STATS, "stats", "stats", 0) \
    X(STORAGE, "storage", "storage use", 0) \
    X(JOB, "job", "job status", 0) \
    X(ACCOUNT, "account", "account set-up", 0) \
    X(BIG_UPLOAD, "big_upload", "big upload", 0) /* these five: injected into a run, kept apart from the apps' own */ \
    X(BIG_DOWNLOAD, "big_download", "big download", 0) \
    X(BULK_COPY, "bulk_copy", "bulk copy", 0) \
    X(BULK_TRASH, "bulk_trash", "bulk trash", 0) \
    X(BULK_PURGE, "bulk_purge", "bulk delete", 0) \
    X(REQUEST, "request", "request", 0) /* of sim http: any server's, so of no kind that we know */ \
    X(DELIVERY, "delivery", "delivery", 0) /* of sim pairs: a write's event at the partner */ \
    X(MESSAGE, "message", "message", 0) /* and until the partner read the same bytes */ \
    X(EVENT, "event", "event", 0) /* no requests: from a change's answer to its event at another app, */ \
    X(EVENT_VISIBLE, "event_visible", "event visible", 0) /* and until that app's folder shows it */
/* clang-format on */
enum drive_op {
#define X(sym, key, text, weight) OP_##sym,
    DRIVE_OPS(X)
#undef X
        OP_COUNT
};
const char *drive_op_key(enum drive_op op);
const char *drive_op_text(enum drive_op op);
double drive_op_weight(enum drive_op op);
/* By its key, or as tables show it, with '_' for a blank or not. */
bool drive_op_parse(const char *key, enum drive_op *out);

/* How a request ended. UNKNOWN: sent, no answer; settled later by reading. OUTAGE: it failed as it had to, in an outage
 * that was ordered; of counters only, the ledger has how it really ended. LOCAL: this machine ran short
 * (base/shortage.h) and it was never sent: not done, and nobody's failure. */
/* clang-format off */
#define DRIVE_OUTCOMES(X) \
    X(OK, "ok") \
    X(CONFLICT, "conflict") \
    X(REFUSED, "refused") \
    X(THROTTLED, "throttled") \
    X(TIMEOUT, "timeout") \
    X(TRANSPORT, "transport") \
    X(SERVER, "server_error") \
    X(CLIENT, "client_error") \
    X(WRONG, "wrong_content") \
    X(UNKNOWN, "unknown") \
    X(UNFINISHED, "unfinished") \
    X(OUTAGE, "during_outage") \
    X(LOCAL, "local")
/* clang-format on */
enum outcome {
#define X(sym, key) OUT_##sym,
    DRIVE_OUTCOMES(X)
#undef X
        OUT_COUNT
};
const char *outcome_key(enum outcome o);
/* Conflicts and throttling are the server working as designed, an outage was ordered, a local shortage is our own; the
 * rest but OK is failed. */
bool outcome_is_failure(enum outcome o);
bool outcome_is_no(enum outcome o); /* the server answered, and said no */
/* From an HTTP status: 2xx/304 OK; 409 412 423 CONFLICT; 403 413 507 REFUSED; 429 THROTTLED; 408 TIMEOUT; 5xx SERVER;
 * else CLIENT. */
enum outcome outcome_of_status(int status);

/* Why a request was made. */
/* clang-format off */
#define DRIVE_CAUSES(X) \
    X(FIRST_PASS, "first_pass") \
    X(RELIST, "relist") \
    X(MINUTE_CHECK, "minute_check") \
    X(ACTION, "action") \
    X(HEARTBEAT, "heartbeat") \
    X(RECONNECT, "reconnect") \
    X(SETUP, "setup") /* signing in, looking around, making room and clearing up */ \
    X(WATCH, "watch") /* the server's own /metrics, beside a load */ \
    X(CHECK, "check") /* the checks that follow */
/* clang-format on */
enum cause {
#define X(sym, key) CAUSE_##sym,
    DRIVE_CAUSES(X)
#undef X
        CAUSE_COUNT
};
const char *cause_key(enum cause c);

/* Permissions of a sub-user, as bits and as wire names ("files.download"). */
/* clang-format off */
#define DRIVE_PERMISSIONS(X) \
    X(DOWNLOAD, "files.download") \
    X(UPLOAD, "files.upload") \
    X(EDIT, "files.edit") \
    X(SHARE, "files.share") \
    X(DELETE, "files.delete") \
    X(TRASH, "files.trash")
/* clang-format on */
enum perm_bit {
#define X(sym, name) PERM_BIT_##sym,
    DRIVE_PERMISSIONS(X)
#undef X
        PERM_COUNT
};
#define PERM(sym) (1u << PERM_BIT_##sym)
#define PERM_ALL  ((1u << PERM_COUNT) - 1)
const char *perm_name(enum perm_bit bit);
bool perm_parse(const char *name, unsigned *mask);

/* Sizes and counts come from servers and rows, which may say anything: sums and differences that no int64_t holds stay
 * at its end. */
int64_t drive_sum(int64_t a, int64_t b);
int64_t drive_difference(int64_t a, int64_t b);

/* One entry of a listing. Strings live in the arena that the listing was read into. */
struct drive_file {
    const char *id, *name, *parent_id; /* parent_id NULL: root or not told */
    const char *version;               /* NULL: the server has none */
    const char *mime_type;
    int64_t size;         /* -1: unknown or a folder */
    struct wall modified; /* us 0: not told */
    bool folder, starred, shared;
};
struct drive_listing {
    struct drive_file *items;
    size_t n;
};
#endif
