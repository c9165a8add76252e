#ifndef SERVER_OBJECTS_SWEEPER_H
#define SERVER_OBJECTS_SWEEPER_H
/* Cleaning up behind crashes, at the start and from time to time: objects that no row names, reservations and locks
 * that have lapsed, old changes, old jobs.
 *
 * An object that is on its way must never go. What this server has in flight it knows (content.h). What another one has
 * in flight it can't know, but whose an object is stands in its name: those of a server that lives are left to that
 * server. Of its own and of the dead ones' whatever was there ten seconds before the sweep began is touched; should one
 * that was thought dead commit after all, its upload is refused (dead_objects). Ages are told by the store's own clock.
 * Only keys of this database's accounts are looked at, so that a bucket may be shared. Layer 3. */
#include "server/server.h"

extern const struct server_part sweeper_part;
/* The connection broke during the call that was to name the object: nobody knows whether a row names it now, or will in
 * a moment. It is judged when that must be over, not at the next regular sweep. */
struct content_object;
void sweeper_doubt(struct server *s, struct content_object *o);
void sweeper_look(struct server *s); /* somebody died: what it left is swept soon, not at the next regular sweep */
#endif
