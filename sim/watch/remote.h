#ifndef SIM_WATCH_REMOTE_H
#define SIM_WATCH_REMOTE_H
/* Another machine's counters over ssh: the same files of /proc that host.h reads, printed once a second by a shell loop
 * on the other side. Nothing is installed there, and the loop ends with the connection. The user's own ssh signs in, by
 * key or agent (BatchMode). Layer 3; one loop's thread. */
#include "base/str.h"
#include "drive/target.h"
#include "net/coro.h"

#define REMOTE_HOST_MAX 119

struct remote;
struct remote_ops {
    void (*snapshot)(void *arg, struct sv text); /* as host_parse takes it; borrowed for the call */
    void (*end)(void *arg);                      /* no more come: remote_problem says why */
};
/* host: [user@]host[:port] or //[user@]host[:port], at most REMOTE_HOST_MAX bytes. trust: its key and its known hosts
 * count besides what ssh has anyhow; borrowed for the call. ERR_SAFETY when the guard forbids the host that
 * ssh's settings make of it, or one on the way; ERR_ENV when ssh cannot be started; that it cannot sign in comes as an
 * end. ops and arg outlive it. */
MAY_YIELD enum err remote_new(struct remote **out, struct loop *loop, const char *host, const struct target *trust,
                              const struct remote_ops *ops, void *arg, struct errinfo *ei) WARN_UNUSED;
/* "ssh to h ended: Permission denied (publickey)."; "" while it goes on. */
const char *remote_problem(const struct remote *r);
MAY_YIELD void remote_free(struct remote **r); /* NULL is fine */
#endif
