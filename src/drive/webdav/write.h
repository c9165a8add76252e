#ifndef DRIVE_WEBDAV_WRITE_H
#define DRIVE_WEBDAV_WRITE_H
/* Internal to the webdav dialect: what changes the tree (webdav/write.c), and saving (webdav/save.c). All are rows of
 * its table; api/dialect.h says what each is to do. Layer 2. */
#include "drive/webdav/webdav.h"

MAY_YIELD enum err webdav_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                                        struct drive_file *out, struct api_result *r);
MAY_YIELD enum err webdav_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                                 struct api_result *r);
MAY_YIELD enum err webdav_replace(struct api *a, const char *id, const char *name, const char *version,
                                  const char *lock_id, const struct content *c, struct arena *mem,
                                  struct drive_file *out, struct api_result *r);
MAY_YIELD enum err webdav_rename(struct api *a, const char *id, const char *name, struct arena *mem,
                                 struct drive_file *out, struct api_result *r);
MAY_YIELD enum err webdav_move(struct api *a, const char *const *ids, size_t n, const char *parent,
                               struct api_result *r);
MAY_YIELD enum err webdav_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                               struct api_result *r);
MAY_YIELD enum err webdav_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                                struct api_result *r);
#endif
