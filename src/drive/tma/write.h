#ifndef DRIVE_TMA_WRITE_H
#define DRIVE_TMA_WRITE_H
/* Internal to the tma dialect: what changes the tree. All are rows of its table; api/dialect.h says what each is to do.
 * Layer 2. */
#include "drive/tma/tma.h"

MAY_YIELD enum err tma_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                                     struct drive_file *out, struct api_result *r);
MAY_YIELD enum err tma_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id,
                            struct api_lock *out, struct api_result *r);
MAY_YIELD enum err tma_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r);
MAY_YIELD enum err tma_rename(struct api *a, const char *id, const char *name, struct arena *mem,
                              struct drive_file *out, struct api_result *r);
MAY_YIELD enum err tma_move(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_result *r);
MAY_YIELD enum err tma_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                            struct api_result *r);
MAY_YIELD enum err tma_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                             struct api_result *r);
MAY_YIELD enum err tma_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                               struct api_result *r);
MAY_YIELD enum err tma_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                             struct api_result *r);
#endif
