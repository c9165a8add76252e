#ifndef DRIVE_TMA_TMA_H
#define DRIVE_TMA_TMA_H
/* Internal to the tma dialect (TMA Cloud's HTTP API): one request with its verdict, and what its files share. Layer 2.
 */
#include "base/json.h"
#include "drive/api/dialect.h"
#include "drive/wire.h"

#define TMA_PATH_MAX 4096
#define TMA_JSON_MAX (4 * 1024 * 1024)

struct tma_call {
    const char *method;
    struct buf *path; /* encoded, with the query; the call frees it */
    struct buf *json; /* the body; the call frees it; NULL: none */
    const struct http_part *parts;
    size_t n_parts;
    const char *headers[4];  /* NULL-terminated */
    uint64_t transfer_bytes; /* of a body either way: more time is allowed */
    bool write;              /* sent without an answer is UNKNOWN */
    enum api_cap cap;        /* the capability that this call is; 0: always there */
    bool bare;               /* names no resource: any 404 means that the call is absent */
    int (*sink)(void *arg, const char *p, size_t n);
    void *sink_arg;
};
/* Performs it and fills *r. ERR_OK when an answer came; resp is then the caller's to http_resp_done, as after an error.
 * A call whose capability is gone is not sent: ERR_OK with API_CODE_ABSENT. */
MAY_YIELD enum err tma_call(struct api *a, const struct tma_call *c, struct http_resp *resp, struct api_result *r);
/* The same for a JSON answer: *out is set on 2xx alone (json_free it), NULL else. A 2xx that is no JSON is ERR_PARSE.
 */
MAY_YIELD enum err tma_call_json(struct api *a, const struct tma_call *c, struct json **out, struct api_result *r);
bool tma_is_absent(const struct api_result *r);

/* "/api/files/" id "/lock": any of them may be NULL; id is encoded. */
void tma_path(struct buf *path, const char *before, const char *id, const char *after);
void tma_query(struct buf *path, const char *name, const char *value); /* value NULL: nothing */
void tma_query_u(struct buf *path, const char *name, uint64_t value);

extern const struct api_dialect api_dialect_tma;

/* The rows of the dialect, by file: tma/session.c, tma/read.c, tma/write.c, tma/transfer.c, tma/events.c. */
MAY_YIELD enum err tma_probe(struct api *a, struct api_result *r);
MAY_YIELD enum err tma_sign_up(struct api *a, const char *email, const char *password, const char *name,
                               struct api_result *r);
MAY_YIELD enum err tma_sign_in(struct api *a, const char *email, const char *password, struct api_result *r);
MAY_YIELD enum err tma_sign_out(struct api *a, struct api_result *r);
MAY_YIELD enum err tma_prove_session(struct api *a, const char *email, struct api_result *r);
MAY_YIELD enum err tma_signup_status(struct api *a, bool *enabled, struct api_result *r);
MAY_YIELD enum err tma_signup_toggle(struct api *a, bool enabled, struct api_result *r);
MAY_YIELD enum err tma_sub_user_create(struct api *a, const char *email, const char *password, const char *name,
                                       unsigned perms, struct api_result *r);
MAY_YIELD enum err tma_sub_users(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r);
MAY_YIELD enum err tma_storage_config(struct api *a, const struct blob_conf *conf, struct api_result *r);
MAY_YIELD enum err tma_heartbeat(struct api *a, struct api_result *r);
MAY_YIELD enum err tma_storage(struct api *a, struct api_storage *out, struct api_result *r);

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

MAY_YIELD enum err tma_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                              struct api_result *r);
MAY_YIELD enum err tma_upload_bulk(struct api *a, const struct api_upload *u, size_t n, struct arena *mem,
                                   struct drive_file *outs, struct api_result *r);
MAY_YIELD enum err tma_replace(struct api *a, const char *id, const char *name, const char *version,
                               const char *lock_id, const struct content *c, struct arena *mem, struct drive_file *out,
                               struct api_result *r);
MAY_YIELD enum err tma_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                                int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out,
                                size_t version_n, struct api_result *r);

enum err tma_stream_open(struct api_stream **out, struct api *a, const char *last_event_id,
                         const struct api_stream_ops *ops, void *arg, struct errinfo *ei) WARN_UNUSED;
void tma_stream_close(struct api_stream **s);
#endif
