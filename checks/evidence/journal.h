#ifndef CHECKS_EVIDENCE_JOURNAL_H
#define CHECKS_EVIDENCE_JOURNAL_H
/* The ledger of a run in memory, read once for all checks that judge by it: one struct an operation, what was intended
 * and what was told put together, and the notes beside them. About 200 bytes an operation and 60 a note: every string
 * is kept once, so equal ones of one journal are the same pointer. Layer 3. */
#include "base/json.h"
#include "drive/ledger.h"

struct journal_op {
    uint64_t seq;
    /* "" when not told. name: what it is called afterwards; old_name: before, or the source, when that was told. */
    const char *file_id, *parent_id, *other_id, *version_before, *version_after, *name, *old_name;
    const char *source_id; /* copy: what was copied; file_id is then the copy, "" when the server did not name it */
    int64_t sent_us,
        told_us;     /* the run's clock; told INT64_MAX: no answer that settles it, it may be done even later */
    int64_t wall_us; /* of the request */
    uint64_t content_key, revision, parent_revision, size;
    uint32_t app, login;
    uint8_t op;           /* enum drive_op */
    enum outcome outcome; /* UNKNOWN: no answer */
};
struct journal_note {
    const char *file_id;
    int64_t at_us, wall_us;
    uint64_t key, versions, size; /* as the note's maker means them: ledger.h */
    uint16_t status;
    uint32_t app, login;
    uint8_t op, flags;
};
/* A file's content as an app read it. */
struct journal_read {
    const char *file_id, *listed, *version,
        *why; /* version: told with the bytes; why: "" or what was wrong with them */
    int64_t sent_us, told_us, wall_us;
    uint64_t key, revision, parent_revision, size; /* of its header; revision 0: it has none */
    uint32_t app, login;
    enum outcome outcome; /* OK or WRONG */
};
/* What should not have happened: a request without an answer, a transaction that stood still. */
struct journal_trouble {
    const char *file_id, *why;
    int64_t from_us, to_us, wall_us; /* wall: of its end */
    uint32_t app, login;
    uint8_t kind, op, how; /* enum ledger_kind, drive_op, ledger_silence */
};
struct journal {
    struct journal_op *ops; /* in the order of their requests: what changes something, locks */
    size_t n;
    struct journal_note *notes;
    size_t n_notes;
    struct journal_read *reads; /* in the order of their ends, as are the troubles */
    size_t n_reads;
    struct journal_trouble *troubles;
    size_t n_troubles;
    const char **emails;  /* by login; NULL: not told */
    uint32_t *account_of; /* by login; all 0 when the run's folder does not tell */
    size_t n_logins;
    uint32_t n_apps; /* highest number + 1 */
    struct ledger_end end;
    bool finished;    /* the run itself says that it ended and wrote its ledger's end */
    bool foreign;     /* the tree's files were none of ours: their content does not prove itself */
    struct json *run; /* run.json */
    struct arena *mem;
};

enum err journal_read(const char *run_dir, struct journal **out, struct errinfo *ei) WARN_UNUSED;
void journal_free(struct journal **j);
uint32_t journal_account(const struct journal *j, uint32_t login);
/* Nothing that the run did is missing: only then does the end of the records tell what came last. */
static inline bool journal_whole(const struct journal *j)
{
    return j->end.tail == LEDGER_WHOLE;
}
/* NULL, or what of the ledger is lost that should be there; a simulator that was killed lost nothing but its last
 * moments. */
const char *journal_damage(const struct journal *j);
/* Acknowledged; or perhaps done: sent, and nobody knows. */
static inline bool journal_acked(const struct journal_op *o)
{
    return o->outcome == OUT_OK;
}
static inline bool journal_maybe(const struct journal_op *o)
{
    return o->outcome == OUT_OK || o->outcome == OUT_UNKNOWN || o->outcome == OUT_TIMEOUT ||
           o->outcome == OUT_UNFINISHED || o->outcome == OUT_TRANSPORT || o->outcome == OUT_SERVER;
}
/* "11:02:07.123Z" of the wall clock, into dst[32]. */
char *journal_time(char dst[32], int64_t wall_us);
#endif
