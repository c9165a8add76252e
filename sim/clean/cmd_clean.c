/* `sim clean`: takes away what seed, run and refusals made on a server. Nothing happens before it was shown and agreed
 * to. */
#include "base/mem.h"
#include "drive/belong.h"
#include "net/loop.h"
#include "sim/clean/clean.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct clean_conf {
    bool yes, dry_run;
};
struct asking {
    struct io io;
    struct done done;
};
struct command_clean {
    struct clean clean;
    struct asking asking;
};

static const struct opt opts[] = {
    {"yes", 'y', NULL, OPT_FLAG, offsetof(struct clean_conf, yes), 0, 0, "remove without asking"},
    {"dry-run", 0, NULL, OPT_FLAG, offsetof(struct clean_conf, dry_run), 0, 0, "show what would be removed"},
    {0},
};

static void on_interrupt(void *arg)
{
    struct command_clean *c = arg;
    c->clean.stop = true;
    done_set(&c->asking.done);
}

static void on_stdin(struct io *io, uint32_t events)
{
    struct asking *a = container_of(io, struct asking, io);
    (void)events;
    loop_io_set(io, 0);
    done_set(&a->done);
}

/* On a terminal: a line that says yes, and nothing else, agrees. */
static MAY_YIELD bool agreed(struct command_clean *c)
{
    struct cmd_ctx *ctx = c->clean.ctx;
    char line[64] = "";
    struct errinfo ei;
    fprintf(ctx->out, "remove all of this? type yes: ");
    fflush(ctx->out);
    c->asking.io = (struct io){.fd = STDIN_FILENO, .fn = on_stdin};
    if (loop_io_add(ctx->loop, &c->asking.io, EPOLLIN, &ei) != ERR_OK)
        return false;
    done_wait(ctx->loop, &c->asking.done);
    loop_io_remove(&c->asking.io);
    return !c->clean.stop && fgets(line, sizeof(line), stdin) && sv_eq_cstr(sv_trim(sv_of(line)), "yes");
}

/* Returns how many accounts were taken away. */
static uint64_t add_figures(struct result *r, const struct clean *c)
{
    uint64_t accounts = 0, subs = 0, files = 0, folders = 0;
    for (size_t i = 0; i < c->n_accounts; i++) {
        const struct clean_account *a = &c->accounts[i];
        accounts += a->api != NULL;
        subs += a->n_subs;
        files += a->files > 0 ? (uint64_t)a->files : 0;
        folders += a->folders > 0 ? (uint64_t)a->folders : 0;
    }
    result_figure(r, "clean", "accounts", (double)accounts, 0);
    result_figure(r, "clean", "sub_users", (double)subs, 0);
    result_figure(r, "clean", "files", (double)files, 0);
    result_figure(r, "clean", "folders", (double)folders, 0);
    result_figure(r, "clean", "objects_without_rows", (double)c->objects, 0);
    result_figure(r, "clean", "redis_keys", (double)c->n_keys, 0);
    result_figure(r, "clean", "left", (double)c->n_left, 0);
    return accounts;
}

static void sample(struct result *r)
{
    const struct clean none = {0};
    add_figures(r, &none);
}

static void report(const struct clean *c)
{
    struct result *r = c->ctx->result;
    struct check_result *check = result_check(r, "clean");
    check->examined = add_figures(r, c);
    for (size_t i = 0; i < c->n_left; i++)
        result_check_add(check, "not removed: %s", c->left[i]);
}

/* *go: what was shown is to be done. */
static MAY_YIELD enum err consent(struct command_clean *c, const struct clean_conf *conf, bool *go, struct errinfo *ei)
{
    if (conf->dry_run)
        return ERR_OK;
    if (!conf->yes && !isatty(STDIN_FILENO))
        return err_set(ei, ERR_USAGE, "nothing was removed: call it again with --yes to remove all of the above");
    if (!conf->yes && !agreed(c))
        return err_set(ei, ERR_CANCELLED, "nothing was removed, since the answer was not yes");
    *go = true;
    return ERR_OK;
}

/* What is deleted from a database, a bucket or Redis has to be this server's. */
static MAY_YIELD enum err prove_parts(struct clean *x, struct errinfo *ei)
{
    struct belong b = {.parts = ""};
    size_t i = 0;
    while (i < x->n_accounts && !x->accounts[i].api)
        i++;
    enum err e = i < x->n_accounts ? belong_prove(x->ctx, x->accounts[i].api, true, &b, ei) : ERR_OK;
    if (e == ERR_OK && b.parts[0])
        e = err_set(ei, ERR_ENV, "nothing was removed, since nothing proves that %s is of this server: %s", b.parts,
                    b.why);
    return e;
}

static MAY_YIELD enum err carry_out(struct command_clean *c, const struct clean_conf *conf, struct errinfo *ei)
{
    struct clean *x = &c->clean;
    enum err e = clean_find(x, ei);
    if (e != ERR_OK)
        return e;
    if (!clean_anything(x)) {
        fprintf(x->ctx->out, "nothing that drivesim made is there\n");
        return ERR_OK;
    }
    e = prove_parts(x, ei);
    if (e != ERR_OK)
        return e;
    clean_print(x);
    bool go = false;
    e = consent(c, conf, &go, ei);
    if (e != ERR_OK || !go)
        return e;
    clean_remove(x);
    api_space_forget(x->ctx->space);
    report(x);
    return ERR_OK;
}

/* Where the logins were given, all that is ours is one folder a tree, and accounts that were made with their help. */
static MAY_YIELD enum err carry_out_given(struct command_clean *c, const struct clean_conf *conf, struct errinfo *ei)
{
    struct clean *x = &c->clean;
    bool go = false;
    enum err e = clean_given_find(x, ei);
    if (e != ERR_OK)
        return e;
    if (x->n_accounts == 0) {
        fprintf(x->ctx->out, "nothing that drivesim made is there\n");
        return ERR_OK;
    }
    clean_given_print(x);
    e = consent(c, conf, &go, ei);
    if (e != ERR_OK || !go)
        return e;
    clean_given_remove(x);
    report(x);
    return ERR_OK;
}

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct clean_conf *c = arg;
    return c->yes && c->dry_run ? err_set(ei, ERR_USAGE, "--yes and --dry-run exclude each other") : ERR_OK;
}

static MAY_YIELD enum err run_main(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    struct command_clean *c = mem_zalloc(sizeof(*c));
    c->clean.ctx = ctx;
    c->clean.budget = (struct budget){.loop = ctx->loop, .stop = &c->clean.stop};
    ctx->cause = CAUSE_ACTION;
    ctx->on_interrupt_arg = c;
    ctx->on_interrupt = on_interrupt;
    bool given = target_logins_given(ctx->target) || ctx->target->logins_made;
    enum err e = given ? carry_out_given(c, arg, ei) : carry_out(c, arg, ei);
    ctx->on_interrupt = NULL;
    clean_free(&c->clean);
    mem_free(c);
    return e;
}

const struct command cmd_clean = {
    .name = "clean",
    .summary = "remove what drivesim made on a server: accounts, trees, objects, Redis keys",
    .usage = "sim clean [--yes | --dry-run] [options]",
    .examples = "sim clean --dry-run\n"
                "sim clean --yes",
    .opts = opts,
    .conf_size = sizeof(struct clean_conf),
    .flags = CMD_NEEDS_URL | CMD_PROVES,
    .verify = verify,
    .run = run_main,
    .sample = sample,
};
