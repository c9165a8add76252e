#ifndef DRIVE_API_FILES_H
#define DRIVE_API_FILES_H
/* The calls about files. Results and errors as in session.h; what is read lives in the caller's arena; a folder or
 * parent NULL is the root. Layer 2. */
#include "drive/api/session.h"

/* Follows every page; a listing that is cut, or whose cursor repeats, fails whole. */
MAY_YIELD enum err api_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out,
                            struct api_result *r);
unsigned api_pages(const struct api *a); /* requests of the last api_list; read it before the next yield */
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

MAY_YIELD enum err api_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                                     struct drive_file *out, struct api_result *r);
MAY_YIELD enum err api_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                              struct api_result *r);
/* One request for n files of one parent; outs[i].id NULL where item i failed (the first reason in r when any did, and
 * r->outcome not OK when all did). */
MAY_YIELD enum err api_upload_bulk(struct api *a, const struct api_upload *u, size_t n, struct arena *mem,
                                   struct drive_file *outs, struct api_result *r);
/* version and lock_id may be NULL: then without that condition. */
MAY_YIELD enum err api_replace(struct api *a, const char *id, const char *name, const char *version,
                               const char *lock_id, const struct content *c, struct arena *mem, struct drive_file *out,
                               struct api_result *r);
/* Streams the body, or length bytes of it from offset on (length 0: to the end), into sink: non-zero from it ends the
 * call with WRONG. sink NULL: counted and dropped. version_out may be NULL; "" when the server told no strong one. */
MAY_YIELD enum err api_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                                int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out,
                                size_t version_n, struct api_result *r);

/* ttl_s 0: the server's default. renew_lock_id NULL: a new lock. */
MAY_YIELD enum err api_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id,
                            struct api_lock *out, struct api_result *r);
MAY_YIELD enum err api_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r);
MAY_YIELD enum err api_rename(struct api *a, const char *id, const char *name, struct arena *mem,
                              struct drive_file *out, struct api_result *r);
MAY_YIELD enum err api_move(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_result *r);
MAY_YIELD enum err api_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                            struct api_result *r);
MAY_YIELD enum err api_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                             struct api_result *r);
MAY_YIELD enum err api_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                               struct api_result *r);
MAY_YIELD enum err api_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                             struct api_result *r);
/* Asks once; job->done when it ended. */
MAY_YIELD enum err api_job_poll(struct api *a, struct api_job *job, struct arena *mem, struct api_result *r);
#endif
