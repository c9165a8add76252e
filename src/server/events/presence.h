#ifndef SERVER_EVENTS_PRESENCE_H
#define SERVER_EVENTS_PRESENCE_H
/* Which servers live on this database. Each has a row in `servers` and says every few seconds that it lives; one that
 * has been silent for a minute counts as dead, and one of this machine whose process is gone at once. What a dead
 * server was at (jobs, uploads) is free for others. Layer 3. */
#include "server/server.h"

extern const struct server_part presence_part;
const char *presence_id(const struct server *s);
/* True when no other server lives, as of now. */
MAY_YIELD enum err presence_alone(struct server *s, bool *alone, struct errinfo *ei) WARN_UNUSED;
#endif
