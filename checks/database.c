/* What Postgres itself counted and showed: deadlocks since the command began (pg_stat_database), transactions left
 * open, and those that stood still during the run with what they had locked (sim/run/stills.c watched for them: waiting
 * for no processor, disk or lock, which would be the machine's business). */
#include "checks/check.h"
#include "net/coro.h"

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

/* A backend may keep what it counted to itself for so long when it has nothing else to do; worth the time only when the
 * run saw answers that a deadlock may have caused. */
#define COUNTS_LATE_US (11 * US_PER_S)

static bool saw_server_errors(const struct check_ctx *c)
{
    for (size_t i = 0; c->journal && i < c->journal->n; i++)
        if (c->journal->ops[i].outcome == OUT_SERVER)
            return true;
    return false;
}

static MAY_YIELD enum err count_deadlocks(struct check_ctx *c, int64_t before, int64_t *out, struct errinfo *ei)
{
    struct mono until = mono_add(mono_now(), c->since && saw_server_errors(c) ? COUNTS_LATE_US : 0);
    enum err e;
    while ((e = check_read_deadlocks(c->pg, out, ei)) == ERR_OK && *out <= before && !mono_passed(until) &&
           *c->cmd->interrupts < 2)
        coro_sleep_until(c->cmd->loop, mono_add(mono_now(), US_PER_S));
    return e;
}

static uint64_t judge_stills(const struct check_ctx *c, struct check_result *r)
{
    uint64_t n = 0;
    char at[32];
    for (size_t i = 0; c->journal && i < c->journal->n_troubles; i++) {
        const struct journal_trouble *t = &c->journal->troubles[i];
        if (t->kind != LEDGER_STOOD_STILL)
            continue;
        n++;
        check_detail(r, "a writing transaction stalled, open for %.1f s at %s: %s; look: pg_stat_activity",
                     (double)(t->to_us - t->from_us) / 1e6, journal_time(at, t->wall_us), t->why);
    }
    return n;
}

static MAY_YIELD void look_at_idle_transactions(struct check_ctx *c, struct check_result *r)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(c->pg,
               "SELECT pid, extract(epoch FROM now() - xact_start)::bigint, left(query, 120) FROM pg_stat_activity"
               " WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND now() - xact_start > "
               "interval '5 s'",
               0, NULL, &res, &ei) == ERR_OK)
        for (int i = 0; i < pg_rows(res); i++)
            check_detail(r,
                         "backend %s has held a transaction open for %s s after: %s; look: SELECT * FROM"
                         " pg_stat_activity WHERE pid = %s",
                         pg_str(res, i, 0), pg_str(res, i, 1), pg_str(res, i, 2), pg_str(res, i, 0));
    pg_result_free(&res);
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    if (!check_pg(c, r))
        return;
    struct errinfo ei = {0};
    int64_t now = 0, before = c->since && c->since->known_pg ? c->since->deadlocks : 0;
    if (count_deadlocks(c, before, &now, &ei) != ERR_OK) {
        check_blocked(r, "%s", err_message(&ei));
        return;
    }
    r->examined = 1;
    if (now > before)
        check_detail(r, "Postgres counted %s %s; look for 'deadlock detected' in its log",
                     COUNTED((uint64_t)(now - before), "deadlock"),
                     c->since && c->since->known_pg ? "since the start" : "since its counters began");
    look_at_idle_transactions(c, r);
    uint64_t stills = judge_stills(c, r);
    check_summary(r, "%s, %s that stalled, %" PRIu64 " wrong",
                  COUNTED(now > before ? (uint64_t)(now - before) : 0, "deadlock"),
                  COUNTED(stills, "writing transaction"), r->wrong);
}

const struct check check_database = {"database", "deadlocks in Postgres, transactions that stalled or were forgotten",
                                     run};
