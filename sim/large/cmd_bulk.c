/* `sim bulk`: the largest top-level folder copied, the copy trashed, then deleted for good. */
#include "drive/cmd.h"
#include "sim/app/solo.h"
#include "sim/large/bulk.h"

struct bulk_options {
    int64_t timeout_us, server_pid;
};
static const struct opt opts[] = {
    {"timeout", 0, "TIME", OPT_DURATION, offsetof(struct bulk_options, timeout_us), 1e4, 8.64e10,
     "of each step. One that takes longer is of unknown\noutcome: it is looked for, never asked for again\n(default 10 "
     "min)"},
    {"server-pid", 0, "PID", OPT_INT, offsetof(struct bulk_options, server_pid), 1, 1 << 30,
     "the server's process, to watch its memory\n(default: the stack's own, else what /metrics says)"},
    {0},
};
static const struct bulk_options defaults = {.timeout_us = 600 * US_PER_S};

static MAY_YIELD enum err body(struct worker *w, struct server_watch *watch, const void *arg, struct errinfo *ei)
{
    const struct bulk_options *o = arg;
    const struct bulk_conf conf = {.timeout_us = o->timeout_us,
                                   .copy = OP_COPY,
                                   .trash = OP_TRASH,
                                   .purge = OP_PURGE,
                                   .alone = true,
                                   .out = w->ctx->common->quiet ? NULL : w->ctx->out,
                                   .tty = w->ctx->tty};
    (void)watch;
    return bulk_run(w, &conf, ei);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct bulk_options *o = arg;
    const struct solo s = {.apps = 1, .timeout_us = o->timeout_us, .server_pid = o->server_pid, .body = body, .arg = o};
    return solo_run(&s, ctx, ei);
}

static void sample(struct result *r)
{
    solo_sample(r);
    bulk_sample(r);
}

const struct command cmd_bulk = {
    .name = "bulk",
    .summary = "the largest top-level folder copied, the copy trashed and deleted for good, each timed",
    .usage = "sim bulk [options]",
    .examples = "sim bulk\n"
                "sim bulk --timeout 30s --json bulk.json\n"
                "sim bulk --fail-on 'bulk_copy.items_per_s>500' --fail-on 'bulk_purge.seconds<60s'",
    .opts = opts,
    .conf_size = sizeof(struct bulk_options),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_FAILURES_MATTER,
    .run = run,
    .sample = sample,
};
