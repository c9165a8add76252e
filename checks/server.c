/* Server errors (unexpected 5xx answers) as the server counts them in /metrics. A server without that counter is "not
 * offered": the run's own 5xx answers are failures of their operations in any case. */
#include "checks/check.h"
#include "drive/scrape.h"

#include <inttypes.h>

static const char counter[] = "drive_server_errors_total";

enum err check_read_server_errors(struct cmd_ctx *ctx, int64_t *out, struct errinfo *ei)
{
    struct buf text;
    double value;
    if (!ctx->target->url)
        return err_set(ei, ERR_ENV, "TMA_URL is not set");
    enum err e = scrape(ctx->http, ctx->target->url, 10 * US_PER_S, &text, ei);
    if (e == ERR_NOTFOUND || (e == ERR_OK && !scrape_value(buf_cstr(&text), counter, &value)))
        e = err_set(ei, ERR_NOTFOUND, "not offered: the server's /metrics has no %s", counter);
    else if (e == ERR_OK)
        *out = (int64_t)value;
    buf_done(&text);
    return e;
}

void check_baseline_take(struct cmd_ctx *ctx, struct check_baseline *out)
{
    struct errinfo ei;
    struct pg_pool *pg = NULL;
    *out = (struct check_baseline){0};
    if (ctx->target->database_url && pg_pool_new(&pg, ctx->loop, ctx->target->database_url, 1, &ei) == ERR_OK) {
        out->known_pg = check_read_deadlocks(pg, &out->deadlocks, &ei) == ERR_OK;
        out->known_overrun = check_read_overrun(pg, &out->overrun, &ei) == ERR_OK;
        pg_pool_free(&pg);
    }
    out->known_server = check_read_server_errors(ctx, &out->server_errors, &ei) == ERR_OK;
}

static void run(struct check_ctx *c, struct check_result *r)
{
    struct errinfo ei = {0};
    int64_t now = 0;
    if (check_read_server_errors(c->cmd, &now, &ei) != ERR_OK) {
        check_not_run(r, "%s", err_message(&ei));
        return;
    }
    /* a counter below its baseline: the server was started again in between and counts from 0 */
    int64_t before = c->since && c->since->known_server && c->since->server_errors <= now ? c->since->server_errors : 0;
    r->examined = 1;
    if (now > before)
        check_detail(r, "the server counted %" PRId64 " errors (unexpected 5xx); look at its log for the requests",
                     now - before);
    check_summary(r, "%" PRId64 " server errors", now - before);
}

const struct check check_server = {"server", "errors that the server counted itself", run};
