#ifndef SERVER_EVENTS_EVENTS_H
#define SERVER_EVENTS_EVENTS_H
/* The hub of event streams: which stream listens to which account, fed by one pattern subscription on Redis, so that a
 * change reaches the streams of every process. An event costs its account's streams and nothing else. Publishing is
 * events_publish of server.h. Layer 3; the loop's thread. */
#include "base/str.h"
#include "server/server.h"

extern const struct server_part events_part;

/* Ends the streams of a session, or of all of a user's. */
void events_drop_session(struct server *s, const char *session_id);
void events_drop_user(struct server *s, const char *user_id);
/* Tells an account's streams (NULL: all) to list everything again. */
void events_resync(struct server *s, const char *account_id);
/* Tells the other processes what to forget: session.h. */
void events_control(struct server *s, const char *what, const char *id);
void session_on_control(struct server *s, const char *what, const char *id);

/* "<epoch>-<seq>". False when it is not one of this database. */
bool cursor_parse(const struct server *s, struct sv text, int64_t *seq);
#define CURSOR_MAX 64
char *cursor_format(const struct server *s, char dst[CURSOR_MAX], int64_t seq);
#endif
