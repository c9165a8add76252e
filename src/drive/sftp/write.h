#ifndef DRIVE_SFTP_WRITE_H
#define DRIVE_SFTP_WRITE_H
/* Internal to the sftp dialect: folders, contents and names. Rows of its table; api/dialect.h says what each is to do.
 * Layer 2. */
#include "drive/sftp/sftp.h"

MAY_YIELD enum err sftp_op_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                                         struct drive_file *out, struct api_result *r);
MAY_YIELD enum err sftp_op_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                                  struct api_result *r);
MAY_YIELD enum err sftp_op_replace(struct api *a, const char *id, const char *name, const char *version,
                                   const char *lock_id, const struct content *c, struct arena *mem,
                                   struct drive_file *out, struct api_result *r);
#endif
