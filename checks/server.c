/* Server errors (unexpected 5xx answers) as the server counts them in /metrics. A server without that counter is "not
 * offered": the run's own 5xx answers are failures of their operations in any case. */
#include "base/mem.h"
#include "checks/check.h"

#include <inttypes.h>
#include <string.h>

static const char counter[] = "drive_server_errors_total";

/* The value of a counter without labels in Prometheus' text format; -1 when absent. */
static int64_t metric(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, n) != 0 || line[n] != ' ')
            continue;
        struct sv value = sv_of(line + n + 1);
        double v;
        value.n = strcspn(value.p, " \r\n");
        return sv_to_f64(value, &v) ? (int64_t)v : -1;
    }
    return -1;
}

enum err check_read_server_errors(struct cmd_ctx *ctx, int64_t *out, struct errinfo *ei)
{
    if (!ctx->target->url)
        return err_set(ei, ERR_ENV, "TMA_URL is not set");
    struct httpc_peer *peer = NULL;
    enum err e = httpc_peer_new(&peer, ctx->http, ctx->target->url, NULL, ei);
    if (e != ERR_OK)
        return e;
    struct http_req req = {.method = "GET", .path = "/metrics", .timeout_us = 10 * US_PER_S};
    struct http_resp resp;
    e = httpc_perform(peer, &req, &resp, ei);
    if (e == ERR_OK) {
        *out = resp.status == 200 ? metric(buf_cstr(&resp.body), counter) : -1;
        if (*out < 0)
            e = err_set(ei, ERR_NOTFOUND, "not offered: the server's /metrics has no %s", counter);
    }
    http_resp_done(&resp);
    httpc_peer_free(&peer);
    return e;
}

void check_baseline_take(struct cmd_ctx *ctx, struct check_baseline *out)
{
    struct errinfo ei;
    struct pg_pool *pg = NULL;
    *out = (struct check_baseline){0};
    if (ctx->target->database_url && pg_pool_new(&pg, ctx->loop, ctx->target->database_url, 1, &ei) == ERR_OK) {
        out->known_pg = check_read_deadlocks(pg, &out->deadlocks, &ei) == ERR_OK;
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
