#ifndef DRIVE_SFTP_TREE_H
#define DRIVE_SFTP_TREE_H
/* Internal to the sftp dialect: whole trees: moving, copying, removing. Rows of its table; api/dialect.h says what each
 * is to do. Layer 2. */
#include "drive/sftp/sftp.h"

MAY_YIELD enum err sftp_op_rename(struct api *a, const char *id, const char *name, struct arena *mem,
                                  struct drive_file *out, struct api_result *r);
MAY_YIELD enum err sftp_op_move(struct api *a, const char *const *ids, size_t n, const char *parent,
                                struct api_result *r);
MAY_YIELD enum err sftp_op_copy(struct api *a, const char *const *ids, size_t n, const char *parent,
                                struct api_job *job, struct api_result *r);
MAY_YIELD enum err sftp_op_remove(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                                  struct api_result *r);
/* A folder with all in it, or a file, by its path; op->reply tells. */
MAY_YIELD enum err sftp_remove_tree(struct sftp_op *op, const char *path);
#endif
