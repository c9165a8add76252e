#ifndef DRIVE_API_DIALECT_H
#define DRIVE_API_DIALECT_H
/* Internal to the client: what a dialect is. A dialect is one const table; an operation it lacks is NULL and answered
 * by api.c as absent. Adding a dialect: its files, and its rows of the table of schemes in scheme.c. Layer 2. */
#include "drive/api/api.h"
#include "drive/api/budget.h"
#include "drive/api/patience.h"
#include "drive/names.h"
#include "net/httpc.h"

struct api_dialect {
    const char *name;
    unsigned caps; /* what it can do at best */
    /* What a client of it consists of: sets a->peer or a->state. url: the base, taken apart; conf as given. */
    enum err (*open)(struct api *, const struct api_conf *, const struct http_url *, struct errinfo *);
    void (*close)(struct api *);                     /* NULL: nothing but the peer. Also after an open that failed */
    void (*share)(struct api *, const struct api *); /* takes the other's session over, besides token and caps */
    void (*cancel)(struct api *);                    /* NULL: the peer's requests */
    /* Whether a server of this dialect answers, and ours to use: ERR_ENV, ERR_SAFETY with a sentence. Signs in with
     * the target's first login. NULL: target_probe.c does it. */
    MAY_YIELD enum err (*greet)(struct api *, struct errinfo *);
    MAY_YIELD enum err (*claim)(struct api *, struct api_result *);
    MAY_YIELD enum err (*unclaim)(struct api *, struct api_locks_left *, struct api_result *);
    MAY_YIELD enum err (*probe)(struct api *, struct api_result *);
    MAY_YIELD enum err (*sign_up)(struct api *, const char *, const char *, const char *, struct api_result *);
    MAY_YIELD enum err (*sign_in)(struct api *, const char *, const char *, struct api_result *);
    MAY_YIELD enum err (*sign_out)(struct api *, struct api_result *);
    /* Whether the server takes the session that the client carries, as this login's: fails as any call does, with
     * OUT_WRONG when it is another's. NULL: nothing to keep, signing in costs nothing. */
    MAY_YIELD enum err (*prove_session)(struct api *, const char *, struct api_result *);
    MAY_YIELD enum err (*signup_status)(struct api *, bool *, struct api_result *);
    MAY_YIELD enum err (*signup_toggle)(struct api *, bool, struct api_result *);
    MAY_YIELD enum err (*sub_user_create)(struct api *, const char *, const char *, const char *, unsigned,
                                          struct api_result *);
    MAY_YIELD enum err (*sub_users)(struct api *, struct arena *, struct api_users *, struct api_result *);
    MAY_YIELD enum err (*accounts_made)(struct api *, struct arena *, struct api_users *, struct api_result *);
    MAY_YIELD enum err (*account_remove)(struct api *, const char *, struct api_result *);
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
    enum err (*stream_open)(struct api_stream **, struct api *, struct api_stream_memory *,
                            const struct api_stream_ops *, void *, struct errinfo *);
    void (*stream_close)(struct api_stream **);
};

struct api_space {
    struct map *trees; /* a registry of names for each */
    struct token_store *sessions;
    unsigned kept, signed_in;
    struct patience sign_ins;
};
struct api {
    const struct api_dialect *dialect;
    struct httpc *http;
    struct httpc_peer *peer; /* NULL in a dialect without HTTP; freed by api.c */
    void *state;             /* the dialect's own */
    struct api_space *space, *own_space;
    struct names *names; /* of the tree it is signed in to, in the space; NULL: ids are the server's */
    char *tree;          /* api_tree; NULL: "" */
    char *token;         /* NULL: not signed in */
    struct mono token_since;
    unsigned name_max; /* bytes of a file's name that the server is known to take; 0: as many as any */
    bool went_on;      /* with a session that was known: api_went_on */
    char *app_version; /* NULL: ours */
    struct patience patience;
    struct budget *budget; /* NULL: a spent one is the caller's to wait for */
    int64_t timeout_us, stream_idle_us, stream_bytes_per_s;
    size_t listing_most;
    unsigned caps;
    uint64_t *requests, *sent; /* api_conf.requests, and of it the cause in force; NULL: not counted */
    struct api *next, **link;  /* all clients of the program */
    bool locks_seen;           /* a lock call was answered as one: a 404 then means the file */
};

#define API_LISTING_ENDLESS "the listing has more than %zu entries"

/* What every dialect's stream starts with. */
struct api_stream {
    const struct api_dialect *dialect;
};

/* Once it is known which tree a login works in: a->tree, a->names. */
void api_set_tree(struct api *a, const char *tree);

/* A call of a dialect without HTTP is one request; a peer counts its own. */
void api_count(struct api *a);
/* Calls a row of the dialect's table; API_CALL with the login's patience. */
#define API_ROW(op, r, ...) ((a)->dialect->op ? (api_count(a), (a)->dialect->op(a, __VA_ARGS__)) : api_absent(r, #op))
#define API_CALL(op, r, ...)                                                                                           \
    ({                                                                                                                 \
        enum err err_;                                                                                                 \
        do {                                                                                                           \
            api_turn(a);                                                                                               \
            err_ = api_told(&(a)->patience, r, API_ROW(op, r, __VA_ARGS__));                                           \
        } while (api_sat_out(a, r));                                                                                   \
        err_;                                                                                                          \
    })
/* Of a client with a budget (api_conf): its turn; and whether a 429 was waited out, so that the call is made again. */
MAY_YIELD void api_turn(struct api *a);
MAY_YIELD bool api_sat_out(struct api *a, const struct api_result *r);
/* What a call returned, after r went past the patience that it is a matter of. */
enum err api_told(struct patience *p, struct api_result *r, enum err err);
/* Fills r for a call that this server or dialect does not have, and returns ERR_OK. */
enum err api_absent(struct api_result *r, const char *what);
void api_result_init(struct api_result *r);
/* The verdict over an answer that came but cannot be used. */
enum err api_wrong(struct api_result *r, const char *what);
/* And over a request without one: may_be_done, a write that was sent, is UNKNOWN. */
void api_no_answer(struct api_result *r, enum err err, bool may_be_done, const struct errinfo *ei);
void api_reason(struct api_result *r, const char *text); /* escaped and cut */
/* What an answer whose outcome and reason are set asks to wait (net/http_date.h). Nobody waits longer than
 * DRIVE_WAIT_MOST_US: who asks for that with a 429 is refusing. The reason says so. */
void api_wait_asked(struct api_result *r, const struct http_resp *resp);
int64_t api_timeout_us(const struct api *a, uint64_t transfer_bytes);
/* Where the logins are given: the one folder that all work stays in, and the file in it that says it is ours. */
#define API_PLACE       "drivesim-load"
#define API_MARKER      "made-by-drivesim.txt"
#define API_MARKER_TEXT "Made by drivesim, a load tester. Everything in this folder may be deleted.\n"
/* Sets the session's token and the header that carries it; NULL or "" clears both. */
void api_set_token(struct api *a, struct sv token);
/* The server gave a new token for the same session with an answer to a request of that time. */
void api_renew_token(struct api *a, struct sv token, struct mono sent);
#endif
