#ifndef NET_SSH_H
#define NET_SSH_H
/* SSH connections that carry one subsystem (sftp), by libssh2 on a loop. A struct ssh_client holds what all of them
 * share: the host keys that are trusted. Signing in is straight-line code that suspends the coroutine (or runs the
 * loop); afterwards bytes are pushed to callbacks and written without waiting. The owner of libssh2.h. Layer 1, one
 * loop's thread. */
#include "base/str.h"
#include "net/coro.h"

struct ssh_client;
struct ssh_client_conf {
    const char *known_hosts; /* this file alone; NULL: those that ssh reads */
    bool insecure;           /* whatever key a host shows is taken */
};
/* ERR_ENV when a file that was named cannot be read; that the default ones are not there is no error yet. */
enum err ssh_client_new(struct ssh_client **out, struct loop *l, const struct ssh_client_conf *conf,
                        struct errinfo *ei) WARN_UNUSED;
void ssh_client_free(struct ssh_client **c); /* no connection may be left */

/* A key is tried before the password, which also answers keyboard-interactive questions. Borrowed during the call. */
struct ssh_login {
    const char *host, *user;
    int port;
    const char *password;              /* NULL: none */
    const char *key_file, *passphrase; /* NULL: none. A passphrase costs a quarter of a second of CPU a sign-in */
};
/* Where a sign-in is, or how far it came. */
enum ssh_stage { SSH_CONNECT, SSH_BANNER, SSH_KEX, SSH_HOST_KEY, SSH_AUTH, SSH_CHANNEL, SSH_UP };
const char *ssh_stage_text(enum ssh_stage stage); /* "key exchange"; static */
struct ssh_report {                               /* filled also when it fails */
    enum ssh_stage stage;
    int64_t connect_us; /* until TCP was connected; -1: never */
    int64_t banner_us;  /* until the server had named itself, from the start; -1: never */
};

struct ssh;
struct ssh_ops {
    void (*on_data)(void *arg, const char *p, size_t n);                /* must not close */
    void (*on_end)(void *arg, enum err err, const struct errinfo *why); /* the last call */
};
/* Connects, checks the host's key, signs in, starts the subsystem. REFUSED: the server took the connection and ended it
 * before it named itself (MaxStartups), with what it said. AUTH: no sign-in with what login has. SAFETY: the host's key
 * is not known or another one. TIMEOUT, CONNECT, RESET, CLOSED, PROTO, CANCELLED, with the stage in *report. */
MAY_YIELD enum err ssh_open(struct ssh **out, struct ssh_client *c, const struct ssh_login *login,
                            const char *subsystem, struct mono deadline, struct ssh_report *report,
                            struct errinfo *ei) WARN_UNUSED;
/* Whoever is signing in with login (NULL: whoever) gets ERR_CANCELLED. */
void ssh_client_cancel(struct ssh_client *c, const struct ssh_login *login);
/* Bytes are delivered from the next round on. */
void ssh_start(struct ssh *s, const struct ssh_ops *ops, void *arg);
/* Queues n bytes; the caller bounds what it has under way. Nothing happens once the connection has ended. */
void ssh_write(struct ssh *s, const void *p, size_t n);
void ssh_close(struct ssh **s);             /* no further callback */
uint64_t ssh_bytes_up(const struct ssh *s); /* on the wire, so far */
uint64_t ssh_bytes_down(const struct ssh *s);
#endif
