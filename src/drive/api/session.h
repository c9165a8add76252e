#ifndef DRIVE_API_SESSION_H
#define DRIVE_API_SESSION_H
/* A signed-in app: a peer (connections of its own) plus its session, and the calls about accounts. An idle struct api
 * costs a few hundred bytes besides its peer. Owned by one loop's thread; several coroutines may share one. Layer 2. */
#include "drive/api/space.h"
#include "drive/api/types.h"
#include "net/httpc.h"

struct blob_conf;
struct api;
struct cmd_ctx;
struct loop;
struct target;

struct api_conf {
    const char *base_url, *source_addr; /* source_addr NULL: the system's choice */
    const struct target *target;        /* for the options of a dialect's own; NULL: none */
    struct api_space *space;            /* NULL: the client's own */
    struct loop *loop;
    const char *app_version; /* told with the heartbeat; NULL: ours */
    struct httpc *http;
    size_t listing_most;        /* entries; a listing of more fails. 0: DRIVE_LISTING_MOST */
    int64_t timeout_us;         /* of a request, 0: 60 s; transfers get as much again for each 4 MiB */
    int64_t stream_idle_us;     /* without a byte a stream is dead, 0: 75 s, as servers send a comment every 30 s */
    int64_t stream_bytes_per_s; /* its stream is read no faster, through the least buffers; 0: as it comes */
};
/* For this command's target. */
struct api_conf api_conf_of(const struct cmd_ctx *ctx);
/* Picks the dialect by the URL's scheme, or by the target's --dialect. */
enum err api_new(struct api **out, const struct api_conf *conf, struct errinfo *ei) WARN_UNUSED;
void api_free(struct api **a);              /* no call of it may be running */
struct httpc_peer *api_peer(struct api *a); /* NULL: the dialect has none */
void api_cancel(struct api *a); /* what it is asking ends with ERR_CANCELLED; NULL: what all clients are asking */
/* Requests that calls took besides their first one, since this was last asked; pages of listings are api_pages. */
unsigned api_extra_requests(struct api *a);
unsigned api_caps(const struct api *a); /* what is known so far */
void api_set_caps(struct api *a, unsigned caps);
void api_share_session(struct api *to, const struct api *from); /* same login and token, other connections */
struct sv api_session_token(const struct api *a); /* for requests made by hand; borrowed until the next call */
/* When that part of the life of its token is over, 0.5 for half of it; MONO_NEVER where the token does not tell. */
struct mono api_session_part(const struct api *a, double part);
/* Logins with the same tree share it; "" where a login's e-mail tells (owners and sub-users). Once signed in. */
const char *api_tree(const struct api *a);
/* Tells a dialect whose ids this program gave where an earlier run left one of them; name NULL: deleted. */
void api_place(struct api *a, const char *id, const char *parent, const char *name);

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
/* Connects the bucket, unless the server says that this very one is connected already. */
MAY_YIELD enum err api_storage_config(struct api *a, const struct blob_conf *conf, struct api_result *r);
MAY_YIELD enum err api_heartbeat(struct api *a, struct api_result *r);
MAY_YIELD enum err api_storage(struct api *a, struct api_storage *out, struct api_result *r);
#endif
