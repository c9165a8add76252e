#ifndef SERVER_META_CALLS_H
#define SERVER_META_CALLS_H
/* The functions of sql/ as typed calls; each is one transaction (meta.h says how it runs and what the rows mean; the
 * head of sql/510_helpers.sql says what each does). A refusal is a row, not an error: ask meta_refusal. A NULL parent
 * or target is the top level. Layer 3. */
#include "server/meta/meta.h"

struct meta_upload { /* one file that has its object */
    const char *parent_id, *name, *mime_type, *path;
    uint64_t size;
    struct wall modified; /* us INT64_MIN: now */
};
struct meta_guard {              /* on what conditions a content may be replaced */
    const char *const *if_match; /* the strong tags of If-Match; NULL: no condition, as for "*" */
    size_t n;                    /* 0: none of them can match */
    const char *lock_id;         /* the lock that the caller believes to hold; NULL: its session decides */
};
#define META_NOW ((struct wall){INT64_MIN})

MAY_YIELD enum err meta_folder_create(struct server *s, const struct meta_who *who, const char *parent,
                                      const char *name, struct arena *mem, struct meta_result *out,
                                      struct errinfo *ei) WARN_UNUSED;
/* The folders names[0]/names[1]/… below parent, made where they are missing. The last row is the deepest. */
MAY_YIELD enum err meta_folder_path(struct server *s, const struct meta_who *who, const char *parent,
                                    const char *const *names, size_t n, struct arena *mem, struct meta_result *out,
                                    struct errinfo *ei) WARN_UNUSED;
/* One row an item, in their order; each is judged by itself. reservation may be NULL; it is used up. */
MAY_YIELD enum err meta_upload_commit(struct server *s, const struct meta_who *who, const struct meta_upload *items,
                                      size_t n, const char *reservation, struct arena *mem, struct meta_result *out,
                                      struct errinfo *ei) WARN_UNUSED;
/* The row's keys are the object that was replaced. */
MAY_YIELD enum err meta_replace_commit(struct server *s, const struct meta_who *who, const char *file_id,
                                       const struct meta_guard *guard, const struct meta_upload *content,
                                       const char *reservation, struct arena *mem, struct meta_result *out,
                                       struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err meta_rename(struct server *s, const struct meta_who *who, const char *id, const char *name,
                               struct arena *mem, struct meta_result *out, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err meta_move(struct server *s, const struct meta_who *who, const char *const *ids, size_t n,
                             const char *target, struct arena *mem, struct meta_result *out,
                             struct errinfo *ei) WARN_UNUSED;
/* mark: "star" or "share". */
MAY_YIELD enum err meta_mark(struct server *s, const struct meta_who *who, const char *const *ids, size_t n,
                             const char *mark, bool on, struct arena *mem, struct meta_result *out,
                             struct errinfo *ei) WARN_UNUSED;
/* max_items 0: no bound. Above it the refusal is TOO_MANY, and a job does it without the bound. */
MAY_YIELD enum err meta_trash(struct server *s, const struct meta_who *who, const char *const *ids, size_t n,
                              int64_t max_items, struct arena *mem, struct meta_result *out,
                              struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err meta_restore(struct server *s, const struct meta_who *who, const char *const *ids, size_t n,
                                int64_t max_items, struct arena *mem, struct meta_result *out,
                                struct errinfo *ei) WARN_UNUSED;
/* What copy_items hold for the job becomes visible; the job is completed with its result. */
MAY_YIELD enum err meta_copy_commit(struct server *s, const struct meta_who *who, const char *job_id, struct arena *mem,
                                    struct meta_result *out, struct errinfo *ei) WARN_UNUSED;

/* Bytes that the account has room for now, beside what is reserved; below 0 when its limit was lowered. */
#define META_NO_LIMIT INT64_MAX
MAY_YIELD enum err meta_room(struct server *s, const struct meta_who *who, int64_t *bytes,
                             struct errinfo *ei) WARN_UNUSED;
/* Would a body be refused? No row: no. Judged without waiting for writes, before the body is read. */
MAY_YIELD enum err meta_upload_check(struct server *s, const struct meta_who *who, const char *parent, uint64_t bytes,
                                     struct arena *mem, struct meta_result *out, struct errinfo *ei) WARN_UNUSED;
/* One row: why the content cannot be replaced, or the file as it stands. */
MAY_YIELD enum err meta_replace_check(struct server *s, const struct meta_who *who, const char *file_id,
                                      const struct meta_guard *guard, uint64_t bytes, struct arena *mem,
                                      struct meta_result *out, struct errinfo *ei) WARN_UNUSED;
#endif
