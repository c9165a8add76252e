#ifndef DRIVE_SFTP_READ_H
#define DRIVE_SFTP_READ_H
/* Internal to the sftp dialect: what only reads. Rows of its table; api/dialect.h says what each is to do. Layer 2. */
#include "drive/sftp/sftp.h"

MAY_YIELD enum err sftp_op_list(struct api *a, const char *id, struct arena *mem, struct drive_listing *out,
                                struct api_result *r);
MAY_YIELD enum err sftp_op_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out,
                                struct api_totals *totals, struct api_result *r);
MAY_YIELD enum err sftp_op_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                                    int (*sink)(void *, const char *, size_t), void *arg, char *version, size_t n,
                                    struct api_result *r);
MAY_YIELD enum err sftp_op_storage(struct api *a, struct api_storage *out, struct api_result *r);
#endif
