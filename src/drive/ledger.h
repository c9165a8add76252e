#ifndef DRIVE_LEDGER_H
#define DRIVE_LEDGER_H
/* The journal of a run: what each app intended and what it was told, one fixed-size record an intent and one an outcome, appended to DIR/ledger.bin through a bounded buffer
 * that is flushed every second and when full (a killed simulator loses at most that). Every record carries a checksum, so that a torn tail is found and named. Each
 * record is written before the request leaves (INTENT) and after the answer (OUTCOME). Layer 2. */
#include "drive/model.h"
#define LEDGER_VERSION 1
enum ledger_kind { LEDGER_INTENT = 1, LEDGER_OUTCOME = 2, LEDGER_NOTE = 3 };
struct ledger_record {               /* in memory; the file's form is little-endian and packed by ledger.c */
    uint8_t kind, op, outcome, flags;
    uint16_t status;
    uint32_t app, login;
    uint64_t seq;                    /* of the intent; the outcome names the same */
    int64_t mono_us, wall_us;
    char file_id[32];                /* "" when not known yet */
    char parent_id[32];
    char other_id[32];               /* new parent (move, copy), lock id */
    char version_before[24], version_after[24];
    uint64_t content_key, revision, parent_revision, size;
    char name[256];                  /* "" unless the operation names something; stored with its length */
};
struct ledger;
enum err ledger_create(struct ledger **out, const char *dir, struct errinfo *ei) WARN_UNUSED;      /* makes dir; fails when it holds a ledger */
void ledger_append(struct ledger *l, const struct ledger_record *r);    /* an I/O error is kept: ledger_error */
enum err ledger_flush(struct ledger *l, struct errinfo *ei) WARN_UNUSED;
enum err ledger_error(const struct ledger *l, struct errinfo *ei);      /* the first write error (a full disk), ERR_OK if none */
enum err ledger_close(struct ledger **l, struct errinfo *ei) WARN_UNUSED;
/* Reads front to back. *torn is set when the file ends within a record or a checksum fails; records before it were all delivered. */
enum err ledger_read(const char *dir, bool (*fn)(void *arg, const struct ledger_record *r), void *arg, bool *torn, struct errinfo *ei) WARN_UNUSED;
#endif
