#include "base/log.h"
#include "base/mem.h"
#include "store/pg_impl.h"
#include "store/pg_url.h"

#define BACKOFF_FIRST_US (50 * US_PER_MS)
#define BACKOFF_MAX_US   (1 * US_PER_S)
#define REGROW_US        (1 * US_PER_S)

void pg_idle_unlink(struct pg *c)
{
    struct pg **at = &c->pool->idle;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->idle = false;
}

enum err pg_pool_new(struct pg_pool **out, struct loop *l, const char *url, unsigned max, struct errinfo *ei)
{
    enum err err = pg_url_judge(url, ei);
    if (err)
        return err;
    struct pg_pool *p = mem_zalloc(sizeof *p);
    p->loop = l;
    p->url = mem_strdup(url);
    sem_init_coro(&p->slots, max);
    sem_init_coro(&p->refused, 1);
    *out = p;
    return ERR_OK;
}

void pg_pool_set_limit(struct pg_pool *p, int64_t us)
{
    p->limit_us = us;
}

void pg_pool_free(struct pg_pool **pp)
{
    struct pg_pool *p = *pp;
    if (!p)
        return;
    while (p->rolling_back)
        done_wait(p->loop, &p->rolled_back);
    while (p->idle) {
        struct pg *c = p->idle;
        p->idle = c->next;
        pg_conn_free(c);
    }
    mem_free(p->url);
    mem_free(p);
    *pp = NULL;
}

static struct pg *idle_pop(struct pg_pool *p)
{
    while (p->idle) {
        struct pg *c = p->idle;
        pg_idle_unlink(c);
        if (pg_conn_alive(c))
            return c;
        pg_conn_free(c);
    }
    return NULL;
}

/* One attempt, and what it means for those that come next. */
static MAY_YIELD enum err open_noting(struct pg_pool *p, struct pg **out)
{
    enum err err = pg_conn_open(p, out, &p->last_error);
    if (!err) {
        p->backoff_us = 0;
        return ERR_OK;
    }
    p->failures++;
    p->backoff_us = p->backoff_us == 0 ? BACKOFF_FIRST_US : p->backoff_us * 2;
    if (p->backoff_us > BACKOFF_MAX_US)
        p->backoff_us = BACKOFF_MAX_US;
    p->retry_at = mono_add(mono_now(), p->backoff_us);
    return err;
}

/* While the server refuses, one taker at a time tries, after the pause; those that queued behind it share its failure.
 */
static MAY_YIELD enum err open_patiently(struct pg_pool *p, struct pg **out, struct errinfo *ei)
{
    enum err err = ERR_OK;
    if (p->backoff_us == 0) {
        err = open_noting(p, out);
    } else {
        uint64_t failures = p->failures;
        sem_take(p->loop, &p->refused, 1);
        if (p->backoff_us > 0 && p->failures != failures) {
            err = p->last_error.code;
        } else {
            if (p->backoff_us > 0)
                coro_sleep_until(p->loop, p->retry_at);
            err = open_noting(p, out);
        }
        sem_give(&p->refused, 1);
    }
    if (err && ei)
        *ei = p->last_error;
    return err;
}

/* While the server refuses and others hold connections, it is not asked again before its time: theirs will do. */
static MAY_YIELD enum err obtain(struct pg_pool *p, bool limited, struct pg **out, struct errinfo *ei)
{
    *out = idle_pop(p);
    if (*out)
        return ERR_OK;
    if (limited && p->lent > 0 && p->backoff_us > 0 && !mono_passed(p->retry_at)) {
        if (ei)
            *ei = p->last_error;
        return p->last_error.code;
    }
    return open_patiently(p, out, ei);
}

/* Slots held back are tried again after a while. */
static void regrow(struct pg_pool *p)
{
    unsigned parked = p->parked;
    if (parked == 0 || !mono_passed(p->regrow_at))
        return;
    p->parked = 0;
    sem_give(&p->slots, parked);
}

static void park(struct pg_pool *p)
{
    if (p->parked++ == 0)
        LOGW("pg", "no more connections to the database: %u have to do; %s", p->open, err_message(&p->last_error));
    p->regrow_at = mono_add(mono_now(), REGROW_US);
}

/* One caller at a time asks a silent server. */
static bool may_ask(struct pg_pool *p, bool *alone)
{
    if (!p->silent)
        return true;
    *alone = !p->trying;
    p->trying = true;
    return *alone;
}

static MAY_YIELD enum err take(struct pg_pool *p, int64_t limit_us, struct pg **out, struct errinfo *ei)
{
    struct mono until = limit_us > 0 ? mono_add(mono_now(), limit_us) : MONO_NEVER;
    for (;;) {
        bool alone = false;
        regrow(p);
        if (!sem_take_until(p->loop, &p->slots, 1, until))
            return err_set(ei, ERR_DB_GONE, "all %u connections to the database are busy", p->lent);
        if (limit_us > 0 && !may_ask(p, &alone)) {
            sem_give(&p->slots, 1);
            return err_set(ei, ERR_DB_GONE, "the database does not answer");
        }
        enum err err = obtain(p, limit_us > 0, out, ei);
        if (!err) {
            p->lent++;
            (*out)->limit_us = limit_us;
            (*out)->alone = alone;
            return ERR_OK;
        }
        if (alone)
            p->trying = false;
        bool more = p->idle || p->lent > 0; /* connections that will do */
        if (limit_us == 0 || !more || mono_passed(until)) {
            sem_give(&p->slots, 1);
            return err;
        }
        if (p->idle)
            sem_give(&p->slots, 1);
        else
            park(p);
    }
}

enum err pg_take(struct pg_pool *p, struct pg **out, struct errinfo *ei)
{
    return take(p, p->limit_us, out, ei);
}

static void put_back(struct pg *c)
{
    struct pg_pool *p = c->pool;
    if (pg_conn_broken(c)) {
        pg_conn_free(c);
    } else {
        if (c->io.events != EPOLLIN)
            loop_io_set(&c->io, EPOLLIN);
        c->idle = true;
        c->next = p->idle;
        p->idle = c;
    }
    sem_give(&p->slots, 1);
}

static void roll_back(void *arg)
{
    struct pg *c = arg;
    struct pg_pool *p = c->pool;
    struct errinfo ei;
    if (pg_script(c, "ROLLBACK", &ei))
        LOGW("pg", "rollback: %s", err_message(&ei));
    put_back(c);
    if (--p->rolling_back == 0)
        done_set(&p->rolled_back);
}

void pg_give(struct pg **cp)
{
    struct pg *c = *cp;
    *cp = NULL;
    if (!c)
        return;
    c->pool->lent--;
    if (c->alone)
        c->pool->trying = c->alone = false;
    if (pg_conn_broken(c) || pg_conn_state(c) == PG_CONN_IDLE) {
        put_back(c);
    } else if (pg_conn_state(c) == PG_CONN_IN_TRANSACTION) {
        c->pool->rolling_back++;
        coro_spawn(c->pool->loop, roll_back, c);
    } else { /* a caller's error path left results behind: not worth saving */
        struct pg_pool *p = c->pool;
        pg_conn_free(c);
        sem_give(&p->slots, 1);
    }
}

unsigned pg_pool_open(const struct pg_pool *p)
{
    return p->open;
}

unsigned pg_pool_waiting(const struct pg_pool *p)
{
    return (unsigned)sem_waiting(&p->slots);
}

static MAY_YIELD enum err run(struct pg_pool *p, int64_t limit_us, const char *sql, int n, const char *const *params,
                              struct pg_result **out, struct errinfo *ei)
{
    for (int attempt = 1;; attempt++) {
        struct pg *c = NULL;
        enum err err = take(p, limit_us, &c, ei);
        if (err)
            return err;
        err = pg_query(c, sql, n, params, out, ei);
        bool again = err == ERR_DB_GONE && !c->left && !c->dead && attempt == 1;
        pg_give(&c);
        if (!again)
            return err;
    }
}

enum err pg_run(struct pg_pool *p, const char *sql, int n, const char *const *params, struct pg_result **out,
                struct errinfo *ei)
{
    return run(p, p->limit_us, sql, n, params, out, ei);
}

enum err pg_run_long(struct pg_pool *p, const char *sql, int n, const char *const *params, struct pg_result **out,
                     struct errinfo *ei)
{
    return run(p, 0, sql, n, params, out, ei);
}
