#ifndef DRIVE_PACK_H
#define DRIVE_PACK_H
/* A folder's files in one file, in the order of their names: the same folder gives the same bytes. Holds folders and
 * plain files with their times, nothing else; unpacking makes nothing outside of its folder, whoever wrote the pack.
 * A pack is a plain file itself, no link to one. These calls block: they are for threads (net/work.h). Layer 2, no
 * state. */
#include "base/digest.h"
#include "base/err.h"
#include <stdatomic.h>

struct pack_sum {
    uint64_t files, bytes;                   /* bytes: of the files packed */
    uint64_t entries;                        /* files and folders */
    uint64_t size;                           /* of the pack itself */
    unsigned char sha256[DIGEST_SHA256_LEN]; /* of the pack */
};
/* Packs what is below folder into file, which must not be there, and syncs it. stop, when given, is looked at on the
 * way: ERR_INTERRUPTED. ERR_FULL when the disk is, ERR_IO, ERR_ENV for what cannot be packed. */
enum err pack_make(const char *folder, const char *file, const atomic_bool *stop, struct pack_sum *out,
                   struct errinfo *ei) WARN_UNUSED;
/* Makes folder, which must not be there, with what the pack holds. *out tells what was read; whether it is what was
 * written is for the caller to compare. ERR_PARSE when it is no pack, does not hold together, or holds more than so
 * many files and folders: twenty bytes of it may be one, which takes a block of the disk. What was made before a
 * failure stays. */
enum err pack_unfold(const char *file, const char *folder, uint64_t entries, const atomic_bool *stop,
                     struct pack_sum *out, struct errinfo *ei) WARN_UNUSED;
/* Size and digest of any file. */
enum err pack_digest(const char *file, const atomic_bool *stop, struct pack_sum *out, struct errinfo *ei) WARN_UNUSED;
#endif
