#ifndef NET_SSH_INT_H
#define NET_SSH_INT_H
/* Shared by src/net/ssh*.c alone. Layer 1. */
#include "base/buf.h"
#include "net/dial.h"
#include "net/known_hosts.h"
#include "net/ssh.h"

#include <libssh2.h>

#define SSH_SAID_MAX 160

/* A queue of bytes: taken from the front without moving the rest each time. */
struct ssh_queue {
    struct buf bytes;
    size_t at;
};

struct ssh_client {
    struct loop *loop;
    struct ssh_client_conf conf;
    char *known_file; /* its name, for sentences */
    struct known_hosts known;
    struct known_place place; /* of the host asked for last */
    char *place_name;
    struct ssh *connections;
    struct dial *dial; /* of the host asked for last */
    char *dial_host;
    int dial_port;
    char scratch[64 * 1024]; /* what was read last; used within one callback */
};

struct ssh {
    struct ssh_client *client;
    struct ssh *next, **at;
    const struct ssh_login *login; /* during ssh_open */
    const char *subsystem;
    LIBSSH2_SESSION *session;
    LIBSSH2_CHANNEL *channel;
    struct io io;
    struct done ready;
    struct mono deadline;
    enum ssh_stage stage;
    unsigned method;                              /* of signing in: the one that is tried */
    const char *methods;                          /* what the server offers; the session's */
    struct buf line;                              /* before the banner: the line that is being read */
    char said[SSH_SAID_MAX];                      /* the last whole line that was no banner */
    struct ssh_queue out, plain;                  /* encrypted and bound for the socket; bound for the channel */
    bool named, ended, cancelled, dead, deferred; /* named: its banner came; dead: libssh2 reads no more */
    int os_errno;                                 /* of the socket; 0: none */
    uint64_t up, down;
    const struct ssh_ops *ops;
    void *arg;
};

/* Opens a session whose reads and writes come to s. */
LIBSSH2_SESSION *ssh_session_new(struct ssh *s);
/* Hands what is queued to the socket; what is left waits for EPOLLOUT. */
void ssh_flush(struct ssh *s);
bool ssh_out_waits(const struct ssh *s);
struct ssh *ssh_new(struct ssh_client *c, const struct ssh_login *login, const char *subsystem, struct mono deadline);

/* ssh_hosts.c. Steps of a sign-in: 0, LIBSSH2_ERROR_EAGAIN, or another error of libssh2. */
enum err ssh_hosts_load(struct ssh_client *c, struct errinfo *ei) WARN_UNUSED;
/* The kinds of key known of this host come first, so that the server shows one that can be checked. */
void ssh_hosts_prefer(struct ssh *s);
enum err ssh_hosts_check(struct ssh *s, struct errinfo *ei) WARN_UNUSED;
#endif
