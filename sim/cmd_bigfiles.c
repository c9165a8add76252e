/* `sim bigfiles`: many large uploads at once, then all of them downloaded, the server's memory watched. */
#include "base/mem.h"
#include "drive/cmd.h"
#include "sim/bigfiles.h"
#include "sim/logins.h"
#include "sim/plan.h"

#include <inttypes.h>
#include <stdio.h>

#define MIB (INT64_C(1) << 20)

struct bigfiles_options {
    int64_t count, timeout_us, server_pid;
    double mib;
    bool keep;
};
static const struct opt_pos pos[] = {
    {"count", OPT_INT, offsetof(struct bigfiles_options, count), 1, 5000, false, "how many files, all at once"},
    {"MiB", OPT_NUM, offsetof(struct bigfiles_options, mib), 0, 1 << 20, false, "size of each, such as 200 or 0.5"},
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

static void on_interrupt(void *arg)
{
    struct worker *w = arg;
    worker_set_phase(w, *w->ctx->interrupts < 2 ? PHASE_DRAIN : PHASE_CUT);
    meter_next_interval(&w->meter);
}

static void describe_generator(struct worker *w)
{
    w->ctx->result->generator = (struct generator_summary){.known = true,
                                                           .cpu_us = clock_process_cpu_us(),
                                                           .lag_p99_us = hist_percentile(loop_lag(w->loop), 99),
                                                           .peak_rss_bytes = server_watch_own_peak()};
}

static MAY_YIELD enum err carry_out(struct worker *w, const struct bigfiles_options *o, struct server_watch *watch,
                                    struct errinfo *ei)
{
    const struct cmd_ctx *ctx = w->ctx;
    const struct bigfiles_conf conf = {.count = (unsigned)o->count,
                                       .bytes = (uint64_t)(o->mib * (double)MIB),
                                       .keep = o->keep,
                                       .timeout_us = o->timeout_us,
                                       .upload = OP_UPLOAD,
                                       .download = OP_DOWNLOAD,
                                       .out = ctx->common->quiet ? NULL : ctx->out,
                                       .tty = ctx->tty};
    enum err e = plan_open_files((unsigned)o->count, (unsigned)o->count, NULL, ei);
    if (e == ERR_OK)
        e = logins_discover(w, ei);
    if (e != ERR_OK)
        return e;
    logins_keep(w);
    e = bigfiles_run(w, watch, &conf, ei);
    if (conf.out && server_watch_source(watch)[0])
        fprintf(conf.out, "bigfiles: the server's memory was read from %s\n", server_watch_source(watch));
    return e;
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct bigfiles_options *o = arg;
    struct worker *w = mem_zalloc(sizeof(*w));
    struct server_watch *watch = NULL;
    const struct worker_conf wc = {
        .apps = (unsigned)o->count, .timeout_us = o->timeout_us, .seed = (uint64_t)ctx->common->seed};
    worker_init(w, ctx, &wc);
    ctx->on_interrupt_arg = w;
    ctx->on_interrupt = on_interrupt;
    enum err e = server_watch_new(&watch, ctx, o->server_pid, ei);
    if (e == ERR_OK)
        e = carry_out(w, o, watch, ei);
    worker_finish(w);
    ctx->on_interrupt = NULL;
    meter_next_interval(&w->meter);
    server_watch_free(&watch);
    describe_generator(w);
    worker_done(w);
    mem_free(w);
    return e;
}

const struct command cmd_bigfiles = {
    .name = "bigfiles",
    .summary = "many large uploads at once, then all downloaded and verified, the server's memory watched",
    .usage = "sim bigfiles COUNT MiB [options]",
    .examples = "sim bigfiles 30 200\n"
                "sim bigfiles 30 200 --fail-on 'server.peak_rss_bytes<128MiB' --json big.json\n"
                "sim bigfiles 4 2048 --keep --server-pid $(pgrep -f server.js)",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct bigfiles_options),
    .defaults = &defaults,
    .flags = CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_FAILURES_MATTER,
    .run = run,
};
