#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H
/* The reference server as a whole: its configuration, the services it stands on, and its parts. One process, one
 * thread, one loop; only libs3 and crypt run in worker threads. Handlers reach everything through request->server.
 * Layer 3. */
#include "base/clock.h"
#include "base/err.h"
#include "server/faults.h"
#include "server/metrics.h"

struct loop;
struct pg_pool;
struct kv;
struct blob;
struct work;
struct httpc;
struct listener;
struct sessions;
struct hub;
struct storage;
struct content;
struct meta;
struct jobs;
struct presence;
struct sweeper;

struct server_conf { /* from the environment, then the working folder's .env; options win over both */
    const char *listen;
    int64_t port;
    const char *database_url, *redis_url, *jwt_secret, *file_encryption_key, *app_env, *backend_url, *log_level;
    int64_t max_connections; /* 0: from the limit of open files */
    int64_t max_sessions;    /* signed in at once; 0: no limit */
    int64_t max_upload_mb, upload_memory_mb;
    int64_t max_upload_bytes, upload_memory_bytes;                            /* the same */
    int64_t pool_size;                                                        /* Postgres connections */
    int64_t request_budget, upload_budget, login_budget, storage_test_budget; /* 0: none */
    int64_t stream_limit;                                                     /* a login; 0: none */
    int64_t stream_backlog_bytes; /* what may wait for a stream's client to read it */
    int64_t token_lifetime_us, idle_timeout_us, head_timeout_us, body_timeout_us, keepalive_us;
    int64_t wait_us;       /* for Postgres and Redis to be there at the start */
    int64_t db_timeout_us; /* a database that is silent for so long is given up: 503 */
    int64_t lock_min_us;   /* shortest lease of an edit lock that may be asked for */
    int64_t bcrypt_cost;
    bool desktop_only, insecure_cookies;
    struct opt_list fault_args; /* --fault, as given */
    struct faults faults;
    char *owned[16]; /* strings that conf.c read */
};

struct server {
    const struct server_conf *conf;
    struct loop *loop;
    struct pg_pool *pg;
    struct kv *kv;
    struct work *work;
    struct httpc *httpc;
    struct blob *blob; /* NULL until a bucket is connected */
    struct listener *listener;
    struct sessions *sessions;
    struct hub *hub;
    struct storage *storage;
    struct content *content;
    struct meta *meta;
    struct jobs *jobs;
    struct presence *presence;
    struct sweeper *sweeper;
    struct metrics metrics;
    struct faults faults; /* planted: none but for judging the judge */
    struct mono started;
    char epoch[32]; /* of this database: the first half of a cursor */
    size_t max_conns, parts_started;
    unsigned store_threads; /* for the store's blocking calls: each may hold a connection to it */
    bool stopping;          /* set before server_stop by who wants server_start to give up */
};

/* A part of the server with something to start and stop; rows of the table in server.c, started in its order and
 * stopped in the reverse. start may yield and fail: then the server does not come up, the
 * part's own stop is not called and those before it are stopped. */
struct server_part {
    const char *name;
    MAY_YIELD enum err (*start)(struct server *s, struct errinfo *ei);
    MAY_YIELD void (*stop)(struct server *s); /* may be NULL */
};

/* Publishes a committed change: channel drive:events:<account>, cursor <epoch>-<seq>; data is the event's "data"
 * object. Call it in commit order for an account. Never blocks; while Redis is down the streams get `resync`
 * afterwards. */
struct buf;
void events_publish(struct server *s, const char *account_id, int64_t seq, const char *type, const struct buf *data);

MAY_YIELD enum err server_new(struct server **out, struct loop *l, const struct server_conf *conf,
                              struct errinfo *ei) WARN_UNUSED;
/* Connects, starts the parts, listens. Postgres and Redis are waited for, at most conf->wait_us, with a line a second;
 * ERR_ENV when they are still away then, ERR_INTERRUPTED when s->stopping was set meanwhile. */
MAY_YIELD enum err server_start(struct server *s, struct errinfo *ei) WARN_UNUSED;
int server_port(const struct server *s);
/* Finishes what is being answered (at most grace_us), closes streams and idle connections, stops the parts. */
MAY_YIELD void server_stop(struct server *s, int64_t grace_us);
MAY_YIELD void server_free(struct server **s);
#endif
