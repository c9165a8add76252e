/* `sim bigfiles`: many large uploads at once, then all of them downloaded, the server's memory watched. */
#include "drive/cmd.h"
#include "sim/app/solo.h"
#include "sim/large/bigfiles.h"

#include <stdio.h>

#define MIB (INT64_C(1) << 20)

struct bigfiles_options {
    int64_t count, timeout_us, server_pid;
    double mib;
    bool keep;
};
static const struct opt_pos pos[] = {
    {"count", OPT_INT, offsetof(struct bigfiles_options, count), 1, 5000, false, "how many files, all at once"},
    {"MiB", OPT_NUM, offsetof(struct bigfiles_options, mib), BIGFILES_LEAST_MIB, BIGFILES_MOST_MIB, false,
     "size of each, such as 200 or 0.5"},
    {0},
};
static const struct opt opts[] = {
    {"keep", 0, NULL, OPT_FLAG, offsetof(struct bigfiles_options, keep), 0, 0,
     "leave the files on the server\n(else they are deleted for good in the end)"},
    {"server-pid", 0, "PID", OPT_INT, offsetof(struct bigfiles_options, server_pid), 1, 1 << 30,
     "the server's process, to watch its memory\n(default: the stack's own, else what /metrics says)"},
    {"timeout", 0, "TIME", OPT_DURATION, offsetof(struct bigfiles_options, timeout_us), 1e5, 8.64e10,
     "a transfer fails when no byte moves for so long;\nfiles that wait for their turn stand still\n(default 5 min)"},
    {0},
};
static const struct bigfiles_options defaults = {.timeout_us = 300 * US_PER_S};

static MAY_YIELD enum err body(struct worker *w, struct server_watch *watch, const void *arg, struct errinfo *ei)
{
    const struct bigfiles_options *o = arg;
    const struct cmd_ctx *ctx = w->ctx;
    const struct bigfiles_conf conf = {.count = (unsigned)o->count,
                                       .bytes = (uint64_t)(o->mib * (double)MIB),
                                       .keep = o->keep,
                                       .timeout_us = o->timeout_us,
                                       .upload = OP_UPLOAD,
                                       .download = OP_DOWNLOAD,
                                       .out = ctx->common->quiet ? NULL : ctx->out,
                                       .tty = ctx->tty};
    enum err e = bigfiles_run(w, watch, &conf, ei);
    if (conf.out && server_watch_source(watch)[0])
        fprintf(conf.out, "bigfiles: the server's memory was read from %s\n", server_watch_source(watch));
    return e;
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct bigfiles_options *o = arg;
    const struct solo s = {
        .apps = (unsigned)o->count, .timeout_us = o->timeout_us, .server_pid = o->server_pid, .body = body, .arg = o};
    return solo_run(&s, ctx, ei);
}

static void sample(struct result *r)
{
    solo_sample(r);
    bigfiles_sample(r);
}

const struct command cmd_bigfiles = {
    .name = "bigfiles",
    .summary = "many large uploads at once, then all downloaded and verified, the server's memory watched",
    .usage = "sim bigfiles <count> <MiB> [options]",
    .examples = "sim bigfiles 30 200\n"
                "sim bigfiles 30 200 --fail-on 'server.peak_rss_bytes<128MiB' --fail-on 'uploads.mb_per_s>50'\n"
                "sim bigfiles 4 2048 --keep --server-pid \"$(cat server.pid)\"",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct bigfiles_options),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_FAILURES_MATTER,
    .run = run,
    .sample = sample,
};
