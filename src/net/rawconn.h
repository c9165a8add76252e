#ifndef NET_RAWCONN_H
#define NET_RAWCONN_H
/* A bare TCP connection, for what an HTTP client would hide: bytes that nobody asked for, a body that is left unread, a
 * client that writes on without listening. Calls suspend the coroutine (or run the loop). Plain TCP alone. Layer 1; one
 * loop's thread, one caller at a time. */
#include "net/coro.h"
#include <stddef.h>

struct rawconn;
/* Connects to the host and port of an http URL. ERR_USAGE for another scheme, RESOLVE, CONNECT, TIMEOUT. */
MAY_YIELD enum err rawconn_open(struct rawconn **out, struct loop *l, const char *url, struct mono deadline,
                                struct errinfo *ei) WARN_UNUSED;
void rawconn_close(struct rawconn **c);
/* Sends all n bytes. CLOSED or RESET when the other side is gone; what it had sent before can still be read. */
MAY_YIELD enum err rawconn_write(struct rawconn *c, const void *p, size_t n, struct mono deadline,
                                 struct errinfo *ei) WARN_UNUSED;
/* At least one byte, at most cap; *got 0 at the end of what the other side sends. */
MAY_YIELD enum err rawconn_read(struct rawconn *c, void *dst, size_t cap, size_t *got, struct mono deadline,
                                struct errinfo *ei) WARN_UNUSED;
#endif
