#ifndef DRIVE_STACK_SEEDED_H
#define DRIVE_STACK_SEEDED_H
/* What a stack was seeded with, noted in its folder by `sim seed`, so that a fixture can tell what it holds. Layer 2.
 */
#include "base/json.h"

struct stack_seeded { /* as the command line gave it; the tree as it was found in the end */
    int64_t seed, sub_users, accounts;
    double scale, bytes_scale;
    char preset[16], manifest_sha256[65];
    uint64_t folders, files, bytes;
};
#define STACK_SEEDED_FILE "seeded.json"
/* Notes it for the stack of the current folder. ERR_IO. */
enum err stack_note_seeded(const struct stack_seeded *s, struct errinfo *ei) WARN_UNUSED;
void stack_seeded_write(const struct stack_seeded *s, struct jsonw *w, const char *key);
/* False when v holds no such note: *out is zeros then. */
bool stack_seeded_read(const struct json *v, struct stack_seeded *out);
#endif
