#ifndef DRIVE_SCHEMA_H
#define DRIVE_SCHEMA_H
/* Facts about stored data that the server and the checks must agree on, written down once: the form of a sealed object
 * and which of the documented tables and columns a database has. Pure, except schema_probe. Layer 2.
 *
 * A sealed object is a 32-byte header, then the content in segments of 64 KiB, each followed by its 16-byte GCM tag;
 * an empty file is the header and one empty segment's tag, so that its emptiness is authenticated too. */
#include "store/pg.h"

#define SEAL_HEADER_LEN  32
#define SEAL_SEGMENT_LEN 65536
#define SEAL_TAG_LEN     16

uint64_t schema_sealed_size(uint64_t content_size);

enum schema_bit {
    SCHEMA_AGGREGATES = 1,   /* files.aggregate_* */
    SCHEMA_STORAGE_USED = 2, /* users.storage_used, storage_reserved */
    SCHEMA_RESERVATIONS = 4, /* storage_reservations */
    SCHEMA_RECONCILE = 8,    /* reconcile_folder_aggregates() */
    SCHEMA_SUB_USERS = 16,   /* users.parent_user_id */
    SCHEMA_VERSION = 32,     /* files.version */
    SCHEMA_JOBS = 64,        /* jobs.status, kind, done */
    SCHEMA_LOCKS = 128       /* locks.lock_id, file_id, holder_name, expires_at */
};
/* Which of these the database has, as a mask. ERR_DB when there is no `files` table at all: not a drive's database. */
MAY_YIELD enum err schema_probe(struct pg *c, unsigned *mask, struct errinfo *ei) WARN_UNUSED;
#endif
