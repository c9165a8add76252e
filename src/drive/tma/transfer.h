#ifndef DRIVE_TMA_TRANSFER_H
#define DRIVE_TMA_TRANSFER_H
/* Internal to the tma dialect: contents, up and down. All are rows of its table; api/dialect.h says what each is to do.
 * Layer 2. */
#include "drive/tma/tma.h"

MAY_YIELD enum err tma_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                              struct api_result *r);
MAY_YIELD enum err tma_upload_bulk(struct api *a, const struct api_upload *u, size_t n, struct arena *mem,
                                   struct drive_file *outs, struct api_result *r);
MAY_YIELD enum err tma_replace(struct api *a, const char *id, const char *name, const char *version,
                               const char *lock_id, const struct content *c, struct arena *mem, struct drive_file *out,
                               struct api_result *r);
MAY_YIELD enum err tma_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                                int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out,
                                size_t version_n, struct api_result *r);
#endif
