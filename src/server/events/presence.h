#ifndef SERVER_EVENTS_PRESENCE_H
#define SERVER_EVENTS_PRESENCE_H
/* Which servers live on this database. Each has a row in `servers` and says every few seconds that it lives; one that
 * has been silent for a minute counts as dead, and one of this machine whose process is gone at once. What a dead
 * server was at is free for others: its jobs are taken up, and the objects of its uploads swept, soon after one of the
 * living has noticed. Layer 3. */
#include "base/buf.h"
#include "server/server.h"

extern const struct server_part presence_part;
const char *presence_id(const struct server *s);
/* So much of its id stands at the front of the name of each object that a server writes. */
#define PRESENCE_MARK_LEN 5
/* Appends the marks of the other servers that live, as of now, one behind the other. */
MAY_YIELD enum err presence_others(struct server *s, struct buf *marks, struct errinfo *ei) WARN_UNUSED;
#endif
