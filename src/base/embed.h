#ifndef BASE_EMBED_H
#define BASE_EMBED_H
/* Files that the Makefile (EMBED_<layer>) puts into the binary. Layer 0. */
#include <stddef.h>
#include <stdint.h>

struct embed_file {
    const char *name; /* without folders */
    const char *data; /* NUL-terminated, the NUL not counted */
    uint64_t size;
};
/* Sorted by name; each table ends with a row whose name is NULL. */
extern const struct embed_file embed_drive[], embed_server[];
#endif
