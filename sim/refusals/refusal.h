#ifndef SIM_REFUSALS_REFUSAL_H
#define SIM_REFUSALS_REFUSAL_H
/* Internal to `sim refusals`: one refusal is one row (refusals/rows.c), asked on a stage of throwaway things
 * (refusals/stage.c) as plain HTTP (refusals/ask.c) or, where a client would hide something, byte by byte
 * (refusals/raw.c). Requests are made by hand, not by the client's calls: what is tested is the wire. Layer 3. */
#include "drive/api/api.h"
#include "drive/cmd.h"
#include "net/httpc.h"

/* On whose behalf a request is made. LACKS + a permission's bit: a sub-user that holds all permissions but that one. */
enum refusal_who {
    WHO_OWNER,
    WHO_SECOND,    /* the owner again, in another session */
    WHO_NOBODY,    /* no token */
    WHO_BAD_TOKEN, /* something that is none */
    WHO_FORGED,    /* the owner's, its last letter altered */
    WHO_REVOKED,   /* of a session that was signed out */
    WHO_SPENDER,   /* a sub-user whose budgets are for spending */
    WHO_LISTENER,  /* a sub-user whose event streams are for taking */
    WHO_LACKS,
    WHO_COUNT = WHO_LACKS + PERM_COUNT
};
/* Ids that paths and bodies name as {word}. */
/* clang-format off */
#define REFUSAL_THINGS(X) \
    X(FOLDER, "folder") \
    X(CHILD, "child") /* a folder in it */ \
    X(FILE, "file") \
    X(VICTIM, "victim") /* a file that granted calls may take */ \
    X(BIG, "big") /* a file larger than the room that a tight quota leaves */ \
    X(TRASHED, "trashed") /* a file in the trash */ \
    X(TRASHED_FOLDER, "trashed_folder") \
    X(LOCKED, "locked") /* a file that the second session holds a lock of */ \
    X(LAPSED, "lapsed") /* a file whose lock has lapsed, and that lock */ \
    X(LAPSED_LOCK, "lapsed_lock") \
    X(STALE, "stale") /* the version of {file} before its last change */ \
    X(FOREIGN, "foreign") /* a file of another account */ \
    X(FOREIGN_FOLDER, "foreign_folder") \
    X(MISSING, "missing") /* no id of anything */ \
    X(NAME, "name") /* the row's name, as JSON text */
/* clang-format on */
enum refusal_thing {
#define X(sym, word) THING_##sym,
    REFUSAL_THINGS(X)
#undef X
        THING_COUNT
};

#define REFUSAL_ROOM      (INT64_C(1) << 20) /* what a tight quota leaves */
#define REFUSAL_TAKEN_MAX (INT64_C(400) << 20)

/* The file of an upload; size 0: the request carries none. */
enum refusal_size {
    SIZE_NONE,
    SIZE_SMALL,
    SIZE_ROOM_AND_ONE,
    SIZE_OVER,
    SIZE_300_MIB,
    SIZE_OVER_MAX,
    SIZE_FAR_OVER_MAX
};

struct stage;
struct answer {
    enum err err; /* not OK: no answer came, why in reason */
    int status;
    char reason[200], code[40];
    int64_t retry_after_us, us;
    char besides[120]; /* "": nothing; else what went wrong although the answer came */
};
struct refusal {
    const char *key, *asked;
    enum refusal_who who;
    int status, or_status; /* or_status: as good; 0: none */
    const char *code;      /* that the answer must carry; NULL: any */
    const char *method, *path, *body, *header, *name;
    enum refusal_size size;
    unsigned flags;
    const char *unless;       /* the key of a row after whose failure this one is not tried: it might do lasting harm */
    enum refusal_who granted; /* for whom the same call passes; WHO_OWNER: nobody is asked */
    /* Makes the state that the row needs; false: it cannot be tried, why in why. NULL: nothing to do. */
    MAY_YIELD bool (*before)(struct stage *s, const struct refusal *f, char *why, size_t n);
    MAY_YIELD void (*after)(struct stage *s);
    MAY_YIELD void (*ask)(struct stage *s, const struct refusal *f, unsigned nth,
                          struct answer *out); /* NULL: as given */
};
enum refusal_flags {
    ROW_CHUNKED = 1,      /* the body's length is not announced */
    ROW_EXPECT = 2,       /* asks before it sends the body */
    ROW_RETRY = 4,        /* must say when to come back */
    ROW_ALONE = 8,        /* loads the server itself: after the background has ended */
    ROW_MAY_ALLOW = 16,   /* a server may allow it: its own policy */
    ROW_OWN_ACCOUNT = 32, /* needs the account that the stage makes, with a quota of its own */
    ROW_PLAIN = 64,       /* speaks bare TCP: not over TLS */
    ROW_CALLS = 128       /* by the client's calls: for servers with another wire than TMA Cloud's, and those alone */
};

/* refusals/ask.c */
int64_t refusal_bytes(const struct stage *s, enum refusal_size size);
/* {word} becomes the thing. False: one of them is not to be had; its word in missing. Pure. */
bool refusal_fill(const struct stage *s, const struct refusal *f, const char *pattern, struct buf *out,
                  const char **missing);
/* Whether all that the row names is to be had. Pure. */
bool refusal_things_there(const struct stage *s, const struct refusal *f, char *why, size_t n);
MAY_YIELD void refusal_ask(struct stage *s, const struct refusal *f, enum refusal_who who, struct answer *out);
MAY_YIELD void refusal_request(struct httpc_peer *peer, const struct http_req *req, struct answer *out);
void answer_read(struct answer *a, struct sv body);
/* NULL: the answer is the refusal that the row expects; else what is wrong with it. Pure. */
const char *refusal_problem(const struct refusal *f, const struct answer *a, int64_t within_us, char *dst, size_t n);

/* refusals/call.c: asked by the client's calls */
MAY_YIELD void refusal_call_locked_save(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_call_locked_lock(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_call_locked_delete(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_call_stale(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_call_taken(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_call_below_itself(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_call_password(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_call_nobody(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);

/* refusals/rows.c */
extern const struct refusal refusals[];
extern const size_t n_refusals;
#endif
