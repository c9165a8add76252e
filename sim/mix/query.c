/* Requests are counted, not rows: our server notes each item of a request, at one time; TMA Cloud notes a request once,
 * under its id. Which of the two a log is, its own columns tell. */
#include "sim/mix/query.h"
#include "store/pg.h"
#include <string.h>

static const char head[] = "WITH log AS (\n"
                           "    SELECT action, user_id, date_trunc('hour', created_at) AS hour,\n"
                           "           CASE WHEN jsonb_exists(to_jsonb(a), 'request_id')\n"
                           "                THEN coalesce(to_jsonb(a) ->> 'request_id', to_jsonb(a) ->> 'id')\n"
                           "                ELSE concat_ws(' ', user_id, created_at) END AS request\n"
                           "    FROM audit_log a WHERE status = 'success'";
static const char middle[] = "\n"
                             "), done AS (\n"
                             "    SELECT DISTINCT action, user_id, hour, request FROM log\n"
                             "), acts AS (\n"
                             "    SELECT user_id, hour FROM done WHERE action IN (";
static const char tail[] = ")\n"
                           ")\n"
                           "SELECT action, count(*) AS actions FROM done GROUP BY action\n"
                           "UNION ALL SELECT '" COUNT_USERS "', count(DISTINCT user_id) FROM acts\n"
                           "UNION ALL SELECT '" COUNT_USER_HOURS "', count(DISTINCT (user_id, hour)) FROM acts\n"
                           "UNION ALL SELECT '" COUNT_BUSIEST_HOUR
                           "', max(n) FROM (SELECT count(*) AS n FROM acts GROUP BY hour) h HAVING max(n) > 0\n"
                           "ORDER BY actions DESC, action";

/* The text becomes part of the query: letters for month and zone, but nothing that ends a literal. */
static enum err judge_time(const char *option, const char *text, struct errinfo *ei)
{
    static const char fine[] = "0123456789-+:. TZtzabcdefghijklmnopqrsuvwxyABCDEFGHIJKLMNOPQRSUVWXY/_";
    if (!text || (*text && strspn(text, fine) == strlen(text) && strlen(text) < 60))
        return ERR_OK;
    return err_set(ei, ERR_USAGE, "--%s takes a time such as 2026-11-01 or 2026-11-01T08:00:00Z, not %s", option,
                   SHOWN(sv_of(text)));
}

enum err mix_query_judge(const struct mix_window *w, struct errinfo *ei)
{
    enum err err = judge_time("since", w->since, ei);
    return err ? err : judge_time("until", w->until, ei);
}

enum err mix_query_text(const struct mix_window *w, struct buf *out)
{
    enum err err = buf_append_str(out, head);
    if (!err && w->since)
        err = buf_appendf(out, "\n    AND created_at >= timestamptz '%s'", w->since);
    if (!err && w->until)
        err = buf_appendf(out, "\n    AND created_at < timestamptz '%s'", w->until);
    if (!err)
        err = buf_append_str(out, middle);
    if (!err)
        err = mix_counts_actions(out);
    return err ? err : buf_append_str(out, tail);
}

static MAY_YIELD enum err ask(struct pg *c, const char *text, struct mix_counts *counts, struct errinfo *ei)
{
    struct pg_result *r = NULL;
    enum err err = pg_script(c, "BEGIN TRANSACTION READ ONLY", ei);
    if (!err)
        err = pg_query(c, text, 0, NULL, &r, ei);
    for (int i = 0; !err && i < pg_rows(r); i++)
        err = mix_counts_add(counts, sv_of(pg_str(r, i, 0)), (uint64_t)pg_i64(r, i, 1), ei);
    pg_result_free(&r);
    return err; /* the pool rolls back */
}

enum err mix_query_run(struct loop *l, const char *url, const struct mix_window *w, struct mix_counts *counts,
                       struct errinfo *ei)
{
    struct buf text = BUF_INIT(16 << 10);
    struct pg_pool *pool = NULL;
    struct pg *c = NULL;
    struct errinfo why = {0};
    enum err err = mix_query_text(w, &text);
    if (!err)
        err = pg_pool_new(&pool, l, url, 1, &why);
    if (!err)
        err = pg_take(pool, &c, &why);
    if (!err)
        err = ask(c, buf_cstr(&text), counts, &why);
    if (err == ERR_DB && strcmp(why.sqlstate, "42P01") == 0)
        err = err_set(&why, ERR_ENV, "the database has no table audit_log");
    else if (err == ERR_DB)
        err = err_set(&why, ERR_ENV, "the audit log cannot be counted: %s", SHOWN(sv_of(err_message(&why))));
    if (c)
        pg_give(&c);
    pg_pool_free(&pool);
    buf_done(&text);
    if (ei)
        *ei = why;
    return err;
}
