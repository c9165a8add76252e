/* `sim pairs`: one app writes, its partner waits for the event and reads: how fast, and how surely, word gets around.
 */
#include "base/file.h"
#include "base/mem.h"
#include "drive/cmd.h"
#include "sim/app/solo.h"
#include "sim/pairs/pairs.h"

#include <errno.h>
#include <stdio.h>

#define PAYLOAD_MAX (64u << 20)

struct pairs_options {
    double per_s;
    int64_t total, bytes, exchange_us, interval_us, duration_us, ramp_us, workers, queue, timeout_us, server_pid;
    const char *payload;
};
static const struct opt_pos pos[] = {
    {"pairs/s", OPT_NUM, offsetof(struct pairs_options, per_s), 1e-3, 10000, false, "how many pairs begin each second"},
    {"total", OPT_INT, offsetof(struct pairs_options, total), 1, 1e9, false, "how many pairs in all"},
    {0},
};
static const struct opt opts[] = {
    {"size", 0, "SIZE", OPT_SIZE, offsetof(struct pairs_options, bytes), 0, 67108864,
     "of a message (default 100 bytes)"},
    {"payload", 0, "FILE", OPT_STR, offsetof(struct pairs_options, payload), 0, 0, "send FILE's bytes instead"},
    {"exchange", 0, "TIME", OPT_DURATION, offsetof(struct pairs_options, exchange_us), 0, 8.64e10,
     "each pair goes on for this long (default: one message)"},
    {"interval", 0, "TIME", OPT_DURATION, offsetof(struct pairs_options, interval_us), 1e3, 3.6e9,
     "between the starts of a pair's messages (default 100ms)"},
    {"test-duration", 0, "TIME", OPT_DURATION, offsetof(struct pairs_options, duration_us), 0, 8.64e10,
     "no new pair after it (default: until all are done)"},
    {"ramp", 0, "TIME", OPT_DURATION, offsetof(struct pairs_options, ramp_us), 0, 3.6e9,
     "the rate rises evenly from 0 over this time"},
    {"workers", 0, "N", OPT_INT, offsetof(struct pairs_options, workers), 1, 20000,
     "pairs that go on at the same time (default: twice the\nrate, and the rate times --exchange)"},
    {"queue", 0, "N", OPT_INT, offsetof(struct pairs_options, queue), 1, 1000000,
     "pairs that may wait for a worker (default: four times the\nrate)"},
    {"timeout", 0, "TIME", OPT_DURATION, offsetof(struct pairs_options, timeout_us), 1e4, 8.64e10,
     "a message whose event has not come by then is lost (default 5 s)"},
    {"server-pid", 0, "PID", OPT_INT, offsetof(struct pairs_options, server_pid), 1, 1 << 30,
     "the server's process, to watch its memory\n(default: the stack's own, else what /metrics says)"},
    {0},
};
static const struct pairs_options defaults = {.bytes = 100, .interval_us = 100 * US_PER_MS, .timeout_us = 5 * US_PER_S};

/* What --payload holds, from verify on. */
static struct buf message = BUF_INIT(PAYLOAD_MAX);

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct pairs_options *o = arg;
    return o->payload ? file_read(o->payload, &message, ERR_USAGE, ei) : ERR_OK;
}

static MAY_YIELD enum err body(struct worker *w, struct server_watch *watch, const void *arg, struct errinfo *ei)
{
    (void)watch;
    return pairs_run(w, arg, ei);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct pairs_options *o = arg;
    struct pairs_conf conf = {.per_s = o->per_s,
                              .total = (uint64_t)o->total,
                              .ramp_us = o->ramp_us,
                              .payload = {o->payload ? buf_cstr(&message) : NULL, message.len},
                              .bytes = o->payload ? message.len : (uint64_t)o->bytes,
                              .exchange_us = o->exchange_us,
                              .interval_us = o->interval_us,
                              .duration_us = o->duration_us,
                              .timeout_us = o->timeout_us,
                              .out = ctx->common->quiet ? NULL : ctx->out,
                              .tty = ctx->tty};
    conf.workers = o->workers ? (unsigned)o->workers : pairs_workers(&conf);
    conf.queue = o->queue ? (unsigned)o->queue : pairs_queue(&conf);
    const struct solo s = {.apps = 2 * conf.workers,
                           .timeout_us = o->timeout_us,
                           .server_pid = o->server_pid,
                           .recorded = true,
                           .body = body,
                           .arg = &conf};
    enum err e = solo_run(&s, ctx, ei);
    buf_done(&message);
    return e;
}

static void sample(struct result *r)
{
    solo_sample(r);
    pairs_sample(r);
}

const struct command cmd_pairs = {
    .name = "pairs",
    .summary = "pairs of apps: one writes, its partner waits for the event and reads; how long delivery takes",
    .usage = "sim pairs <pairs/s> <total> [options]",
    .examples = "sim pairs 20 100\n"
                "sim pairs 10 20 --size 200 --exchange 30s --interval 200ms\n"
                "sim pairs 20 50 --exchange 10min --test-duration 15min --ramp 10s --json pairs.json\n"
                "sim pairs 20 100 --fail-on 'pairs.p50_ms<10' --fail-on 'pairs.per_second>=19.5'",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct pairs_options),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_FAILURES_MATTER,
    .verify = verify,
    .run = run,
    .sample = sample,
};
