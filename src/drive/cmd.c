#include "drive/cmd.h"

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
    if (name && r->phases.n < PHASES_MAX)
        r->phases.of[r->phases.n++] = (struct phase_told){.name = name};
    r->phases.began = now;
    r->phases.before = sent;
}
