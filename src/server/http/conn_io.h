#ifndef SERVER_HTTP_CONN_IO_H
#define SERVER_HTTP_CONN_IO_H
/* How the coroutine of an exchange reads and writes its connection: it waits, and what was read but not used stays in
 * the connection. Layer 3. */
#include "server/http/conn.h"

/* ERR_CLOSED, ERR_TIMEOUT. */
MAY_YIELD enum err conn_recv(struct http_conn *c, void *dst, size_t cap, size_t *got) WARN_UNUSED;
MAY_YIELD enum err conn_send(struct http_conn *c, struct iovec *iov, int n) WARN_UNUSED;
void conn_acknowledge(const struct http_conn *c); /* what came so far, at once: the client may wait for that */
MAY_YIELD enum err conn_await(struct http_conn *c, int64_t us) WARN_UNUSED; /* until there is something to read */
size_t conn_buffered(const struct http_conn *c);
size_t conn_take(struct http_conn *c, void *dst, size_t cap); /* from in */
void conn_drop(struct http_conn *c, size_t n);
void conn_put_back(struct http_conn *c, const char *p, size_t n);
MAY_YIELD enum err conn_fill(struct http_conn *c) WARN_UNUSED; /* one read of the socket into an empty in */
#endif
