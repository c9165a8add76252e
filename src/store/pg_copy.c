#include "store/pg_copy.h"
#include "store/pg_impl.h"
#include <libpq-fe.h>

/* Sends the statement and reads on until the server wants to copy that way. */
static MAY_YIELD enum err begin(struct pg *c, const char *sql, ExecStatusType want, struct errinfo *ei)
{
    PGresult *res = NULL;
    c->left = false;
    if (!PQsendQuery(c->conn, sql))
        return pg_conn_gone(c, "database", ei);
    enum err err = pg_conn_flush(c, ei);
    if (!err)
        err = pg_conn_next(c, &res, ei);
    if (err)
        return err;
    bool fine = PQresultStatus(res) == want;
    if (!fine)
        err = pg_conn_result_error(c, res, ei);
    PQclear(res);
    if (!fine && !pg_conn_broken(c))
        (void)!pg_conn_finish(c, NULL, NULL);
    return err;
}

static MAY_YIELD enum err end(struct pg *c, uint64_t *rows, struct errinfo *ei)
{
    PGresult *res = NULL;
    enum err err = pg_conn_finish(c, &res, ei);
    *rows = 0;
    if (!err && res && !sv_to_u64(sv_of(PQcmdTuples(res)), rows))
        *rows = 0;
    PQclear(res);
    return err;
}

enum err pg_copy_out(struct pg *c, const char *sql, enum err (*take)(void *arg, struct sv line, struct errinfo *ei),
                     void *arg, uint64_t *rows, struct errinfo *ei)
{
    enum err err = begin(c, sql, PGRES_COPY_OUT, ei);
    *rows = 0;
    while (!err) {
        char *line = NULL;
        int n = PQgetCopyData(c->conn, &line, 1);
        if (n > 0) {
            err = take(arg, (struct sv){line, (size_t)n}, ei);
            PQfreemem(line);
            c->dead = c->dead || err;
        } else if (n == 0) {
            err = pg_conn_read(c, ei);
        } else {
            break; /* its end, or a failure: the result says which */
        }
    }
    return err ? err : end(c, rows, ei);
}

enum err pg_copy_in(struct pg *c, const char *sql, enum err (*give)(void *arg, struct sv *piece, struct errinfo *ei),
                    void *arg, uint64_t *rows, struct errinfo *ei)
{
    enum err err = begin(c, sql, PGRES_COPY_IN, ei), given = ERR_OK;
    struct sv piece = {NULL, 0};
    *rows = 0;
    if (err)
        return err;
    while (!err && !given && !(given = give(arg, &piece, ei)) && piece.n) {
        int queued = 0;
        while (!err && (queued = PQputCopyData(c->conn, piece.p, (int)piece.n)) == 0)
            err = pg_conn_flush(c, ei); /* what waits takes all the room that there is */
        if (!err && queued < 0)
            err = pg_conn_gone(c, "database", ei);
        if (!err)
            err = pg_conn_flush(c, ei); /* so that no more than a piece waits in memory */
    }
    if (!err && PQputCopyEnd(c->conn, given ? "given up" : NULL) < 0)
        err = pg_conn_gone(c, "database", ei);
    if (!err)
        err = pg_conn_flush(c, given ? NULL : ei);
    if (err)
        return given ? given : err;
    err = end(c, rows, given ? NULL : ei);
    return given ? given : err;
}
