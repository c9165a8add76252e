#ifndef DRIVE_API_SESSION_H
#define DRIVE_API_SESSION_H
/* Signing in and out, and what a login may ask besides files. Layer 2. */
#include "drive/api/client.h"

struct blob_conf;

/* Every call below returns ERR_OK when the server answered, with the verdict in *r; a transport error otherwise, with
 * r->outcome telling TIMEOUT, TRANSPORT, UNFINISHED (cancelled), WRONG (an answer that cannot be read) or UNKNOWN (a
 * write that was sent and got no answer). r is always filled. 429 is not waited out here. */
MAY_YIELD enum err api_probe(struct api *a, struct api_result *r); /* asks which calls exist: api_caps */
/* On a server with given logins: makes the one folder that all work stays in, and marks it as ours; fine when it is
 * there and ours. Refused when somebody else's folder has its name. */
MAY_YIELD enum err api_claim(struct api *a, struct api_result *r);
/* Removes that folder with all that is in it; fine when it is not there. Edit locks in it that drivesim left behind are
 * let go; refused with LOCKED, *left tells of the others. */
MAY_YIELD enum err api_unclaim(struct api *a, struct api_locks_left *left, struct api_result *r);
/* Always asks the server for a new session, which is this client's own and known to no other: for what is to be
 * measured, refused or signed out. */
MAY_YIELD enum err api_sign_in(struct api *a, const char *email, const char *password, struct api_result *r);
/* For all other work: goes on with the login's session that the space knows, if the server still takes it (asked by one
 * small call), since limiters count sign-ins; else as api_renew. */
MAY_YIELD enum err api_enter(struct api *a, const char *email, const char *password, struct api_result *r);
bool api_went_on(const struct api *a); /* it did so: nobody was signed in */
/* Signs in for a session that the space then knows. */
MAY_YIELD enum err api_renew(struct api *a, const char *email, const char *password, struct api_result *r);
MAY_YIELD enum err api_sign_out(struct api *a, struct api_result *r);
/* Connects the bucket, unless the server says that one is connected already: belong.h tells whether it is this one. */
MAY_YIELD enum err api_storage_config(struct api *a, const struct blob_conf *conf, struct api_result *r);
MAY_YIELD enum err api_heartbeat(struct api *a, struct api_result *r);
MAY_YIELD enum err api_storage(struct api *a, struct api_storage *out, struct api_result *r);

/* What is known of the session, without asking. */
void api_share_session(struct api *to, const struct api *from); /* same login and token, other connections */
struct sv api_session_token(const struct api *a); /* for requests made by hand; borrowed until the next call */
/* When that part of the life of its token is over, 0.5 for half of it; MONO_NEVER where the token does not tell. */
struct mono api_session_part(const struct api *a, double part);
/* Logins with the same tree share it; "" where a login's e-mail tells (owners and sub-users). Once signed in. */
const char *api_tree(const struct api *a);
#endif
