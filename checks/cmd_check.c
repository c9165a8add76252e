/* `sim check`: the whole judgement on what is there now. */
#include "checks/runner.h"
#include "drive/ledger.h"

#include <stddef.h>

struct check_conf {
    struct opt_list only;
    const char *run;
};

static const struct opt options[] = {
    {"only", 0, "NAMES", OPT_LIST, offsetof(struct check_conf, only), 0, 0,
     "run these checks alone: drain, aggregates, storage, structure, objects, ledger,\nanswers, reads, versions, "
     "locks, "
     "changes, events, convergence, database, server"},
    {"run", 0, "DIR", OPT_STR, offsetof(struct check_conf, run), 0, 0,
     "judge the ledger of this run folder too (a run prints its folder)"},
    {0},
};

static bool enough(void *arg, const struct ledger_record *r)
{
    (void)arg;
    (void)r;
    return false;
}

/* A run that is not there is told before a server is asked and everything else is checked. */
static enum err verify(void *arg, struct errinfo *ei)
{
    const struct check_conf *conf = arg;
    struct ledger_end end;
    enum err e = checks_judge_names(&conf->only, ei);
    if (e != ERR_OK || !conf->run)
        return e;
    if (!conf->run[0])
        return err_set(ei, ERR_USAGE, "--run takes the folder of a run, not \"\"");
    return ledger_read(conf->run, enough, NULL, &end, ei);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct check_conf *conf = arg;
    ctx->cause = CAUSE_CHECK;
    return checks_run(ctx, &conf->only, conf->run, NULL, ei);
}

const struct command cmd_check = {
    .name = "check",
    .summary = "prove that totals, storage use, objects and acknowledged writes are exact",
    .usage = "sim check [--only NAMES] [--run DIR] [options]",
    .examples = "sim check\n"
                "sim check --only aggregates,storage\n"
                "sim check --run runs/20261130T101500Z-1 --json -",
    .opts = options,
    .conf_size = sizeof(struct check_conf),
    .flags = CMD_NEEDS_URL,
    .verify = verify,
    .run = run,
    .sample = checks_sample,
};
