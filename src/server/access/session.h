#ifndef SERVER_ACCESS_SESSION_H
#define SERVER_ACCESS_SESSION_H
/* Who asks: the token of a request, and the session and user rows it names, remembered for a few seconds so that an
 * app's burst of requests reads them once. A logout or a change of permissions takes effect with the next request, in
 * this process directly and in others by a message on Redis. Layer 3; the loop's thread. */
#include "server/access/token.h"
#include "server/http/http.h"
#include "server/server.h"

extern const struct server_part session_part;

/* Reads the token of cookie or Authorization header (the cookie wins). False: answered with 401. *out is borrowed from
 * the request. Costs no round trip. */
MAY_YIELD bool session_token(struct request *r, const struct token **out);
/* Fills r->login from the rows behind the token; re-issues a token that is past half its life. False: answered 401 or
 * 503. */
MAY_YIELD bool session_login(struct request *r, const struct token *t);
/* Before a sign-in does any work: false when as many sessions as may be are signed in; answered with 503 then. Else the
 * place is kept until session_open, whatever comes of that, or session_turn_away. */
MAY_YIELD bool session_admit(struct request *r);
void session_turn_away(struct request *r);
/* Opens a session, which was admitted, and sets the cookie. */
MAY_YIELD enum err session_open(struct request *r, const char *user_id, struct errinfo *ei) WARN_UNUSED;
void session_clear_cookie(struct request *r);
/* Forgets what is remembered of a session or of all of a user's, here and in other processes; revoked ones lose their
 * event streams too. */
void session_forget(struct server *s, const char *session_id);
void session_forget_user(struct server *s, const char *user_id, bool gone);
#endif
