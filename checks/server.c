/* What the server says of itself in /metrics: unexpected 5xx answers that it counted, and event streams that it still
 * holds although every app has left. A server without these figures is "not offered": the run's own 5xx answers are
 * failures of their operations in any case. */
#include "base/mem.h"
#include "checks/evidence/others.h"
#include "drive/api/scrape.h"
#include "net/coro.h"

#include <inttypes.h>

#define ERRORS   "drive_server_errors_total"
#define REQUESTS "drive_requests_total"
#define ALONE_US (1500 * US_PER_MS)

enum err check_read_metric(struct cmd_ctx *ctx, const char *name, int64_t *out, struct errinfo *ei)
{
    struct buf text;
    double value;
    if (!target_shows_inside(ctx->target))
        return err_set(ei, ERR_NOTFOUND, "not offered: a server of this kind has no /metrics");
    if (!ctx->target->url)
        return err_set(ei, ERR_ENV, "TMA_URL is not set");
    enum err e = scrape(ctx->http, ctx->target->url, 10 * US_PER_S, cmd_counters(ctx, CAUSE_CHECK), &text, ei);
    if (e == ERR_NOTFOUND || (e == ERR_OK && !scrape_value(buf_cstr(&text), name, &value)))
        e = err_set(ei, ERR_NOTFOUND, "not offered: the server's /metrics has no %s", name);
    else if (e == ERR_OK)
        *out = (int64_t)value;
    buf_done(&text);
    return e;
}

static MAY_YIELD enum err read_clock(struct pg_pool *pg, int64_t *out, struct errinfo *ei)
{
    struct pg_result *res = NULL;
    enum err e = pg_run(pg, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", 0, NULL, &res, ei);
    if (e == ERR_OK)
        *out = pg_i64(res, 0, 0);
    pg_result_free(&res);
    return e;
}

void check_baseline_take(struct cmd_ctx *ctx, struct check_baseline *out)
{
    struct errinfo ei;
    struct pg_pool *pg = NULL;
    *out = (struct check_baseline){0};
    if (ctx->target->database_url && target_shows_inside(ctx->target) &&
        pg_pool_new(&pg, ctx->loop, ctx->target->database_url, 1, &ei) == ERR_OK) {
        out->known_pg = check_read_deadlocks(pg, &out->deadlocks, &ei) == ERR_OK;
        out->known_overrun = check_read_overrun(pg, &out->overrun, &ei) == ERR_OK;
        out->known_clock = read_clock(pg, &out->clock_us, &ei) == ERR_OK;
        out->wall_us = wall_now().us;
        if (check_read_owner(ctx, pg, out->owner, sizeof(out->owner), &ei) != ERR_OK)
            out->owner[0] = '\0';
        check_read_history(pg, out->history, sizeof(out->history));
        pg_pool_free(&pg);
    }
    out->known_server = check_read_metric(ctx, ERRORS, &out->server_errors, &ei) == ERR_OK;
    out->known_streams = check_read_metric(ctx, CHECK_STREAMS, &out->streams, &ei) == ERR_OK;
}

/* Nobody but us asks the server for anything: streams that are open then belong to nobody. */
static MAY_YIELD bool alone(struct cmd_ctx *ctx)
{
    int64_t before, after;
    struct errinfo ei;
    if (check_read_metric(ctx, REQUESTS, &before, &ei) != ERR_OK)
        return false;
    coro_sleep_until(ctx->loop, mono_add(mono_now(), ALONE_US));
    return check_read_metric(ctx, REQUESTS, &after, &ei) == ERR_OK && after == before + 1; /* our own question */
}

static MAY_YIELD void judge_streams(struct check_ctx *c, struct check_result *r)
{
    int64_t left = c->left[CHECK_REST_STREAMS];
    if (left > 0 && alone(c->cmd))
        check_detail(r,
                     "the server holds %" PRId64
                     " more event streams than when the command began, though no client is left"
                     "; look: GET /metrics, %s",
                     left, CHECK_STREAMS);
}

/* One row a member: its key, whether it is known, its value. */
static const struct {
    const char *key;
    size_t known, value;
} members[] = {
#define MEMBER(key, known, value)                                                                                      \
    {                                                                                                                  \
        key, offsetof(struct check_baseline, known), offsetof(struct check_baseline, value)                            \
    }
    MEMBER("deadlocks", known_pg, deadlocks),
    MEMBER("server_errors", known_server, server_errors),
    MEMBER("bytes_over_limits", known_overrun, overrun),
    MEMBER("streams", known_streams, streams),
    MEMBER("database_clock_us", known_clock, clock_us),
    MEMBER("clock_us", known_clock, wall_us),
#undef MEMBER
};

char *check_baseline_json(const struct check_baseline *b)
{
    struct buf text = BUF_INIT(4096);
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w, NULL);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const char *base = (const char *)b;
        if (*(const bool *)(base + members[i].known))
            jsonw_i64(&w, members[i].key, *(const int64_t *)(const void *)(base + members[i].value));
    }
    if (b->owner[0])
        jsonw_str(&w, "owner", b->owner);
    if (b->history[0])
        jsonw_str(&w, "history", b->history);
    jsonw_end_object(&w);
    return buf_take(&text, NULL);
}

void check_baseline_read(struct check_baseline *out, const struct json *j)
{
    *out = (struct check_baseline){0};
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        char *base = (char *)out;
        int64_t value;
        if (!json_i64(json_get(j, members[i].key), &value))
            continue;
        *(bool *)(base + members[i].known) = true;
        *(int64_t *)(void *)(base + members[i].value) = value;
    }
    const char *owner = json_str(json_get(j, "owner")), *history = json_str(json_get(j, "history"));
    str_format(out->owner, sizeof(out->owner), "%s", owner ? owner : "");
    str_format(out->history, sizeof(out->history), "%s", history ? history : "");
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    struct errinfo ei = {0};
    int64_t now = 0;
    enum err e = check_read_metric(c->cmd, ERRORS, &now, &ei);
    if (e == ERR_NOTFOUND) {
        check_not_run(r, "%s", err_message(&ei));
        return;
    }
    if (e != ERR_OK) {
        check_blocked(r, "%s", err_message(&ei));
        return;
    }
    /* a counter below its baseline: the server was started again in between and counts from 0 */
    int64_t before = c->since && c->since->known_server && c->since->server_errors <= now ? c->since->server_errors : 0;
    r->examined = 1;
    if (now > before)
        check_detail(r, "the server counted %s (unexpected 5xx); look at its log for the requests",
                     COUNTED((uint64_t)(now - before), "error"));
    judge_streams(c, r);
    int64_t streams = c->left[CHECK_REST_STREAMS] > 0 ? c->left[CHECK_REST_STREAMS] : 0;
    check_summary(r, "%s, %s left open", COUNTED((uint64_t)(now - before), "server error"),
                  COUNTED((uint64_t)streams, "stream"));
}

const struct check check_server = {"server", "errors that the server counted, streams that it holds for nobody", run};
