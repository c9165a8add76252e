/* `sim ramp`: more and more sessions at once, step by step, to see where a server stops scaling. */
#include "drive/cmd.h"
#include "sim/app/solo.h"
#include "sim/ramp/ramp.h"
#include "sim/run/rundir.h"

#include <stdio.h>
#include <string.h>

struct ramp_options {
    const char *steps, *arrive, *session, *link, *run_dir, *watch;
    int64_t hold_us, settle_us, drain_us, timeout_us, open_folders, server_pid, repeat, limit;
    double per_minute;
    bool keep, own_sign_in, no_stop;
    struct opt_list expect, stop_on;
};
static const struct opt_pos pos[] = {
    {"steps", OPT_STR, offsetof(struct ramp_options, steps), 0, 0, false,
     "sessions at once: 25,50,100 or 25:400:x2 or 25:400:25"},
    {0},
};
static const struct opt opts[] = {
    {"session", 0, "WORK", OPT_STR, offsetof(struct ramp_options, session), 0, 0,
     "what each does: apps (desktop apps), upload:50MiB\n(random bytes, again and again while the step is held)\nor "
     "sign-in (signs in and stays); default upload:1MiB"},
    {"arrive", 0, "RATE", OPT_STR, offsetof(struct ramp_options, arrive), 0, 0,
     "how sessions are let in, evenly spaced: 5/s (default),\n300/min, or 0 for all at once"},
    {"hold", 0, "TIME", OPT_DURATION, offsetof(struct ramp_options, hold_us), 0, 8.64e10,
     "how long a step is held once all are in (default 5 min);\n0: each session does its work once"},
    {"settle", 0, "TIME", OPT_DURATION, offsetof(struct ramp_options, settle_us), 0, 8.64e10,
     "the first part of the hold, which is not measured\n(default 1 min, at most a fifth of the hold)"},
    {"drain", 0, "TIME", OPT_DURATION, offsetof(struct ramp_options, drain_us), 0, 8.64e10,
     "the longest wait between two steps for the server to\nbe as quick as before the first (default 2 min)"},
    {"link", 0, "RATE", OPT_STR, offsetof(struct ramp_options, link), 0, 0,
     "what the network carries, 110MB/s or 1Gbit/s: no more\nthan that is expected (default: the first step's "
     "rate\nfor each session)"},
    {"repeat", 0, "N", OPT_INT, offsetof(struct ramp_options, repeat), 1, RAMP_REPEAT_MAX,
     "go through the ramp N times: every figure is then a\nrange (default 1)"},
    {"expect", 0, "LINE", OPT_LIST, offsetof(struct ramp_options, expect), 0, 0,
     "a prediction, written down before and scored after,\nFIGURE[@STEP] SIGN VALUE: knee=150, p95_login@300<2s,\n"
     "failed_pct<1, mb_per_s@100>80, cpu_pct@100<85, limit=200,\n… (docs/ramp.md lists all); may be repeated"},
    {"stop-on", 0, "LINE", OPT_LIST, offsetof(struct ramp_options, stop_on), 0, 0,
     "a condition that ends the ramp at once (exit status 4),\nbesides timed_out>0, swap_mib>16 and "
     "disk_write_ms>100:\np95.upload>2s, failed_pct>5; may be repeated"},
    {"no-stop", 0, NULL, OPT_FLAG, offsetof(struct ramp_options, no_stop), 0, 0,
     "without those three; those of --stop-on remain"},
    {"limit", 0, "N", OPT_INT, offsetof(struct ramp_options, limit), 2, RAMP_SESSIONS_MAX,
     "the server is told to allow N sessions: at the end a\nquarter more come and must be refused within a second,\n"
     "while those inside keep their speed"},
    {"own-sign-in", 0, NULL, OPT_FLAG, offsetof(struct ramp_options, own_sign_in), 0, 0,
     "each uploading session signs in for itself, also where\none could serve many and that many sign-ins would\n"
     "spend the logins' budgets (--limit implies it)"},
    {"folders", 0, "N", OPT_INT, offsetof(struct ramp_options, open_folders), 1, 1000000,
     "open folders of an app (default 30)"},
    {"per-minute", 0, "N", OPT_NUM, offsetof(struct ramp_options, per_minute), 0, 60000,
     "actions a minute of an app (default 6)"},
    {"timeout", 0, "TIME", OPT_DURATION, offsetof(struct ramp_options, timeout_us), 1e5, 3.6e9,
     "of a sign-in or a request (default 60 s)"},
    {"keep", 0, NULL, OPT_FLAG, offsetof(struct ramp_options, keep), 0, 0, "leave what was uploaded on the server"},
    {"run-dir", 0, "DIR", OPT_STR, offsetof(struct ramp_options, run_dir), 0, 0,
     "where sessions.csv, steps.csv, watch.csv go\n(default runs/TIME-SEED)"},
    WATCH_OPT(struct ramp_options, watch),
    {"server-pid", 0, "PID", OPT_INT, offsetof(struct ramp_options, server_pid), 1, 1 << 30,
     "the server's process, to watch its memory\n(default: the stack's own, else what /metrics says)"},
    {0},
};
static const struct ramp_options defaults = {.arrive = "5/s",
                                             .session = "upload:1MiB",
                                             .hold_us = 300 * US_PER_S,
                                             .settle_us = -1,
                                             .drain_us = 120 * US_PER_S,
                                             .timeout_us = 60 * US_PER_S,
                                             .repeat = 1,
                                             .open_folders = 30,
                                             .per_minute = 6};

/* "p95" alone is that of the one operation that sessions do again and again; apps do many. */
static enum err name_operation(struct ramp_line *l, const char *option, const struct ramp_work *work,
                               struct errinfo *ei)
{
    if (l->kind != RAMP_LINE_TIME || l->op != OP_COUNT)
        return ERR_OK;
    if (work->kind == RAMP_APPS)
        return err_set(ei, ERR_USAGE, "%s '%s': apps do many things, name one, such as p95_save", option, l->text);
    l->op = work->kind == RAMP_UPLOAD ? OP_UPLOAD : OP_SIGN_IN;
    return ERR_OK;
}

static enum err add_line(struct ramp_line *lines, size_t *n, const char *option, const char *text,
                         const struct ramp_conf *c, struct errinfo *ei)
{
    if (*n == RAMP_LINES_MAX)
        return err_set(ei, ERR_USAGE, "%s may be given %d times", option, RAMP_LINES_MAX - 3);
    struct ramp_line *l = &lines[*n];
    enum err e = ramp_line_parse(option, text, strcmp(option, "--expect") == 0, l, ei);
    bool held = l->at == 0;
    for (unsigned i = 0; i < c->steps.n; i++)
        held = held || c->steps.sessions[i] == l->at;
    if (e == ERR_OK && !held)
        return err_set(ei, ERR_USAGE, "%s '%s': there is no step of %u sessions", option, text, l->at);
    if (e == ERR_OK)
        e = name_operation(l, option, &c->work, ei);
    *n += e == ERR_OK;
    return e;
}

static enum err read_lines(const struct ramp_options *o, struct ramp_conf *c, struct errinfo *ei)
{
    enum err e = ERR_OK;
    for (size_t i = 0; !o->no_stop && ramp_stop_defaults[i] && e == ERR_OK; i++)
        e = add_line(c->stop, &c->n_stop, "--stop-on", ramp_stop_defaults[i], c, ei);
    for (size_t i = 0; i < o->stop_on.n && e == ERR_OK; i++)
        e = add_line(c->stop, &c->n_stop, "--stop-on", o->stop_on.items[i], c, ei);
    for (size_t i = 0; i < o->expect.n && e == ERR_OK; i++)
        e = add_line(c->expect, &c->n_expect, "--expect", o->expect.items[i], c, ei);
    return e;
}

static enum err read_texts(const struct ramp_options *o, struct ramp_conf *c, struct errinfo *ei)
{
    enum err e = ramp_parse_steps(o->steps, &c->steps, ei);
    if (e == ERR_OK)
        e = ramp_parse_work(o->session, &c->work, ei);
    if (e == ERR_OK)
        e = ramp_parse_rate(o->arrive, &c->arrive_per_s, ei);
    if (e == ERR_OK && o->link)
        e = ramp_parse_link(o->link, &c->link_bytes_per_s, ei);
    return e == ERR_OK ? read_lines(o, c, ei) : e;
}

static enum err read_options(const struct ramp_options *o, struct ramp_conf *c, struct errinfo *ei)
{
    int64_t fifth = o->hold_us / 5;
    *c = (struct ramp_conf){.repeat = (unsigned)o->repeat,
                            .limit = (unsigned)o->limit,
                            .hold_us = o->hold_us,
                            .settle_us = o->settle_us,
                            .drain_us = o->drain_us,
                            .timeout_us = o->timeout_us,
                            .open_folders = (unsigned)o->open_folders,
                            .per_minute = o->per_minute,
                            .own_sign_in = o->own_sign_in || o->limit > 0,
                            .keep = o->keep,
                            .run_dir = o->run_dir};
    if (c->settle_us < 0)
        c->settle_us = fifth < 60 * US_PER_S ? fifth : 60 * US_PER_S;
    if (c->settle_us > c->hold_us)
        return err_set(ei, ERR_USAGE, "--settle is longer than --hold: nothing would be measured");
    enum err e = read_texts(o, c, ei);
    if (e == ERR_OK && c->work.kind == RAMP_APPS && c->hold_us == 0)
        e = err_set(ei, ERR_USAGE, "--session apps needs a --hold: an app's work has no end of its own");
    if (e == ERR_OK && c->limit && (c->work.kind == RAMP_APPS || c->hold_us == 0))
        e = err_set(ei, ERR_USAGE, "--limit needs a --hold, and sessions that upload or sign in");
    return e;
}

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct ramp_options *o = arg;
    struct ramp_conf conf;
    enum err e = read_options(o, &conf, ei);
    if (e == ERR_OK)
        e = watch_judge(o->watch, ei);
    return e == ERR_OK ? rundir_judge(o->run_dir, ei) : e;
}

static MAY_YIELD enum err body(struct worker *w, struct server_watch *watch, const void *arg, struct errinfo *ei)
{
    (void)watch;
    return ramp_run(w, arg, ei);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct ramp_options *o = arg;
    struct ramp_conf conf;
    unsigned most = 0;
    enum err e = read_options(o, &conf, ei);
    if (e != ERR_OK)
        return e;
    for (unsigned i = 0; i < conf.steps.n; i++)
        most = conf.steps.sessions[i] > most ? conf.steps.sessions[i] : most;
    conf.out = ctx->common->quiet ? NULL : ctx->out;
    const struct solo s = {.apps = most,
                           .judges_generator = true,
                           .timeout_us = o->timeout_us,
                           .server_pid = o->server_pid,
                           .watched = true,
                           .watch = o->watch,
                           .body = body,
                           .arg = &conf};
    return solo_run(&s, ctx, ei);
}

static void sample(struct result *r)
{
    solo_sample(r);
    ramp_sample(r);
}

const struct command cmd_ramp = {
    .name = "ramp",
    .summary = "more and more sessions at once, step by step, to see where the server stops scaling",
    .usage = "sim ramp <steps> [options]",
    .examples =
        "sim ramp 25:400:x2 --session upload:50MiB --link 110MB/s --json ramp.json\n"
        "sim ramp 100 --session sign-in --arrive 0 --hold 10s\n"
        "sim ramp 25:400:x2 --expect knee=150 --expect 'p95_login@300<2s' --stop-on 'p95.upload>2s' --repeat 3\n"
        "sim ramp 50,100 --limit 150 --hold 2min\n"
        "sim ramp 10,20,40 --session apps --hold 2min --settle 30s",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct ramp_options),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL,
    .verify = verify,
    .run = run,
    .sample = sample,
};
