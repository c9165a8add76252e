#ifndef DRIVE_API_CLIENT_H
#define DRIVE_API_CLIENT_H
/* A client of a server: connections of its own (a peer), the dialect that is spoken over them, and what is known of the
 * server. An idle struct api costs a few hundred bytes besides its peer. Owned by one loop's thread; several coroutines
 * may share one. Layer 2. */
#include "drive/api/space.h"
#include "drive/api/types.h"
#include "net/httpc.h"

struct api;
struct cmd_ctx;
struct loop;
struct target;

struct api_conf {
    const char *base_url, *source_addr; /* source_addr NULL: the system's choice */
    const struct target *target;        /* for the options of a dialect's own; NULL: none */
    struct api_space *space;            /* NULL: the client's own */
    struct loop *loop;
    struct budget *budget;   /* calls wait out what they are refused for a spent one (budget.h); NULL: they return it */
    const char *app_version; /* told with the heartbeat; NULL: ours */
    struct httpc *http;
    uint64_t *requests;         /* of each cause (CAUSE_COUNT): raised as they are sent, while the client lives; NULL */
    enum cause cause;           /* of what it asks until api_cause says another */
    unsigned keep;              /* idle connections; what requests at the same time opened besides is closed. 0: all */
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
/* Why it asks what it asks from now on: its requests are counted under that. */
void api_cause(struct api *a, enum cause cause);
unsigned api_caps(const struct api *a); /* what is known so far */
void api_set_caps(struct api *a, unsigned caps);
/* Tells a dialect whose ids this program gave where an earlier run left one of them; name NULL: deleted. */
void api_place(struct api *a, const char *id, const char *parent, const char *name);
/* What such a dialect knows it to be called, numbered where its name was taken; NULL: unknown, and in the others. */
const char *api_placed_name(const struct api *a, const char *id);
#endif
