#ifndef DRIVE_SFTP_SFTP_H
#define DRIVE_SFTP_SFTP_H
/* Internal to the sftp dialect: a client is one SFTP session, signed in again when it was lost, and every call goes
 * through sftp_op_begin and sftp_op_end. All work stays in the folder API_PLACE below the URL's path. Layer 2. */
#include "drive/api/dialect.h"
#include "net/sftp.h"

/* One SSH session; dropped by who finds it broken, closed by its last user. */
struct sftp_link {
    struct sftp *sftp;
    unsigned users;
    bool dropped;
};
struct sftp_state {
    struct loop *loop;
    const struct target *target;
    const struct ssh_login *opens; /* of the session that is being opened; NULL: none is */
    unsigned cancels;              /* how often all of its calls were cut */
    char *host, *base; /* base: the URL's path, decoded; relative to the login's home when it begins with "/~/" */
    int port;
    const char *key_file, *passphrase; /* of the target, which outlives us; NULL: none */
    char *user, *password;             /* NULL: not signed in yet; password NULL: none */
    char *root;                        /* the folder of all work, by its absolute path; NULL: not known yet */
    struct sftp_link *link;            /* NULL: none open */
    struct sem opening;                /* one at a time */
    unsigned extensions;
};

struct sftp_op { /* one call under way */
    struct api *a;
    struct sftp_state *st;
    struct sftp_link *link;
    struct sftp *s;
    struct api_result *r;
    struct sftp_reply reply;
    struct errinfo ei;
    bool write, into_itself; /* into_itself: a move that no server could carry out */
    uint64_t up, down;       /* the session's counters before it */
};
/* Sees to a session; false when there is none to be had, with r filled and op->ei.code the error. write: an answer that
 * does not come leaves it unknown what was done. */
MAY_YIELD bool sftp_op_begin(struct sftp_op *op, struct api *a, struct api_result *r, bool write);
/* e and op->reply become the verdict in r. Returns e. */
enum err sftp_op_end(struct sftp_op *op, enum err e);
/* True when e is ERR_OK and the server said ok. */
static inline bool sftp_op_ok(const struct sftp_op *op, enum err e)
{
    return e == ERR_OK && op->reply.status == SFTP_OK;
}
/* Overrides the verdict of an answer: 404, 409, … with a sentence; code may be NULL. Call after sftp_op_end. */
void sftp_op_say(struct api_result *r, int status, const char *code, const char *reason);
/* The path of an entry (NULL: the folder of all work), or of a name in it; both borrowed from mem. NULL: unknown or
 * deleted. */
const char *sftp_path_of(const struct sftp_op *op, struct arena *mem, const char *id);
const char *sftp_path_in(const struct sftp_op *op, struct arena *mem, const char *folder_id, const char *name);
/* A name that no listing shows, in the folder of path. */
const char *sftp_temporary(struct arena *mem, const char *path);
bool sftp_name_is_ours(struct sv name); /* one of those, or the marker */
/* Whether the failed change found its target taken: servers say FAILURE for many things, so it is looked up. */
MAY_YIELD bool sftp_is_there(struct sftp_op *op, const char *path, struct sftp_attrs *a);
/* Without ever replacing anything: OK, or EXISTS in op->reply. */
MAY_YIELD enum err sftp_rename_new(struct sftp_op *op, const char *from, const char *to);
void sftp_fill_file(const struct sftp_op *op, struct arena *mem, const char *parent_id, const char *name,
                    const struct sftp_attrs *a, struct drive_file *out);
#endif
