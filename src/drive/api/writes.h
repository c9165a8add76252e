#ifndef DRIVE_API_WRITES_H
#define DRIVE_API_WRITES_H
/* The calls that change the tree, the locks that guard them, and the jobs that some of them become. Results and errors
 * as in session.h; what is made is told in the caller's arena; a parent NULL is the root. Layer 2. */
#include "drive/api/session.h"

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
