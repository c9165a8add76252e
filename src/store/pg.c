/* The doubtful decision: statements are prepared on first use, in a round trip of their own, and cached by the address
 * of their text. Comparing addresses makes the cache free of hashing SQL text; the price is the rule in the header that
 * the text lives as long as the pool. Behind a pooler nothing is prepared by name: the next transaction may come on
 * another session of the server, which knows nothing of it, or knows another client's by that name. */
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "store/pg_impl.h"
#include "store/pg_url.h"
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECT_TIMEOUT_US (15 * US_PER_S)
#define SLOW_LIMITS        4 /* of a pool, for one answer */

/* ---- one connection ---- */

void pg_conn_free(struct pg *c)
{
    if (c->conn) {
        loop_io_remove(&c->io);
        PQfinish(c->conn);
        c->pool->open--;
    }
    mem_free(c->stmts);
    mem_free(c);
}

bool pg_conn_broken(const struct pg *c)
{
    return c->dead || PQstatus(c->conn) != CONNECTION_OK;
}

static void on_io(struct io *io, uint32_t events)
{
    struct pg *c = container_of(io, struct pg, io);
    (void)events;
    if (c->waiting) {
        c->waiting = false;
        done_set(&c->ready);
    } else if (c->idle) { /* a notice, or the server closing the connection */
        if (!PQconsumeInput(c->conn) || pg_conn_broken(c)) {
            LOGD("pg", "idle connection closed by the server");
            pg_idle_unlink(c);
            pg_conn_free(c);
        }
    } else {
        loop_io_set(io, 0); /* borrowed and not asking: the next call looks */
    }
}

static struct mono limit_from(int64_t limit_us, struct mono now)
{
    return limit_us > 0 ? mono_add(now, limit_us) : MONO_NEVER;
}

/* The connection is of no use any more: what was asked on it may still be answered. */
static enum err given_up(struct pg *c, bool silent, struct errinfo *ei)
{
    char limit[32];
    c->dead = true;
    c->pool->silent = c->pool->silent || silent;
    return err_set(ei, ERR_DB_GONE, "database: no answer within %s", str_duration(limit, sizeof limit, c->limit_us));
}

/* A statement that is slow while others are answered gets more time than a server that is silent. */
static MAY_YIELD enum err wait_io(struct pg *c, uint32_t events, struct errinfo *ei)
{
    struct pollfd look = {.fd = c->io.fd, .events = (short)events}; /* EPOLLIN and EPOLLOUT are POLLIN and POLLOUT */
    bool silent = false;
    if (c->io.events != events)
        loop_io_set(&c->io, events);
    for (int i = 0; i < SLOW_LIMITS && !silent; i++) {
        c->waiting = true;
        if (done_wait_until(c->pool->loop, &c->ready, limit_from(c->limit_us, mono_now())))
            return ERR_OK;
        c->waiting = false;
        if (poll(&look, 1, 0) > 0)
            return ERR_OK; /* it was not the server that stalled, but we */
        silent = mono_diff(mono_now(), c->pool->answered) > c->limit_us / 2;
    }
    return given_up(c, silent, ei);
}

static void on_notice(void *arg, const PGresult *res)
{
    (void)arg;
    const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    bool warning = severity && strcmp(severity, "WARNING") == 0;
    if (warning)
        LOGW("pg", "%s", text ? text : "");
    else
        LOGD("pg", "%s: %s", severity ? severity : "NOTICE", text ? text : "");
}

/* What one mode of a pooler, or all of them, cannot let through. */
static const char *pooler_hint(struct sv text)
{
    static const char *const signs[] = {"pooling mode", "unsupported startup parameter"};
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (memmem(text.p, text.n, signs[i], strlen(signs[i])))
            return "; a pooler is in front of it: name the database itself";
    return "";
}

/* libpq's text ends in a line feed and may have several lines. */
enum err pg_conn_gone(struct pg *c, const char *doing, struct errinfo *ei)
{
    struct sv text = sv_trim(sv_of(PQerrorMessage(c->conn)));
    struct sv line = {"", 0};
    if (!sv_split(&text, '\n', &line) || line.n == 0)
        line = SV("the connection was closed");
    return err_set(ei, ERR_DB_GONE, "%s: " SV_FMT "%s", doing, SV_ARG(sv_trim(line)), pooler_hint(line));
}

static enum err connect_start(struct pg *c, struct errinfo *ei)
{
    /* What stands before dbname gives way to what the URL says. A dead peer is noticed within 15 s. */
    static const char *const keys[] = {"fallback_application_name",
                                       "client_encoding",
                                       "keepalives_idle",
                                       "keepalives_interval",
                                       "tcp_user_timeout",
                                       "dbname",
                                       NULL};
    const char *values[] = {"drivesim", "UTF8", "10", "5", "15000", c->pool->url, NULL};
    enum err err = pg_url_judge(c->pool->url, ei); /* each time: a service file may say something else by now */
    if (err)
        return err;
    c->conn = PQconnectStartParams(keys, values, 1);
    if (!c->conn)
        return err_set(ei, ERR_DB_GONE, "cannot connect to the database: out of memory");
    c->pool->open++;
    secret_add(sv_of(PQpass(c->conn))); /* wherever libpq found it: a file, a service, the environment */
    if (PQstatus(c->conn) == CONNECTION_BAD)
        return pg_conn_gone(c, "cannot connect to the database", ei);
    return ERR_OK;
}

/* libpq may change sockets between two polls (several addresses), so each wait registers anew. */
static MAY_YIELD enum err connect_wait(struct pg *c, struct errinfo *ei)
{
    int64_t limit_us = c->limit_us > 0 && c->limit_us < CONNECT_TIMEOUT_US ? c->limit_us : CONNECT_TIMEOUT_US;
    struct mono deadline = mono_add(mono_now(), limit_us);
    char limit[32];
    PostgresPollingStatusType st = PGRES_POLLING_WRITING;
    while (st != PGRES_POLLING_OK) {
        if (st == PGRES_POLLING_FAILED)
            return pg_conn_gone(c, "cannot connect to the database", ei);
        c->io = (struct io){.fd = PQsocket(c->conn), .fn = on_io};
        enum err err = loop_io_add(c->pool->loop, &c->io, st == PGRES_POLLING_READING ? EPOLLIN : EPOLLOUT, ei);
        if (err)
            return err;
        c->waiting = true;
        bool in_time = done_wait_until(c->pool->loop, &c->ready, deadline);
        c->waiting = false;
        loop_io_remove(&c->io);
        if (!in_time)
            return err_set(ei, ERR_DB_GONE, "cannot connect to the database: no answer within %s",
                           str_duration(limit, sizeof limit, limit_us));
        st = PQconnectPoll(c->conn);
    }
    c->io = (struct io){.fd = PQsocket(c->conn), .fn = on_io};
    return loop_io_add(c->pool->loop, &c->io, EPOLLIN, ei);
}

/* A pooler answers in the server's place, and makes up the process that it names. Asked once a pool. */
static MAY_YIELD enum err look_for_pooler(struct pg *c, struct errinfo *ei)
{
    PGresult *res = NULL;
    int64_t pid = 0;
    if (c->pool->way != PG_WAY_UNKNOWN)
        return ERR_OK;
    if (!PQsendQueryParams(c->conn, "SELECT pg_backend_pid()", 0, NULL, NULL, NULL, NULL, 0))
        return pg_conn_gone(c, "database", ei);
    enum err err = pg_conn_flush(c, ei);
    if (!err)
        err = pg_conn_finish(c, &res, ei);
    if (err)
        return err;
    bool told = res && PQntuples(res) == 1 && sv_to_i64(sv_of(PQgetvalue(res, 0, 0)), &pid);
    c->pool->way = told && pid == PQbackendPID(c->conn) ? PG_WAY_DIRECT : PG_WAY_POOLED;
    PQclear(res);
    if (c->pool->way == PG_WAY_POOLED)
        LOGD("pg", "a pooler is in front of the database: nothing is prepared");
    return ERR_OK;
}

enum err pg_conn_open(struct pg_pool *p, struct pg **out, struct errinfo *ei)
{
    struct pg *c = mem_zalloc(sizeof *c);
    c->pool = p;
    c->limit_us = p->limit_us;
    enum err err = connect_start(c, ei);
    if (!err)
        err = connect_wait(c, ei);
    if (err) {
        pg_conn_free(c);
        return err;
    }
    PQsetnonblocking(c->conn, 1);
    PQsetNoticeReceiver(c->conn, on_notice, NULL);
    if ((err = look_for_pooler(c, ei))) {
        pg_conn_free(c);
        return err;
    }
    LOGD("pg", "connected, backend %d", PQbackendPID(c->conn));
    *out = c;
    return ERR_OK;
}

/* Has the server closed it since it was last used? Asked of the kernel: the loop may not have seen it yet. */
bool pg_conn_alive(struct pg *c)
{
    char byte;
    ssize_t n = recv(PQsocket(c->conn), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0) /* a notice, or the farewell of a server that shuts down */
        return PQconsumeInput(c->conn) && !pg_conn_broken(c);
    return n < 0;
}

enum pg_conn_state pg_conn_state(const struct pg *c)
{
    switch (PQtransactionStatus(c->conn)) {
    case PQTRANS_INTRANS:
    case PQTRANS_INERROR:
        return PG_CONN_IN_TRANSACTION;
    case PQTRANS_ACTIVE:
        return PG_CONN_BUSY;
    default:
        return PG_CONN_IDLE;
    }
}

/* ---- sending and receiving ---- */

enum err pg_conn_flush(struct pg *c, struct errinfo *ei)
{
    for (;;) {
        int r = PQflush(c->conn);
        if (r < 0)
            return pg_conn_gone(c, "database", ei);
        c->left = true;
        if (r == 0)
            return ERR_OK;
        enum err err = wait_io(c, EPOLLIN | EPOLLOUT, ei);
        if (err)
            return err;
        /* The server may be sending too: reading keeps both sides from waiting for each other. */
        if (!PQconsumeInput(c->conn))
            return pg_conn_gone(c, "database", ei);
    }
}

enum err pg_conn_read(struct pg *c, struct errinfo *ei)
{
    enum err err = wait_io(c, EPOLLIN, ei);
    if (!err && !PQconsumeInput(c->conn))
        err = pg_conn_gone(c, "database", ei);
    return err;
}

enum err pg_conn_next(struct pg *c, PGresult **out, struct errinfo *ei)
{
    while (PQisBusy(c->conn)) {
        enum err err = pg_conn_read(c, ei);
        if (err)
            return err;
    }
    *out = PQgetResult(c->conn);
    if (*out) {
        c->pool->answered = mono_now();
        c->pool->silent = false;
    }
    return ERR_OK;
}

static bool result_failed(const PGresult *res)
{
    ExecStatusType st = PQresultStatus(res);
    return st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK && st != PGRES_SINGLE_TUPLE && st != PGRES_EMPTY_QUERY;
}

enum err pg_conn_result_error(struct pg *c, const PGresult *res, struct errinfo *ei)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);
    const char *context = PQresultErrorField(res, PG_DIAG_CONTEXT);
    if (!state) /* libpq's own: the connection broke */
        return pg_conn_gone(c, "database", ei);
    LOGD("pg", "%s: %s; %s; %s", state, text ? text : "", detail ? detail : "", context ? context : "");
    bool ended = strncmp(state, "57P0", 4) == 0; /* the server ends this session */
    const char *hint = pooler_hint(sv_of(text));
    enum err err = err_set(ei,
                           *hint   ? ERR_ENV
                           : ended ? ERR_DB_GONE
                                   : ERR_DB,
                           "%s%s", text ? text : "database error", hint);
    if (ei)
        snprintf(ei->sqlstate, sizeof ei->sqlstate, "%s", state);
    return err;
}

enum err pg_conn_finish(struct pg *c, PGresult **out, struct errinfo *ei)
{
    enum err err = ERR_OK;
    PGresult *kept = NULL;
    for (;;) {
        PGresult *res = NULL;
        enum err lost = pg_conn_next(c, &res, err ? NULL : ei);
        if (lost) {
            err = err ? err : lost;
            break;
        }
        if (!res)
            break;
        if (result_failed(res)) {
            if (!err)
                err = pg_conn_result_error(c, res, ei);
            PQclear(res);
            if (pg_conn_broken(c))
                break;
        } else {
            PQclear(kept);
            kept = res;
        }
    }
    if (!err && out)
        *out = kept;
    else
        PQclear(kept);
    return err;
}

/* ---- prepared statements ---- */

static struct pg_stmt *stmt_slot(struct pg_stmt *table, unsigned cap, const char *sql)
{
    unsigned i = (unsigned)(((uintptr_t)sql * UINT64_C(0x9E3779B97F4A7C15)) >> 40) & (cap - 1);
    while (table[i].sql && table[i].sql != sql)
        i = (i + 1) & (cap - 1);
    return &table[i];
}

static void stmt_grow(struct pg *c)
{
    unsigned cap = c->cap_stmts ? c->cap_stmts * 2 : 32;
    struct pg_stmt *table = mem_zalloc(cap * sizeof *table);
    for (unsigned i = 0; i < c->cap_stmts; i++)
        if (c->stmts[i].sql)
            *stmt_slot(table, cap, c->stmts[i].sql) = c->stmts[i];
    mem_free(c->stmts);
    c->stmts = table;
    c->cap_stmts = cap;
}

static MAY_YIELD enum err prepared(struct pg *c, const char *sql, int n, unsigned *id, struct errinfo *ei)
{
    if (c->n_stmts * 2 >= c->cap_stmts)
        stmt_grow(c);
    struct pg_stmt *slot = stmt_slot(c->stmts, c->cap_stmts, sql);
    if (!slot->sql) {
        char name[16];
        snprintf(name, sizeof name, "s%u", ++c->last_stmt);
        if (!PQsendPrepare(c->conn, name, sql, n, NULL))
            return pg_conn_gone(c, "database", ei);
        enum err err = pg_conn_flush(c, ei);
        if (!err)
            err = pg_conn_finish(c, NULL, ei);
        c->left = false; /* it was looked at, not run */
        if (err)
            return err;
        slot->sql = sql;
        slot->id = c->last_stmt;
        c->n_stmts++;
    }
    *id = slot->id;
    return ERR_OK;
}

static MAY_YIELD enum err send_prepared(struct pg *c, const char *sql, int n, const char *const *params, bool by_row,
                                        struct errinfo *ei)
{
    unsigned id = 0;
    char name[16];
    c->left = false;
    bool named = c->pool->way == PG_WAY_DIRECT;
    enum err err = named ? prepared(c, sql, n, &id, ei) : ERR_OK;
    if (err)
        return err;
    snprintf(name, sizeof name, "s%u", id);
    int sent = named ? PQsendQueryPrepared(c->conn, name, n, params, NULL, NULL, 0)
                     : PQsendQueryParams(c->conn, sql, n, NULL, params, NULL, NULL, 0);
    if (!sent)
        return pg_conn_gone(c, "database", ei);
    if (by_row)
        PQsetSingleRowMode(c->conn);
    return pg_conn_flush(c, ei);
}

enum err pg_query(struct pg *c, const char *sql, int n, const char *const *params, struct pg_result **out,
                  struct errinfo *ei)
{
    enum err err = send_prepared(c, sql, n, params, false, ei);
    return err ? err : pg_conn_finish(c, out, ei);
}

enum err pg_script(struct pg *c, const char *sql, struct errinfo *ei)
{
    c->left = false;
    if (!PQsendQuery(c->conn, sql))
        return pg_conn_gone(c, "database", ei);
    enum err err = pg_conn_flush(c, ei);
    return err ? err : pg_conn_finish(c, NULL, ei);
}

/* ---- row by row ---- */

struct cancel { /* PQcancel blocks on a connection of its own, so it runs in a thread */
    struct loop *loop;
    PGcancel *handle;
    struct done done;
};

static void cancel_done(void *arg)
{
    struct cancel *k = arg;
    done_set(&k->done);
}

static void *cancel_thread(void *arg)
{
    struct cancel *k = arg;
    char why[256] = "";
    if (!PQcancel(k->handle, why, sizeof why))
        LOGD("pg", "cancel: %s", why);
    loop_post(k->loop, cancel_done, k);
    return NULL;
}

/* Returns when the request has been delivered, so that it cannot hit the connection's next statement. */
static MAY_YIELD void cancel(struct pg *c)
{
    struct cancel k = {.loop = c->pool->loop, .handle = PQgetCancel(c->conn)};
    pthread_t thread;
    if (!k.handle)
        return;
    if (pthread_create(&thread, NULL, cancel_thread, &k) == 0) {
        done_wait(k.loop, &k.done);
        pthread_join(thread, NULL);
    }
    PQfreeCancel(k.handle);
}

enum err pg_each(struct pg *c, const char *sql, int n, const char *const *params,
                 bool (*fn)(void *arg, const struct pg_result *row), void *arg, struct errinfo *ei)
{
    enum err err = send_prepared(c, sql, n, params, true, ei);
    bool stopped = false;
    while (!err) {
        PGresult *res = NULL;
        err = pg_conn_next(c, &res, ei);
        if (err || !res)
            break;
        if (result_failed(res)) {
            err = stopped ? ERR_OK
                          : pg_conn_result_error(c, res, ei); /* stopped: "canceling statement due to user request" */
        } else if (PQresultStatus(res) == PGRES_SINGLE_TUPLE && !stopped) {
            stopped = !fn(arg, res);
            if (stopped)
                cancel(c);
        }
        PQclear(res);
    }
    if (err && !pg_conn_broken(c))
        (void)!pg_conn_finish(c, NULL, NULL);
    return err;
}
