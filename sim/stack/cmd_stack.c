/* `sim stack`: the throwaway Postgres, Redis, S3 store and reference server of a folder. */
#include "base/secret.h"
#include "drive/stack/part.h"
#include "sim/stack/with.h"
#include <stddef.h>
#include <string.h>

struct stack_options {
    const char *action, *part;
    const char *dir, *server_args, *account;
    bool no_server, docker, native;
    int64_t lines, hold_us;
};

static const struct opt_pos positions[] = {
    {"action", OPT_STR, offsetof(struct stack_options, action), 0, 0, false,
     "up, down, status, logs, fetch, start, stop, kill, restart, pause, resume or fill\n"
     "up: starts what does not run; prints the variables for a shell elsewhere\n"
     "down: ends it and deletes its data\n"
     "status: each part's state, port, process and memory\n"
     "logs [PART]: the last lines of each part's log\n"
     "fetch: only installs what the store needs\n"
     "of one part: start, stop, kill (SIGKILL), restart, pause and resume\n"
     "(SIGSTOP, SIGCONT), fill (no room: the store's disk, or postgres's\n"
     "connections)"},
    {"part", OPT_STR, offsetof(struct stack_options, part), 0, 0, true, "postgres, redis, store or server"},
    {0},
};

static const struct opt options[] = {
    {"dir", 0, "DIR", OPT_STR, offsetof(struct stack_options, dir), 0, 0,
     "the folder that the stack belongs to (its files are in DIR/.sim; default: this one)"},
    {"no-server", 0, NULL, OPT_FLAG, offsetof(struct stack_options, no_server), 0, 0,
     "up: only Postgres, Redis and the store"},
    {"server-args", 0, "TEXT", OPT_STR, offsetof(struct stack_options, server_args), 0, 0,
     "up, start: more options for `sim serve`: --server-args='--stream-limit 3'"},
    {"account", 0, "NAME", OPT_STR, offsetof(struct stack_options, account), 0, 0,
     "as root: who runs Postgres (default: postgres, else nobody)"},
    {"native", 0, NULL, OPT_FLAG, offsetof(struct stack_options, native), 0, 0,
     "up: processes, even where a Docker engine answers"},
    {"docker", 0, NULL, OPT_FLAG, offsetof(struct stack_options, docker), 0, 0, "up: containers, never processes"},
    {"for", 0, "TIME", OPT_DURATION, offsetof(struct stack_options, hold_us), 1e5, 3.6e9,
     "fill: how long the store's disk is full, or every connection of postgres taken\n(default 10 s)"},
    {"lines", 'n', "N", OPT_INT, offsetof(struct stack_options, lines), 0, 1e9,
     "logs: the last N lines of each part (default 50, 0: all)"},
    {0},
};
static const struct stack_options defaults = {.lines = 50, .hold_us = 10 * US_PER_S};

struct action;
struct request {
    struct stack *stack;
    const struct action *action;
    const struct stack_options *opt;
    FILE *out;
    bool hint; /* somebody reads it: tell what to do next */
};

static MAY_YIELD enum err up(struct request *r, struct errinfo *ei)
{
    enum err err = stack_up(r->stack, ei);
    secret_reveal(true);
    if (!err)
        err = stack_print_env(r->stack, r->out, true, ei);
    secret_reveal(false);
    if (!err && r->hint)
        fprintf(stderr,
                "\ncommands called in this folder find this stack by themselves; in another folder the lines above"
                " are needed:\n  eval \"$(sim stack up)\"\nnext: sim seed 2 0.02 (sim doctor shows what is there)\n");
    return err;
}

static MAY_YIELD enum err down(struct request *r, struct errinfo *ei)
{
    return stack_down(r->stack, ei);
}

static MAY_YIELD enum err fetch(struct request *r, struct errinfo *ei)
{
    return stack_fetch(r->stack, ei);
}

static MAY_YIELD enum err status(struct request *r, struct errinfo *ei)
{
    return stack_print_status(r->stack, r->out, ei);
}

static MAY_YIELD enum err logs(struct request *r, struct errinfo *ei)
{
    return stack_print_logs(r->stack, r->opt->part, r->opt->lines, r->out, ei);
}

static MAY_YIELD enum err start(struct request *r, struct errinfo *ei)
{
    return stack_part_start(r->stack, r->opt->part, ei);
}

static MAY_YIELD enum err stop(struct request *r, struct errinfo *ei)
{
    return stack_part_stop(r->stack, r->opt->part, ei);
}

static MAY_YIELD enum err kill_part(struct request *r, struct errinfo *ei)
{
    return stack_part_kill(r->stack, r->opt->part, ei);
}

static MAY_YIELD enum err pause_part(struct request *r, struct errinfo *ei)
{
    return stack_part_pause(r->stack, r->opt->part, true, ei);
}

static MAY_YIELD enum err resume(struct request *r, struct errinfo *ei)
{
    return stack_part_pause(r->stack, r->opt->part, false, ei);
}

static MAY_YIELD enum err fill(struct request *r, struct errinfo *ei)
{
    return stack_part_fill(r->stack, r->opt->part, r->opt->hold_us, ei);
}

static MAY_YIELD enum err restart(struct request *r, struct errinfo *ei)
{
    enum err err = stack_part_stop(r->stack, r->opt->part, ei);
    return err ? err : stack_part_start(r->stack, r->opt->part, ei);
}

enum part_use { PART_NONE, PART_MAY, PART_MUST };
static const struct action {
    const char *name;
    enum part_use part;
    bool change; /* takes the stack's lock */
    MAY_YIELD enum err (*run)(struct request *r, struct errinfo *ei);
} actions[] = {
    {"up", PART_NONE, true, up},
    {"down", PART_NONE, true, down},
    {"fetch", PART_NONE, true, fetch},
    {"status", PART_NONE, false, status},
    {"logs", PART_MAY, false, logs},
    {"start", PART_MUST, true, start},
    {"stop", PART_MUST, true, stop},
    {"kill", PART_MUST, true, kill_part},
    {"restart", PART_MUST, true, restart},
    {"pause", PART_MUST, true, pause_part},
    {"resume", PART_MUST, true, resume},
    {"fill", PART_MUST, false, fill}, /* holds no lock: it takes long */
    {0},
};

static enum err find_action(const struct stack_options *o, const struct action **out, struct errinfo *ei)
{
    struct opt_guess near;
    opt_guess_init(&near, sv_of(o->action));
    for (const struct action *a = actions; a->name; a++) {
        opt_guess_try(&near, a->name);
        if (strcmp(a->name, o->action) != 0)
            continue;
        if (a->part == PART_MUST && !o->part)
            return err_set(ei, ERR_USAGE, "%s: say which part: postgres, redis, store or server", a->name);
        if (a->part == PART_NONE && o->part)
            return err_set(ei, ERR_USAGE, "%s takes no further argument ('%s')", a->name, o->part);
        *out = a;
        return ERR_OK;
    }
    if (near.name[0])
        return err_set(ei, ERR_USAGE, "unknown action '%s'%s", SHOWN(sv_of(o->action)), opt_guess_text(&near));
    return err_set(ei, ERR_USAGE,
                   "unknown action '%s'; there are up, down, status, logs, fetch, start, stop, kill, "
                   "restart, pause, resume and fill",
                   o->action);
}

static MAY_YIELD enum err perform(struct stack *s, void *arg, struct errinfo *ei)
{
    struct request *r = arg;
    r->stack = s;
    return r->action->run(r, ei);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct stack_options *o = arg;
    struct request r = {.opt = o, .out = ctx->out, .hint = ctx->tty && !ctx->common->quiet};
    struct stack_conf conf = {.dir = o->dir,
                              .mode = o->native   ? STACK_NATIVE
                                      : o->docker ? STACK_DOCKER
                                                  : STACK_AUTO,
                              .no_server = o->no_server,
                              .server_args = o->server_args,
                              .account = o->account,
                              .progress = ctx->common->quiet ? NULL : stderr};
    enum err err = find_action(o, &r.action, ei);
    if (!err && o->native && o->docker)
        err = err_set(ei, ERR_USAGE, "--native and --docker exclude each other");
    return err ? err : stack_with(ctx, &conf, r.action->change, perform, &r, ei);
}

const struct command cmd_stack = {
    .name = "stack",
    .summary = "start and stop a throwaway Postgres, Redis, S3 store and reference server",
    .usage = "sim stack <action> [part] [options]",
    .examples = "sim stack up\n"
                "eval \"$(sim stack up)\"\n"
                "sim stack status\n"
                "sim stack logs server --lines 200\n"
                "sim stack kill server && sim stack start server\n"
                "sim stack fill store --for 30s\n"
                "sim stack down",
    .pos = positions,
    .opts = options,
    .conf_size = sizeof(struct stack_options),
    .defaults = &defaults,
    .run = run,
};
