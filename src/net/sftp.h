#ifndef NET_SFTP_H
#define NET_SFTP_H
/* An SFTP client: one session is one SSH connection, over which several coroutines may have requests under way; large
 * transfers keep a window of them. libssh2 carries the bytes; the packets are ours (sftp_wire.h), since its own SFTP
 * does one thing at a time a session, and Debian's version has no posix-rename. Calls suspend the coroutine (or run the
 * loop). Layer 1, one loop's thread.
 *
 * A call returns ERR_OK when the server answered, with its verdict in *r; else what became of the connection, which is
 * then of no more use (TIMEOUT: of no use to this call; WRONG: a sink said so). */
#include "net/sftp_wire.h"
#include "net/ssh.h"

enum sftp_status { /* version 3's; what later versions added is told apart where a server sends it all the same */
                   SFTP_OK = 0,
                   SFTP_EOF = 1,
                   SFTP_NO_SUCH_FILE = 2,
                   SFTP_PERMISSION_DENIED = 3,
                   SFTP_FAILURE = 4,
                   SFTP_BAD_MESSAGE = 5,
                   SFTP_UNSUPPORTED = 8,
                   SFTP_EXISTS = 11,
                   SFTP_NO_SPACE = 14,
                   SFTP_QUOTA = 15,
                   SFTP_FOLDER_NOT_EMPTY = 18
};
const char *sftp_status_text(enum sftp_status s); /* "no such file"; static */
struct sftp_reply {
    enum sftp_status status;
    char text[160]; /* what the server says, escaped; "" when it says nothing */
};
enum sftp_ext { SFTP_EXT_POSIX_RENAME = 1, SFTP_EXT_STATVFS = 2, SFTP_EXT_COPY_DATA = 4, SFTP_EXT_FSYNC = 8 };
struct sftp_space {
    int64_t total, free; /* bytes of the file system, -1: not told; free: to this user */
};

struct sftp;
/* Signs in and starts the subsystem, within timeout_us, which is afterwards how long an answer may take. */
MAY_YIELD enum err sftp_open(struct sftp **out, struct ssh_client *c, struct loop *l, const struct ssh_login *login,
                             int64_t timeout_us, struct ssh_report *report, struct errinfo *ei) WARN_UNUSED;
void sftp_cancel(struct sftp *s); /* its calls end with ERR_CANCELLED, and it is of no more use */
void sftp_close(struct sftp **s); /* no call of it may be running */
bool sftp_alive(const struct sftp *s);
unsigned sftp_extensions(const struct sftp *s);
const struct ssh *sftp_ssh(const struct sftp *s); /* for its counters */

/* Each entry but "." and ".."; name lives until the callback returns; false: enough, the listing ends there. */
MAY_YIELD enum err sftp_list(struct sftp *s, const char *path,
                             bool (*entry)(void *arg, struct sv name, const struct sftp_attrs *a), void *arg,
                             struct sftp_reply *r, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err sftp_stat(struct sftp *s, const char *path, struct sftp_attrs *out, struct sftp_reply *r,
                             struct errinfo *ei) WARN_UNUSED; /* links are not followed */
/* The absolute path of what exists. */
MAY_YIELD enum err sftp_real_path(struct sftp *s, const char *path, struct buf *out, struct sftp_reply *r,
                                  struct errinfo *ei) WARN_UNUSED;
/* Changes of names. RENAME fails where `to` exists on servers that keep to the draft; POSIX_RENAME replaces it. `to` is
 * of the two renames alone. */
enum sftp_change { SFTP_MKDIR, SFTP_RMDIR, SFTP_REMOVE, SFTP_RENAME, SFTP_POSIX_RENAME };
MAY_YIELD enum err sftp_change(struct sftp *s, enum sftp_change what, const char *path, const char *to,
                               struct sftp_reply *r, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err sftp_space(struct sftp *s, const char *path, struct sftp_space *out, struct sftp_reply *r,
                              struct errinfo *ei) WARN_UNUSED;
/* length 0: to the end. A file that ends within the range ends the call well. */
MAY_YIELD enum err sftp_get(struct sftp *s, const char *path, uint64_t offset, uint64_t length,
                            int (*sink)(void *arg, const char *p, size_t n), void *arg, struct sftp_reply *r,
                            struct errinfo *ei) WARN_UNUSED;
struct sftp_source {
    uint64_t size;
    void (*fill)(void *arg, uint64_t offset, char *dst, size_t n);
    void *arg;
    uint64_t *taken;  /* NULL, or raised as bytes are taken to be sent */
    uint32_t mtime_s; /* 0: the server's own */
};
/* Makes the file, which must not exist (FAILURE or EXISTS then). What fails half-way is removed again where the server
 * still listens. */
MAY_YIELD enum err sftp_put(struct sftp *s, const char *path, const struct sftp_source *from, struct sftp_reply *r,
                            struct errinfo *ei) WARN_UNUSED;
/* Within the server (SFTP_EXT_COPY_DATA); `to` must not exist. */
MAY_YIELD enum err sftp_copy(struct sftp *s, const char *from, const char *to, struct sftp_reply *r,
                             struct errinfo *ei) WARN_UNUSED;
#endif
