#ifndef SERVER_HTTP_LISTEN_H
#define SERVER_HTTP_LISTEN_H
/* The listening socket and its connections. At the limit of connections, or when the system has no more descriptors,
 * those that are there go on; a newcomer gets 503 with a sentence as long as there is a descriptor to say it with, and
 * waits in the backlog otherwise. Layer 3. */
#include "server/server.h"

/* Listens on host:port (port 0: any). Fails with a sentence that names the address. */
enum err listener_new(struct listener **out, struct server *s, const char *host, int port, size_t max_conns,
                      struct errinfo *ei) WARN_UNUSED;
int listener_port(const struct listener *l);
/* Closes the socket and idle connections at once, then waits until the rest has been answered or grace_us are over. */
MAY_YIELD void listener_stop(struct listener *l, int64_t grace_us);
void listener_free(struct listener **l);
#endif
