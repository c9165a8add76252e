#include "drive/cmd.h"
#include "base/mem.h"
#include "drive/result/series.h"
#include <string.h>

struct httpc_counters cmd_counters(const struct cmd_ctx *ctx, enum cause cause)
{
    if (!ctx->requests)
        return (struct httpc_counters){0};
    return (struct httpc_counters){&ctx->requests[cause], &ctx->requests[CAUSE_RECONNECT]};
}

static uint64_t sent_so_far(const struct cmd_ctx *ctx, bool ended)
{
    const struct result *r = ctx->result;
    uint64_t n = stats_requests(&r->stats);
    for (unsigned c = 0; c < CAUSE_COUNT && ctx->requests != r->stats.by_cause && !ended; c++)
        n += ctx->requests[c]; /* not yet added to the result */
    return n;
}

void cmd_phase(const struct cmd_ctx *ctx, const char *name)
{
    struct result *r = ctx->result;
    struct mono now = mono_now();
    uint64_t sent = sent_so_far(ctx, !name);
    if (r->phases.n > 0) {
        struct phase_told *last = &r->phases.of[r->phases.n - 1];
        last->us += mono_diff(now, r->phases.began);
        last->requests += sent - r->phases.before;
    }
    if (r->phases.n == 1 &&
        (!name || strcmp(name, "checks") == 0)) /* a command that told no parts of its own has one */
        r->phases.of[0].name = "work";
    if (name && r->phases.n < PHASES_MAX)
        r->phases.of[r->phases.n++] = (struct phase_told){.name = name};
    r->phases.began = now;
    r->phases.before = sent;
}

void cmd_course(const struct cmd_ctx *ctx, const char *phase, struct mono from, enum cause cause, uint64_t before)
{
    struct result *r = ctx->result;
    struct stats *stats = mem_zalloc(sizeof *stats);
    const struct series_span span = {.from = from, .to = mono_now(), .phase = phase};
    stats->by_cause[cause] = r->stats.by_cause[cause] - before;
    if (r->series) {
        series_begin(r->series, &span, stats);
        series_end(r->series);
    }
    mem_free(stats);
}
