#ifndef DRIVE_API_TYPES_H
#define DRIVE_API_TYPES_H
/* What the client's calls take and give. Strings in answers live in the caller's arena. Layer 2. */
#include "base/arena.h"
#include "drive/content.h"
#include "drive/model.h"

/* What a server can do. All is assumed until an answer shows that a call is absent. */
enum api_cap {
    API_CAP_LOCKS = 1,
    API_CAP_VERSIONS = 2,
    API_CAP_FEED = 4,
    API_CAP_PAGING = 8,
    API_CAP_SUB_USERS = 16,
    API_CAP_STORAGE_CONFIG = 32,
    API_CAP_JOBS = 64,
    API_CAP_BULK = 128,
    API_CAP_RANGES = 256,
    API_CAP_EVENTS = 512,
    API_CAP_TRASH = 1024,
    API_CAP_RECENT = 2048,
    API_CAP_SIGN_UP = 4096,   /* makes accounts for us; else the logins are given (target.h) */
    API_CAP_STORAGE = 8192,   /* tells how much is stored */
    API_CAP_TOTALS = 16384,   /* of folders and accounts */
    API_CAP_TMA_WIRE = 32768, /* requests made by hand, for refusals and reads, are understood */
    API_CAP_BATCH = 65536,    /* a call with several ids does all or nothing; else one id a call */
    API_CAP_ALL = 131071
};
const char *api_cap_text(enum api_cap cap);              /* "edit locks"; static */
#define API_CODE_ABSENT         "ABSENT"                 /* result code of a call that this server does not have */
#define API_CODE_BEFORE_SIGN_IN "REFUSED_BEFORE_SIGN_IN" /* hung up on before it was asked who somebody is */

struct api_result {
    enum outcome outcome;
    enum err err;           /* what the call returned: OK when an answer came */
    int status;             /* HTTP status, 0: none */
    char reason[200];       /* the server's sentence or the transport's, escaped and cut; "" when ok */
    char code[40];          /* "LOCKED", "VERSION_CONFLICT", … */
    int64_t retry_after_us; /* with THROTTLED, or of a stream that ended: when to come back; -1: not said */
    struct mono sent, done;
    uint64_t bytes_up, bytes_down;
    unsigned retries; /* kept connections that broke when they were used again, replaced by fresh ones */
};

struct api_lock {
    char id[DRIVE_ID_MAX + 1], version[DRIVE_ID_MAX + 1];
    struct wall expires;
};
struct api_locks_left { /* in a tree that cannot be deleted because of them */
    unsigned released, left;
    int64_t longest_us; /* until the last of those that are left lapses; -1: never, or not told */
    char first[200];    /* "/a/b.txt, held by carol" */
};
struct api_job { /* id "": done at once */
    char id[DRIVE_ID_MAX + 1];
    bool done, failed;
    bool started;                      /* it no longer waits for its turn */
    int64_t items_done, items_total;   /* progress, where the server tells it; -1: not said */
    struct wall created, begun, ended; /* by the server's clock; us 0: not said or not yet */
    int64_t count;                     /* -1: not said */
    const char **ids;                  /* the copies, where the server names them */
    size_t n_ids;
};
struct api_changes {
    char cursor[128];
    bool resync, has_more;
    const char **folders; /* ids; NULL stands for the root */
    size_t n;
};
struct api_totals {
    int64_t bytes, files, folders; /* -1: not told */
};
struct api_storage {
    int64_t used, total, free; /* total, free -1: unlimited; used -1: not told */
};
struct api_user { /* a sub-user */
    const char *id, *email, *name;
    unsigned perms;
};
struct api_users {
    struct api_user *items;
    size_t n;
};
struct api_upload {
    const char *parent_id, *name;  /* parent NULL: root */
    const char *client_id;         /* NULL: the ordinal, in a bulk upload */
    const struct content *content; /* also alive until the call returns */
    struct wall modified;          /* us 0: not told to the server */
    uint64_t *taken;               /* NULL, or raised by the content's bytes as they are taken to be sent */
};
#endif
