#ifndef STORE_PG_IMPL_H
#define STORE_PG_IMPL_H
/* What pg.c (one connection, by libpq) and pg_pool.c share. */
#include "store/pg.h"

struct pg_stmt { /* a slot of the open-addressing table; sql NULL: free */
    const char *sql;
    unsigned id;
};

struct pg {
    struct pg_pool *pool;
    struct pg_conn *conn; /* libpq's PGconn */
    struct io io;
    struct done ready;
    bool waiting; /* a coroutine waits for ready */
    bool idle;    /* in the pool's list */
    bool left;    /* a byte of the current statement may have reached the server */
    bool dead;    /* given up: the server was silent for too long */
    bool alone;   /* the one that asks a silent server */
    int64_t limit_us;
    struct pg_stmt *stmts;
    unsigned n_stmts, cap_stmts, last_stmt;
    struct pg *next;
};

/* Whether a session of the server is ours for as long as the connection. */
enum pg_way { PG_WAY_UNKNOWN, PG_WAY_DIRECT, PG_WAY_POOLED };
struct pg_pool {
    struct loop *loop;
    enum pg_way way;
    char *url;
    struct sem slots;
    struct sem refused; /* one connection attempt at a time while the server refuses */
    struct pg *idle;    /* last given first taken: the hottest connection */
    unsigned open, lent;
    unsigned parked; /* slots held back, as the server gave no connection for them */
    struct mono regrow_at;
    int64_t limit_us;     /* 0: none */
    struct mono answered; /* when any connection last did */
    bool silent, trying;
    unsigned rolling_back;
    struct done rolled_back;
    struct mono retry_at;
    int64_t backoff_us; /* 0: the last attempt succeeded */
    uint64_t failures;  /* attempts that failed, and how the last one did */
    struct errinfo last_error;
};

MAY_YIELD enum err pg_conn_open(struct pg_pool *p, struct pg **out, struct errinfo *ei) WARN_UNUSED;
void pg_conn_free(struct pg *c);
bool pg_conn_broken(const struct pg *c);
bool pg_conn_alive(struct pg *c);
/* Ready for the next statement? A transaction may be open, or a caller's error path left results behind. */
enum pg_conn_state { PG_CONN_IDLE, PG_CONN_IN_TRANSACTION, PG_CONN_BUSY };
enum pg_conn_state pg_conn_state(const struct pg *c);
void pg_idle_unlink(struct pg *c);

/* ---- one statement, for whoever sends it ---- */
MAY_YIELD enum err pg_conn_flush(struct pg *c, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err pg_conn_read(struct pg *c, struct errinfo *ei) WARN_UNUSED; /* more of the answer */
/* The next result, NULL at the end of the statement. */
MAY_YIELD enum err pg_conn_next(struct pg *c, struct pg_result **out, struct errinfo *ei) WARN_UNUSED;
/* Reads to the end of the statement; keeps the last good result in *out (may be NULL) and the first error. */
MAY_YIELD enum err pg_conn_finish(struct pg *c, struct pg_result **out, struct errinfo *ei) WARN_UNUSED;
/* The error of libpq, its first line, and that of an answer. */
enum err pg_conn_gone(struct pg *c, const char *doing, struct errinfo *ei) WARN_UNUSED;
enum err pg_conn_result_error(struct pg *c, const struct pg_result *res, struct errinfo *ei) WARN_UNUSED;
#endif
