#ifndef DRIVE_API_H
#define DRIVE_API_H
/* The client's calls, as a dialect: a table of operations over one signed-in peer, with the capabilities of the server behind it. Scenarios, seeder, ledger and
 * checks call these and never ask which dialect it is. A call returns ERR_OK when the server answered, with the verdict in struct api_result; a
 * transport error otherwise, with result->outcome telling TIMEOUT / TRANSPORT / UNKNOWN (a write sent without an answer). Answers are parsed into the
 * caller's arena. 429 is not waited out here: pace.c does. Layer 2. */
#include "base/arena.h"
#include "drive/model.h"
#include "drive/content.h"
#include "net/httpc.h"

struct blob_conf;

enum api_cap { API_CAP_LOCKS = 1, API_CAP_VERSIONS = 2, API_CAP_FEED = 4, API_CAP_PAGING = 8, API_CAP_SUB_USERS = 16, API_CAP_STORAGE_CONFIG = 32,
               API_CAP_JOBS = 64, API_CAP_BULK = 128, API_CAP_RANGES = 256, API_CAP_EVENTS = 512, API_CAP_TRASH = 1024, API_CAP_RECENT = 2048 };

struct api_result {
    enum outcome outcome;
    int status;                      /* HTTP status, 0: none */
    char reason[200];                /* the server's sentence or the transport's, escaped and cut; "" when ok */
    char code[40];                   /* "LOCKED", "VERSION_CONFLICT", … */
    int64_t retry_after_us;          /* with THROTTLED; -1: not said */
    struct mono sent, done;
    uint64_t bytes_up, bytes_down;
};
struct api_lock { char id[DRIVE_ID_MAX + 1]; char version[DRIVE_ID_MAX + 1]; struct wall expires; };
struct api_job { char id[DRIVE_ID_MAX + 1]; bool done, failed; int64_t count; const char **ids; size_t n_ids; };   /* id "": done at once */
struct api_changes { char cursor[128]; bool resync, has_more; const char **folders; size_t n; };
struct api_totals { int64_t bytes, files, folders; };
struct api_storage { int64_t used, total, free; };   /* total, free -1: unlimited */
struct api_upload { const char *parent_id, *name, *client_id; const struct content *content; struct wall modified; };   /* parent NULL: root */

struct api;                          /* one signed-in app: a peer plus its session */
struct api_conf { const char *base_url, *source_addr, *app_version; struct httpc *http; int64_t timeout_us; };
enum err api_new(struct api **out, const struct api_conf *conf, struct errinfo *ei) WARN_UNUSED;    /* picks the dialect by the URL's scheme */
void api_free(struct api **a);
struct httpc_peer *api_peer(struct api *a);
unsigned api_caps(const struct api *a);              /* what is known so far; api_probe and absent answers clear bits */
void api_set_caps(struct api *a, unsigned caps);
void api_share_session(struct api *to, const struct api *from);   /* same login and token, other connections */

MAY_YIELD enum err api_sign_up(struct api *a, const char *email, const char *password, const char *name, struct api_result *r);
MAY_YIELD enum err api_sign_in(struct api *a, const char *email, const char *password, struct api_result *r);
MAY_YIELD enum err api_sign_out(struct api *a, struct api_result *r);
MAY_YIELD enum err api_signup_toggle(struct api *a, bool enabled, struct api_result *r);
MAY_YIELD enum err api_sub_user_create(struct api *a, const char *email, const char *password, const char *name, unsigned perms, struct api_result *r);
MAY_YIELD enum err api_storage_config(struct api *a, const struct blob_conf *conf, struct api_result *r);
MAY_YIELD enum err api_heartbeat(struct api *a, struct api_result *r);
MAY_YIELD enum err api_storage(struct api *a, struct api_storage *out, struct api_result *r);

MAY_YIELD enum err api_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out, struct api_result *r);   /* follows every page; a cut listing fails whole. api_pages(a): requests of the last call */
unsigned api_pages(const struct api *a);
MAY_YIELD enum err api_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out, struct api_totals *totals, struct api_result *r);
MAY_YIELD enum err api_search(struct api *a, const char *q, unsigned limit, struct arena *mem, struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err api_recent(struct api *a, unsigned limit, struct arena *mem, struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err api_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err api_stats(struct api *a, struct api_totals *out, struct api_result *r);
MAY_YIELD enum err api_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out, struct api_result *r);

MAY_YIELD enum err api_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem, struct drive_file *out, struct api_result *r);
MAY_YIELD enum err api_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out, struct api_result *r);
/* One request for n files of one parent; outs[i].id NULL where item i failed (its reason in r when all failed). */
MAY_YIELD enum err api_upload_bulk(struct api *a, const struct api_upload *u, size_t n, struct arena *mem, struct drive_file *outs, struct api_result *r);
/* version and lock_id may be NULL: then without that condition. */
MAY_YIELD enum err api_replace(struct api *a, const char *id, const char *name, const char *version, const char *lock_id, const struct content *c, struct arena *mem, struct drive_file *out, struct api_result *r);
/* Streams the body into sink (may be NULL: counted and dropped). version_out may be NULL. length 0: whole. */
MAY_YIELD enum err api_download(struct api *a, const char *id, uint64_t offset, uint64_t length, int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out, size_t version_n, struct api_result *r);
MAY_YIELD enum err api_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id, struct api_lock *out, struct api_result *r);
MAY_YIELD enum err api_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r);
MAY_YIELD enum err api_rename(struct api *a, const char *id, const char *name, struct arena *mem, struct drive_file *out, struct api_result *r);
MAY_YIELD enum err api_move(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_result *r);
MAY_YIELD enum err api_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job, struct api_result *r);
MAY_YIELD enum err api_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r);
MAY_YIELD enum err api_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r);
MAY_YIELD enum err api_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r);
MAY_YIELD enum err api_job_poll(struct api *a, struct api_job *job, struct arena *mem, struct api_result *r);

/* Events. cursor "" when the frame had none; folders: parentId and oldParentId (NULL when not told or root). */
struct api_event { const char *type; const char *cursor; const char *file_id, *name, *parent_id, *old_parent_id; bool connected, resync; struct wall at; };
struct api_stream;
struct api_stream_ops {
    void (*on_open)(void *arg, int status);
    void (*on_event)(void *arg, const struct api_event *ev);
    void (*on_close)(void *arg, const struct api_result *r);       /* last call */
};
enum err api_stream_open(struct api_stream **out, struct api *a, const char *last_event_id, const struct api_stream_ops *ops, void *arg, struct errinfo *ei) WARN_UNUSED;
void api_stream_close(struct api_stream **s);
#endif
