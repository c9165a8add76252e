#ifndef NET_DIAL_H
#define NET_DIAL_H
/* TCP connections: a name looked up, its addresses tried one after another. Only the look-up blocks, so it is done once
 * for many connections. Layer 1, one loop's thread. */
#include "net/coro.h"

struct dial; /* a host and port with their addresses */
/* host may be an IPv6 address in brackets. ERR_SAFETY when the guard forbids it, ERR_RESOLVE when it has no address. */
enum err dial_new(struct dial **out, const char *host, int port, struct errinfo *ei) WARN_UNUSED;
void dial_free(struct dial **d);
/* A connected socket, non-blocking and without Nagle's delay; the caller closes it. Each call starts at the next of the
 * addresses, so that connections spread over them, and falls back to the others. CONNECT (nothing listens there),
 * RESET, TIMEOUT. */
MAY_YIELD enum err dial_connect(struct loop *l, struct dial *d, struct mono deadline, int *fd,
                                struct errinfo *ei) WARN_UNUSED;
#endif
