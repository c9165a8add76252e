#ifndef DRIVE_STACK_MANIFEST_H
#define DRIVE_STACK_MANIFEST_H
/* What a fixture says of itself: manifest.json beside its two parts. Internal to stack/, and for the tests. Layer 2. */
#include "base/arena.h"
#include "drive/pack.h"
#include "drive/stack/fixture.h"

#define MANIFEST_FILE "manifest.json"
#define DATABASE_FILE "database.dump"
#define OBJECTS_FILE  "objects.pack"
#define MANIFEST_MAX  (1u << 20)

struct fixture_part {
    uint64_t size;
    char sha256[2 * DIGEST_SHA256_LEN + 1];
};
/* A table's rows: so many bytes of DATABASE_FILE, in the tables' order, as COPY's text. What is named here is compared
 * with the catalog of the database that it is loaded into, and reaches no statement. */
struct manifest_table {
    const char *schema, *name;
    const char **columns; /* "size bigint", in the order of the text */
    size_t n_columns;
    uint64_t rows, bytes;
};
struct manifest_sequence {
    const char *schema, *name;
    int64_t last;
    bool called;
};
struct manifest {
    struct fixture_info info;
    int64_t postgres;                       /* major version of the server that was dumped */
    bool own_server;                        /* the stack's reference server used it */
    char schema[2 * DIGEST_SHA256_LEN + 1]; /* digest of tables and indexes */
    char file_key[65], s3_secret[41];       /* the stack's, that its content depends on */
    struct fixture_part database, objects;
    uint64_t entries; /* files and folders in the pack of objects */
    struct arena *mem;
    struct manifest_table *tables;
    struct manifest_sequence *sequences;
    size_t n_tables, n_sequences;
};
void manifest_done(struct manifest *m);
enum err manifest_text(const struct manifest *m, struct buf *out) WARN_UNUSED;
/* ERR_ENV with a sentence when it is none, of another format, or not whole. */
enum err manifest_parse(struct manifest *m, struct sv text, struct errinfo *ei) WARN_UNUSED;
enum err manifest_load(struct manifest *m, const char *folder, struct errinfo *ei) WARN_UNUSED;
void manifest_part(struct fixture_part *p, const struct pack_sum *sum);
#endif
