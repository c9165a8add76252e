#ifndef DRIVE_TMA_READ_H
#define DRIVE_TMA_READ_H
/* Internal to the tma dialect: what only reads. All are rows of its table; api/dialect.h says what each is to do.
 * Layer 2. */
#include "drive/tma/tma.h"

MAY_YIELD enum err tma_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out,
                            struct api_result *r);
MAY_YIELD enum err tma_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out,
                            struct api_totals *totals, struct api_result *r);
MAY_YIELD enum err tma_search(struct api *a, const char *q, unsigned limit, struct arena *mem,
                              struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err tma_recent(struct api *a, unsigned limit, struct arena *mem, struct drive_listing *out,
                              struct api_result *r);
MAY_YIELD enum err tma_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err tma_stats(struct api *a, struct api_totals *out, struct api_result *r);
MAY_YIELD enum err tma_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out,
                               struct api_result *r);
MAY_YIELD enum err tma_job_poll(struct api *a, struct api_job *job, struct arena *mem, struct api_result *r);
#endif
