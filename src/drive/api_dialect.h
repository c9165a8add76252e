#ifndef DRIVE_API_DIALECT_H
#define DRIVE_API_DIALECT_H
/* Internal to the client: what a dialect is. A dialect is one const table; an operation it lacks is NULL and answered
 * by api.c as absent. Adding a dialect: its files, and one row of the table of schemes in api.c. Layer 2. */
#include "drive/api.h"
#include "net/httpc.h"

struct api_dialect {
    unsigned caps; /* what it can do at best */
    MAY_YIELD enum err (*probe)(struct api *, struct api_result *);
    MAY_YIELD enum err (*sign_up)(struct api *, const char *, const char *, const char *, struct api_result *);
    MAY_YIELD enum err (*sign_in)(struct api *, const char *, const char *, struct api_result *);
    MAY_YIELD enum err (*sign_out)(struct api *, struct api_result *);
    MAY_YIELD enum err (*signup_status)(struct api *, bool *, struct api_result *);
    MAY_YIELD enum err (*signup_toggle)(struct api *, bool, struct api_result *);
    MAY_YIELD enum err (*sub_user_create)(struct api *, const char *, const char *, const char *, unsigned,
                                          struct api_result *);
    MAY_YIELD enum err (*sub_users)(struct api *, struct arena *, struct api_users *, struct api_result *);
    MAY_YIELD enum err (*storage_config)(struct api *, const struct blob_conf *, struct api_result *);
    MAY_YIELD enum err (*heartbeat)(struct api *, struct api_result *);
    MAY_YIELD enum err (*storage)(struct api *, struct api_storage *, struct api_result *);
    MAY_YIELD enum err (*list)(struct api *, const char *, struct arena *, struct drive_listing *, struct api_result *);
    MAY_YIELD enum err (*info)(struct api *, const char *, struct arena *, struct drive_file *, struct api_totals *,
                               struct api_result *);
    MAY_YIELD enum err (*search)(struct api *, const char *, unsigned, struct arena *, struct drive_listing *,
                                 struct api_result *);
    MAY_YIELD enum err (*recent)(struct api *, unsigned, struct arena *, struct drive_listing *, struct api_result *);
    MAY_YIELD enum err (*trash_list)(struct api *, struct arena *, struct drive_listing *, struct api_result *);
    MAY_YIELD enum err (*stats)(struct api *, struct api_totals *, struct api_result *);
    MAY_YIELD enum err (*changes)(struct api *, const char *, struct arena *, struct api_changes *,
                                  struct api_result *);
    MAY_YIELD enum err (*folder_create)(struct api *, const char *, const char *, struct arena *, struct drive_file *,
                                        struct api_result *);
    MAY_YIELD enum err (*upload)(struct api *, const struct api_upload *, struct arena *, struct drive_file *,
                                 struct api_result *);
    MAY_YIELD enum err (*upload_bulk)(struct api *, const struct api_upload *, size_t, struct arena *,
                                      struct drive_file *, struct api_result *);
    MAY_YIELD enum err (*replace)(struct api *, const char *, const char *, const char *, const char *,
                                  const struct content *, struct arena *, struct drive_file *, struct api_result *);
    MAY_YIELD enum err (*download)(struct api *, const char *, uint64_t, uint64_t,
                                   int (*)(void *, const char *, size_t), void *, char *, size_t, struct api_result *);
    MAY_YIELD enum err (*lock)(struct api *, const char *, unsigned, const char *, struct api_lock *,
                               struct api_result *);
    MAY_YIELD enum err (*unlock)(struct api *, const char *, const char *, struct api_result *);
    MAY_YIELD enum err (*rename)(struct api *, const char *, const char *, struct arena *, struct drive_file *,
                                 struct api_result *);
    MAY_YIELD enum err (*move)(struct api *, const char *const *, size_t, const char *, struct api_result *);
    MAY_YIELD enum err (*copy)(struct api *, const char *const *, size_t, const char *, struct api_job *,
                               struct api_result *);
    MAY_YIELD enum err (*trash)(struct api *, const char *const *, size_t, struct api_job *, struct api_result *);
    MAY_YIELD enum err (*restore)(struct api *, const char *const *, size_t, struct api_job *, struct api_result *);
    MAY_YIELD enum err (*purge)(struct api *, const char *const *, size_t, struct api_job *, struct api_result *);
    MAY_YIELD enum err (*job_poll)(struct api *, struct api_job *, struct arena *, struct api_result *);
    enum err (*stream_open)(struct api_stream **, struct api *, const char *, const struct api_stream_ops *, void *,
                            struct errinfo *);
    void (*stream_close)(struct api_stream **);
};

struct api {
    const struct api_dialect *dialect;
    struct httpc_peer *peer;
    char *token;       /* NULL: not signed in */
    char *app_version; /* NULL: ours */
    int64_t timeout_us, stream_idle_us;
    unsigned caps, pages;
    bool locks_seen; /* a lock call was answered as one: a 404 then means the file */
};

/* What every dialect's stream starts with. */
struct api_stream {
    const struct api_dialect *dialect;
};

extern const struct api_dialect api_dialect_tma;

/* Fills r for a call that this server or dialect does not have, and returns ERR_OK. */
enum err api_absent(struct api_result *r, const char *what);
void api_result_init(struct api_result *r);
/* Sets the session's token and the header that carries it; NULL or "" clears both. */
void api_set_token(struct api *a, struct sv token);
#endif
