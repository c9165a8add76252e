#ifndef DRIVE_API_FILES_H
#define DRIVE_API_FILES_H
/* The calls that only read the tree. Results and errors as in session.h; what is read lives in the caller's arena; a
 * folder NULL is the root. Layer 2. */
#include "drive/api/session.h"

/* Follows every page; a listing that is cut, or whose cursor repeats, fails whole. */
MAY_YIELD enum err api_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out,
                            struct api_result *r);
/* What an entry is, and what is in it (-1: not told). out and totals may be NULL. */
MAY_YIELD enum err api_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out,
                            struct api_totals *totals, struct api_result *r);
MAY_YIELD enum err api_search(struct api *a, const char *q, unsigned limit, struct arena *mem,
                              struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err api_recent(struct api *a, unsigned limit, struct arena *mem, struct drive_listing *out,
                              struct api_result *r);
MAY_YIELD enum err api_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err api_stats(struct api *a, struct api_totals *out, struct api_result *r);
/* cursor NULL or "": the current one, and no folders. */
MAY_YIELD enum err api_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out,
                               struct api_result *r);
/* Streams the body, or length bytes of it from offset on (length 0: to the end), into sink: non-zero from it ends the
 * call with WRONG. sink NULL: counted and dropped. version_out may be NULL; "" when the server told no strong one. */
MAY_YIELD enum err api_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                                int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out,
                                size_t version_n, struct api_result *r);
#endif
