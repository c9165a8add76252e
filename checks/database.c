/* What Postgres itself counted: deadlocks since the command began (pg_stat_database), locks on files that outlived
 * their holders, transactions left open. */
#include "checks/check.h"

#include <inttypes.h>

enum err check_read_deadlocks(struct pg_pool *pg, int64_t *out, struct errinfo *ei)
{
    struct pg_result *res = NULL;
    enum err e =
        pg_run(pg, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", 0, NULL, &res, ei);
    if (e == ERR_OK)
        *out = pg_i64(res, 0, 0);
    pg_result_free(&res);
    return e;
}

static void look_at_idle_transactions(struct check_ctx *c, struct check_result *r)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(c->pg,
               "SELECT pid, extract(epoch FROM now() - xact_start)::bigint, left(query, 120) FROM pg_stat_activity"
               " WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND now() - xact_start > "
               "interval '5 s'",
               0, NULL, &res, &ei) == ERR_OK)
        for (int i = 0; i < pg_rows(res); i++)
            check_detail(r, "backend %s has held a transaction open for %s s after: %s", pg_str(res, i, 0),
                         pg_str(res, i, 1), pg_str(res, i, 2));
    pg_result_free(&res);
}

static void run(struct check_ctx *c, struct check_result *r)
{
    if (!c->pg) {
        check_not_run(r, "%s", err_message(&c->pg_why));
        return;
    }
    struct errinfo ei = {0};
    int64_t now = 0, before = c->since && c->since->known_pg ? c->since->deadlocks : 0;
    if (check_read_deadlocks(c->pg, &now, &ei) != ERR_OK) {
        check_not_run(r, "%s", err_message(&ei));
        return;
    }
    r->examined = 1;
    if (now > before)
        check_detail(r, "Postgres counted %" PRId64 " deadlocks %s; look for 'deadlock detected' in its log",
                     now - before, c->since && c->since->known_pg ? "since the start" : "since its counters began");
    look_at_idle_transactions(c, r);
    check_summary(r, "%" PRId64 " deadlocks, %" PRIu64 " wrong", now > before ? now - before : 0, r->wrong);
}

const struct check check_database = {"database", "deadlocks and forgotten transactions in Postgres", run};
