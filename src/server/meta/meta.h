#ifndef SERVER_META_META_H
#define SERVER_META_META_H
/* Metadata: the server's way to its database. Every write is one function of sql/ and so one transaction; this module
 * calls it with its account's slot held, publishes the events of what was committed in commit order, and lets the slot
 * go. So the order of events is that of the change numbers, and one busy account never takes all connections of the
 * pool: its writers wait here, not inside Postgres. meta/calls.h names the functions. Layer 3; the loop's thread. */
#include "server/meta/file.h"
#include "server/server.h"

struct meta;
extern const struct server_part meta_part; /* applies the schema, learns the epoch */

struct meta_who { /* on whose behalf; borrowed strings */
    const char *account_id, *user_id, *session_id, *name;
};
struct meta_who meta_who(const struct login *l);

struct meta_change {              /* one row of drive_change: an item that was changed, or why it was not */
    const char *refused, *detail; /* refused NULL: done; detail: JSON object or NULL */
    int64_t seq;                  /* 0: it was so already, nothing was published */
    struct meta_file file;
    const char **keys; /* objects that no row names any more */
    size_t n_keys;
};
struct meta_result {
    struct meta_change *rows;
    size_t n;
};

/* Calls a function that returns drive_change rows: takes the account's slot, runs, publishes, gives the slot back. The
 * rows live in mem. When the connection is lost while it runs, nobody knows whether it was done: the error is
 * ERR_DB_GONE and the account's streams are told to `resync` as soon as Postgres answers again. */
MAY_YIELD enum err meta_write(struct server *s, const char *account_id, const char *sql, int n,
                              const char *const *params, struct arena *mem, struct meta_result *out,
                              struct errinfo *ei) WARN_UNUSED;
/* The same for jobs: it may take as long as it takes. */
MAY_YIELD enum err meta_write_long(struct server *s, const char *account_id, const char *sql, int n,
                                   const char *const *params, struct arena *mem, struct meta_result *out,
                                   struct errinfo *ei) WARN_UNUSED;
/* The same rows from a function that only reads: no slot, nothing to publish. */
MAY_YIELD enum err meta_read(struct server *s, const char *sql, int n, const char *const *params, struct arena *mem,
                             struct meta_result *out, struct errinfo *ei) WARN_UNUSED;
/* The account's turn among this server's writers, for other calls that take the owner's row: others wait in the order
 * of their coming. */
struct meta_slot;
MAY_YIELD struct meta_slot *meta_slot_take(struct server *s, const char *account_id);
void meta_slot_give(struct server *s, struct meta_slot *slot);

/* The first refusal among the rows; NULL when there is none. */
const struct meta_change *meta_refusal(const struct meta_result *res);

/* Answers a refusal with its status, sentence, code, and the fields of its detail. Codes are those of sql/. */
MAY_YIELD void meta_reply_refusal(struct request *r, const char *code, const char *detail);
int meta_refusal_status(const char *code);
/* The detail of STORAGE_LIMIT_EXCEEDED, in mem; available below 0 is told as 0. */
const char *meta_room_detail(struct arena *mem, int64_t required, int64_t available);
/* As an item of a bulk answer: its sentence. Static unless mem is used for the figures. */
const char *meta_refusal_text(struct arena *mem, const char *code, const char *detail);

/* Notes that a login read a file: accessed_at and the audit log follow within a second, many at once. Never waits. */
void meta_touch(struct server *s, const struct meta_who *who, const char *file_id);

/* Brings a database to this program's schema: missing migrations in order, functions when their text changed, under an
 * advisory lock. ERR_ENV when the database was made by a newer program or is not a drive's. */
MAY_YIELD enum err meta_schema_apply(struct pg_pool *pool, struct errinfo *ei) WARN_UNUSED;
#endif
