#ifndef DRIVE_LEDGER_H
#define DRIVE_LEDGER_H
/* The journal of a run: what each app intended and what it was told. One record an intent (before the request leaves)
 * and one an outcome (after the answer), appended to DIR/ledger.bin through a bounded buffer that goes out when full
 * and at each ledger_flush; the simulator flushes every second, so a killed one loses at most that. Every record
 * carries its length and a checksum, and ledger_close writes how many there are: an end that is missing, torn or
 * damaged is told apart, and all before it stands. Layer 2, one thread. */
#include "drive/model.h"

#define LEDGER_VERSION 2

/* NOTE: something seen, without an intent: what came on an app's event stream (op STREAM: flags says what), an app's
 * view of a folder at the end (op LIST: file_id the folder, size its entries, revision and content_key hashes of their
 * names and of their versions, flags 1 when it was not up to date and knew it). UNANSWERED: a request of any kind that
 * no answer came to: mono_us when it was given up, seq how long it had waited in us, flags why, name the transport's
 * sentence. STOOD_STILL: a writing transaction that the database showed waiting for nothing that is the machine's: seq
 * its age in us, name what it did.
 *
 * The outcome of a download holds the version told, what the content's header says, and in name what was wrong.
 *
 * EVENT: file_id; status: the operation that it tells of, OP_COUNT: none; revision: a hash that tells this change from
 * others, the same for all who hear of it; size: its number in the account's order, 0: not known. UP: size: bytes a
 * second of a reader that is slow on purpose, 0: of any other. RESYNC: told by the server, or by the app itself after a
 * gap that its stream cannot fill. END: closed by the app when all was quiet at the end; DOWN: any other end. */
enum ledger_stream { LEDGER_EVENT, LEDGER_RESYNC, LEDGER_STREAM_UP, LEDGER_STREAM_DOWN, LEDGER_STREAM_END };
enum ledger_silence { LEDGER_TIMED_OUT, LEDGER_NO_CONNECTION, LEDGER_CLOSED, LEDGER_CUT };
enum ledger_kind {
    LEDGER_INTENT = 1,
    LEDGER_OUTCOME = 2,
    LEDGER_NOTE = 3,
    LEDGER_UNANSWERED = 4,
    LEDGER_STOOD_STILL = 5
};

/* In memory. In the file fields that are 0 or "" take no room: an event takes some 50 bytes, a save 150 in both. */
struct ledger_record {
    uint8_t kind, op, outcome, flags;
    uint16_t status;     /* HTTP, 0: none */
    uint32_t app, login; /* login: index into "logins" of run.json */
    uint64_t seq;        /* of the intent; the outcome names the same */
    int64_t mono_us, wall_us;
    /* An outcome's texts are "" where it has nothing else to tell than its intent. */
    char file_id[DRIVE_ID_MAX + 1];   /* "" when not known yet; of a copy: the source's, in the outcome the copy's */
    char parent_id[DRIVE_ID_MAX + 1]; /* where the app saw it; in the outcome of a rename where it was by then */
    char other_id[DRIVE_ID_MAX + 1];  /* new parent (move, copy), lock id (save, lock, unlock) */
    char version_before[DRIVE_ID_MAX + 1], version_after[DRIVE_ID_MAX + 1];
    /* Of a request about several items (trash) revision is the number of the first item's record, alike in all. */
    uint64_t content_key, revision, parent_revision, size;
    /* "" unless the operation names something or writes content; in the outcome what it got: a copy's always, others'
     * where it is not the one asked for. Older ledgers have none for moves and copies. */
    char name[DRIVE_NAME_MAX + 1];
    char old_name[DRIVE_NAME_MAX + 1]; /* rename: what the app saw before */
};

/* What an entry of a listing counts as in the hashes of a view, which are added up, in any order: by its name; by its
 * version, of which hash_str is given, 0 when there is none. */
uint64_t ledger_entry_hash(const char *id, const char *name);
uint64_t ledger_version_hash(const char *id, uint64_t version);

struct ledger;
/* With its parents; one that is there is fine. */
enum err ledger_make_folder(const char *dir, struct errinfo *ei) WARN_UNUSED;
/* Makes DIR and its parents; ERR_IO when it already holds a ledger or cannot be written, ERR_FULL on a full disk. */
enum err ledger_create(struct ledger **out, const char *dir, struct errinfo *ei) WARN_UNUSED;
/* Never fails at once: the first write error is kept (ledger_error) and what follows is counted as lost. */
void ledger_append(struct ledger *l, const struct ledger_record *r);
enum err ledger_flush(struct ledger *l, struct errinfo *ei) WARN_UNUSED;
/* The first write error, ERR_OK if none. */
enum err ledger_error(const struct ledger *l, struct errinfo *ei) WARN_UNUSED;
uint64_t ledger_records(const struct ledger *l); /* appended and not lost */
/* Writes the end, flushes and closes; *l becomes NULL also on an error. */
enum err ledger_close(struct ledger **l, struct errinfo *ei) WARN_UNUSED;

/* How a ledger ends. WHOLE: by ledger_close, nothing is missing. ENDLESS: between two records; its writer was killed
 * and what it had not flushed is missing. TORN: within a record. DAMAGED: what stands at `at` is no record, yet records
 * follow, or some are missing in between. */
enum ledger_tail { LEDGER_WHOLE, LEDGER_ENDLESS, LEDGER_TORN, LEDGER_DAMAGED };
struct ledger_end {
    enum ledger_tail tail;
    uint64_t records; /* delivered */
    uint64_t at;      /* byte where they end */
};
/* Reads front to back, up to the first byte that is no record; fn false stops early, and then end tells no more than
 * the count. ERR_ENV when it is no ledger, less than a ledger's head, or of another
 * version. */
enum err ledger_read(const char *dir, bool (*fn)(void *arg, const struct ledger_record *r), void *arg,
                     struct ledger_end *end, struct errinfo *ei) WARN_UNUSED;
#endif
