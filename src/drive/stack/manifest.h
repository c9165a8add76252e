#ifndef DRIVE_STACK_MANIFEST_H
#define DRIVE_STACK_MANIFEST_H
/* What a fixture says of itself: manifest.json beside its two parts. Internal to stack/, and for the tests. Layer 2. */
#include "drive/pack.h"
#include "drive/stack/fixture.h"

#define MANIFEST_FILE "manifest.json"
#define DATABASE_FILE "database.dump"
#define OBJECTS_FILE  "objects.pack"

struct fixture_part {
    uint64_t size;
    char sha256[2 * DIGEST_SHA256_LEN + 1];
};
struct manifest {
    struct fixture_info info;
    int64_t postgres;                       /* major version of the server that was dumped */
    bool own_server;                        /* the stack's reference server used it */
    char schema[2 * DIGEST_SHA256_LEN + 1]; /* digest of tables and indexes */
    char file_key[65], s3_secret[41];       /* the stack's, that its content depends on */
    struct fixture_part database, objects;
};
enum err manifest_text(const struct manifest *m, struct buf *out) WARN_UNUSED;
/* ERR_ENV with a sentence when it is none, of a later format, or not whole. */
enum err manifest_parse(struct manifest *m, struct sv text, struct errinfo *ei) WARN_UNUSED;
enum err manifest_load(struct manifest *m, const char *folder, struct errinfo *ei) WARN_UNUSED;
void manifest_part(struct fixture_part *p, const struct pack_sum *sum);
#endif
