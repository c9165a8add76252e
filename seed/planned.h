#ifndef SEED_PLANNED_H
#define SEED_PLANNED_H
/* The whole planned tree of one account as arrays: every folder and file with its name, size, content key and time,
 * decided before anything is sent, from the seed alone. What the server has of it stands in struct found, beside it.
 * Pure. Layer 3. */
#include "base/arena.h"
#include "seed/shape.h"

#define PLANNED_NONE UINT32_MAX

struct planned_conf {
    double scale, bytes_scale;
    enum shape_preset preset;
    uint64_t seed;
    unsigned account;  /* 0 is owner@load.test */
    unsigned name_max; /* bytes of a file's name; 0: as they come, up to 255 */
};
struct planned_folder {
    const char *name;
    uint32_t parent; /* an earlier folder, or SHAPE_ROOT */
    uint32_t first_file, n_files;
    uint8_t depth;
    bool hot;
};
struct planned_file {
    const char *name, *ext; /* ext static */
    uint32_t folder;
    uint64_t size, key; /* key: of the content, never 0 */
    int64_t modified_s; /* Unix time */
};
struct planned {
    struct planned_conf conf;
    uint64_t stream_seed; /* of seed and scale */
    char email[64];       /* of the owner: the first part of every path */
    struct arena *mem;
    struct shape_counts counts;
    unsigned depth;
    struct planned_folder *folders;
    struct planned_file *files; /* by folder */
    uint64_t bytes;
    uint32_t *index; /* (parent, name) -> folder, or file with PLANNED_FILE set; open addressing */
    size_t index_cap;
};
#define PLANNED_FILE 0x80000000u

void planned_make(struct planned *t, const struct planned_conf *conf);
void planned_done(struct planned *t);
/* The entry of that name in folder parent (SHAPE_ROOT for the top), PLANNED_NONE when the plan has none. Byte for byte.
 */
uint32_t planned_lookup(const struct planned *t, uint32_t parent, const char *name);
/* owner-3@load.test; user-2@load.test or owner-3-user-2@load.test. dst of 64 bytes. */
void planned_owner_email(char dst[64], unsigned account);
void planned_user_email(char dst[64], unsigned account, unsigned user);

/* What a server was seen to hold of a tree. Zeroed by found_reset, filled by the scan. */
enum found_state { FOUND_NO, FOUND_YES, FOUND_CHANGED }; /* CHANGED: there, with another size or time */
struct found_file {
    uint8_t state;
    char id[64];
    int64_t size, modified_us;
};
/* A file that is not of the plan but has the name that a taken one of it gets: "report (1).pdf". */
struct found_twin {
    char id[64];
    uint32_t file; /* whose twin it may be */
    int64_t size, modified_us;
};
struct found {
    struct arena *mem;
    const char **folder_ids; /* NULL: not there */
    struct found_file *files;
    struct found_twin *twins;
    size_t n_twins, cap_twins;
    uint64_t n_folders, n_files, bytes;  /* of the plan */
    uint64_t other_folders, other_files; /* not of the plan */
    uint64_t twice, resized, retimed;    /* a name listed twice; another size; another time */
};
void found_init(struct found *f, const struct planned *t);
void found_reset(struct found *f, const struct planned *t);
void found_done(struct found *f);

/* SHA-256 over the sorted lines of the trees: "path TAB size TAB time" a file, "path TAB folder" a folder. With found,
 * only what is there, with the size and time that the server told; without, what is planned. times false leaves the
 * times out: some servers keep none. dst of 65 bytes. */
void planned_manifest(const struct planned *trees, const struct found *found, size_t n, bool times, char dst[65]);
#endif
