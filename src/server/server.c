/* Putting the server together, and taking it down: services first, then the parts in the order of their table, the
 * listening socket last; the reverse on the way down. */
#include "server/server.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/coro.h"
#include "net/httpc.h"
#include "net/work.h"
#include "server/access/session.h"
#include "server/events/events.h"
#include "server/events/presence.h"
#include "server/http/listen.h"
#include "server/jobs/jobs.h"
#include "server/meta/meta.h"
#include "server/objects/content.h"
#include "server/objects/storage.h"
#include "server/objects/sweeper.h"
#include "store/kv.h"
#include "store/pg.h"
#include <string.h>
#include <sys/resource.h>

#define TRY_US          US_PER_S /* between two tries to reach a service that is not there yet */
#define FDS_OF_OUR_OWN  24       /* standard streams, epoll, signals, the listening socket, Redis twice, a little air */
#define CONNECTIONS_MAX 100000

static const struct server_part *const parts[] = {
    &meta_part,    &presence_part, &events_part,  &session_part, &content_part,
    &storage_part, &jobs_part,     &sweeper_part, NULL,
};

/* Raises the soft limit of open files to the hard one and divides it: what the services need, the rest for clients. A
 * small limit makes a small server, not a broken one. */
static void plan_descriptors(const struct server_conf *conf, unsigned *pool, unsigned *threads, unsigned *store_threads,
                             size_t *conns)
{
    struct rlimit lim = {1024, 1024};
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
        lim.rlim_cur = lim.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
            getrlimit(RLIMIT_NOFILE, &lim);
    }
    size_t files = lim.rlim_cur == RLIM_INFINITY ? CONNECTIONS_MAX : (size_t)lim.rlim_cur;
    *pool = conf->pool_size ? (unsigned)conf->pool_size : files < 256 ? 2 : 16;
    *threads = files < 256 ? 2 : 8;
    *store_threads = files < 256 ? 3 : files / 16 < 256 ? (unsigned)files / 16 : 256;
    size_t own = FDS_OF_OUR_OWN + *pool + 2 * (*threads + *store_threads);
    *conns = files > own + 8 ? files - own : 8;
    if (files < 256)
        *conns = files / 4 > 4 ? files / 4 : 4;
    if (conf->max_connections && (size_t)conf->max_connections < *conns)
        *conns = (size_t)conf->max_connections;
}

enum err server_new(struct server **out, struct loop *l, const struct server_conf *conf, struct errinfo *ei)
{
    struct server *s = mem_zalloc(sizeof *s);
    unsigned pool, threads;
    s->loop = l;
    s->conf = conf;
    s->started = mono_now();
    plan_descriptors(conf, &pool, &threads, &s->store_threads, &s->max_conns);
    s->faults = conf->faults;
    char *faulty_url = faults_database_url(&s->faults, conf->database_url);
    enum err err = pg_pool_new(&s->pg, l, faulty_url ? faulty_url : conf->database_url, pool, ei);
    mem_free(faulty_url);
    if (!err)
        err = kv_new(&s->kv, l, conf->redis_url, ei);
    if (!err)
        err = httpc_new(&s->httpc, l, &(struct httpc_conf){0}, ei);
    if (err) {
        server_free(&s);
        return err;
    }
    s->work = work_new(l, threads);
    *out = s;
    return ERR_OK;
}

static MAY_YIELD enum err reach_postgres(struct server *s, struct errinfo *why)
{
    return pg_run(s->pg, "SELECT 1", 0, NULL, NULL, why);
}

static MAY_YIELD enum err reach_redis(struct server *s, struct errinfo *why)
{
    return kv_ready(s->kv, mono_add(mono_now(), TRY_US), why);
}

/* Whether it may get better by itself: not when Postgres spoke, and said something else than that it is not ready. */
static bool may_come(const struct errinfo *why)
{
    return !strstr(why->msg, "FATAL") || strstr(why->msg, "the database system is") || strstr(why->msg, "too many") ||
           strstr(why->msg, "connection slots");
}

/* Whatever starts a machine's services starts them in any order, so one that is not there yet is waited for. */
static MAY_YIELD enum err await(struct server *s, const char *name,
                                enum err (*reach)(struct server *, struct errinfo *), struct mono began,
                                struct errinfo *ei)
{
    struct errinfo why;
    char left_text[32];
    for (;;) {
        struct mono next = mono_add(mono_now(), TRY_US);
        enum err err = reach(s, &why);
        if (!err)
            return ERR_OK;
        if (s->stopping)
            return err_set(ei, ERR_INTERRUPTED, "stopped while it waited for %s", name);
        int64_t left = s->conf->wait_us - mono_diff(mono_now(), began);
        if (left <= 0 || !may_come(&why))
            return err_set(ei, ERR_ENV, "%s cannot be used: %s: start it, or correct the setting%s", name,
                           err_message(&why), may_come(&why) ? "; --wait TIME waits longer" : "");
        LOGW("server", "waiting for %s, %s left: %s", name, str_duration(left_text, sizeof left_text, left),
             err_message(&why));
        coro_sleep_until(s->loop, next);
    }
}

static MAY_YIELD enum err reach_services(struct server *s, struct errinfo *ei)
{
    struct mono began = mono_now();
    enum err err = await(s, "Postgres (DATABASE_URL)", reach_postgres, began, ei);
    return err ? err : await(s, "Redis (REDIS_URL)", reach_redis, began, ei);
}

enum err server_start(struct server *s, struct errinfo *ei)
{
    enum err err = reach_services(s, ei);
    while (!err && parts[s->parts_started]) {
        err = parts[s->parts_started]->start(s, ei);
        s->parts_started += !err;
    }
    pg_pool_set_limit(s->pg, s->conf->db_timeout_us); /* not before: a schema may take its time */
    if (!err)
        err = listener_new(&s->listener, s, s->conf->listen, (int)s->conf->port, s->max_conns, ei);
    return err;
}

int server_port(const struct server *s)
{
    return listener_port(s->listener);
}

void server_stop(struct server *s, int64_t grace_us)
{
    s->stopping = true;
    if (s->listener)
        listener_stop(s->listener, grace_us);
    while (s->parts_started > 0) {
        const struct server_part *p = parts[--s->parts_started];
        if (p->stop)
            p->stop(s);
    }
}

void server_free(struct server **sp)
{
    struct server *s = *sp;
    if (!s)
        return;
    faults_sum_up(&s->faults);
    listener_free(&s->listener);
    if (s->work)
        work_free(&s->work);
    if (s->httpc)
        httpc_free(&s->httpc);
    if (s->kv)
        kv_free(&s->kv);
    if (s->pg)
        pg_pool_free(&s->pg);
    MEM_FREE(*sp);
}
