/* `sim fixture`: snapshots of a seeded stack, so that each of many tries begins from the same state. */
#include "base/clock.h"
#include "drive/stack/fixture.h"
#include "sim/stack/with.h"
#include <stddef.h>
#include <string.h>

struct fixture_options {
    const char *action, *name, *dir, *stack;
    bool force;
};

static const struct opt_pos positions[] = {
    {"action", OPT_STR, offsetof(struct fixture_options, action), 0, 0, false,
     "save NAME: keeps the stack's database and objects; its server is\nstopped for that moment\n"
     "load NAME: puts the stack back into that state, and the server up\n"
     "list: which there are\n"
     "remove NAME: deletes one"},
    {"name", OPT_STR, offsetof(struct fixture_options, name), 0, 0, true, "of the fixture: a folder of that name"},
    {0},
};
static const struct opt options[] = {
    {"dir", 0, "DIR", OPT_STR, offsetof(struct fixture_options, dir), 0, 0,
     "where fixtures are kept (default .sim/fixtures of the stack)"},
    {"stack", 0, "DIR", OPT_STR, offsetof(struct fixture_options, stack), 0, 0,
     "the folder that the stack belongs to (default: this one)"},
    {"force", 'f', NULL, OPT_FLAG, offsetof(struct fixture_options, force), 0, 0,
     "save: replace an older one of that name"},
    {0},
};

struct request {
    struct stack *stack;
    const struct fixture_options *opt;
    struct cmd_ctx *ctx;
};

static void tell(const struct request *r, const char *what, const struct fixture_info *f, struct mono began)
{
    char bytes[32], size[32], took[32];
    fprintf(r->ctx->out, "%s %s: %s, %s of %s; %s on disk, after %s\n", what, f->name, COUNTED(f->folders, "folder"),
            COUNTED(f->files, "file"), str_bytes(bytes, sizeof bytes, f->bytes), str_bytes(size, sizeof size, f->size),
            str_duration(took, sizeof took, mono_diff(mono_now(), began)));
}

static MAY_YIELD enum err save(struct request *r, struct errinfo *ei)
{
    struct fixture_info f;
    struct mono began = mono_now();
    enum err err = fixture_save(r->stack, r->opt->dir, r->opt->name, r->opt->force, &f, ei);
    if (err)
        return err;
    tell(r, "saved", &f, began);
    if (!f.is_seeded)
        fprintf(stderr, "this stack was not seeded by `sim seed`: the fixture cannot tell seed and scale\n");
    return ERR_OK;
}

static MAY_YIELD enum err load(struct request *r, struct errinfo *ei)
{
    struct fixture_info f;
    struct mono began = mono_now();
    enum err err = fixture_load(r->stack, r->opt->dir, r->opt->name, &f, ei);
    if (!err)
        tell(r, "loaded", &f, began);
    return err;
}

static void list_row(void *arg, const struct fixture_info *f, const char *why)
{
    const struct request *r = arg;
    char seed[24] = "-", scale[24] = "-", folders[32], files[32], bytes[32], size[32];
    if (why) {
        fprintf(r->ctx->out, "%-20s cannot be loaded: %s\n", f->name, why);
        return;
    }
    if (f->is_seeded) {
        str_format(seed, sizeof seed, "%lld", (long long)f->seeded.seed);
        str_format(scale, sizeof scale, "%g", f->seeded.scale);
    }
    fprintf(r->ctx->out, "%-20s %6s %6s %9s %9s %10s %10s  %-20s  %s\n", f->name, seed, scale,
            str_thousands(folders, sizeof folders, f->folders), str_thousands(files, sizeof files, f->files),
            str_bytes(bytes, sizeof bytes, f->bytes), str_bytes(size, sizeof size, f->size), f->made, f->version);
}

static MAY_YIELD enum err list(struct request *r, struct errinfo *ei)
{
    fprintf(r->ctx->out, "%-20s %6s %6s %9s %9s %10s %10s  %-20s  %s\n", "NAME", "SEED", "SCALE", "FOLDERS", "FILES",
            "BYTES", "ON DISK", "MADE", "BY DRIVESIM");
    return fixture_each(r->stack, r->opt->dir, list_row, r, ei);
}

static MAY_YIELD enum err remove_one(struct request *r, struct errinfo *ei)
{
    return fixture_remove(r->stack, r->opt->dir, r->opt->name, ei);
}

static const struct action {
    const char *name;
    bool named, change; /* change: takes the stack's lock */
    MAY_YIELD enum err (*run)(struct request *r, struct errinfo *ei);
} actions[] = {
    {"save", true, true, save},
    {"load", true, true, load},
    {"list", false, false, list},
    {"remove", true, false, remove_one},
    {0},
};

static const struct action *find_action(const struct fixture_options *o)
{
    const struct action *a = actions;
    while (a->name && strcmp(a->name, o->action) != 0)
        a++;
    return a;
}

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct fixture_options *o = arg;
    const struct action *a = find_action(o);
    if (!a->name) {
        struct opt_guess near;
        opt_guess_init(&near, sv_of(o->action));
        for (a = actions; a->name; a++)
            opt_guess_try(&near, a->name);
        return err_set(ei, ERR_USAGE, "unknown action '%s'%s", SHOWN(sv_of(o->action)),
                       near.name[0] ? opt_guess_text(&near) : ": save, load, list or remove");
    }
    if (a->named && !o->name)
        return err_set(ei, ERR_USAGE, "%s needs the name of a fixture", a->name);
    if (!a->named && o->name)
        return err_set(ei, ERR_USAGE, "%s takes no name", a->name);
    if (o->force && a->run != save)
        return err_set(ei, ERR_USAGE, "--force is for save");
    return o->name ? fixture_judge_name(o->name, ei) : ERR_OK;
}

static MAY_YIELD enum err perform(struct stack *s, void *arg, struct errinfo *ei)
{
    struct request *r = arg;
    r->stack = s;
    return find_action(r->opt)->run(r, ei);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct fixture_options *o = arg;
    const struct stack_conf conf = {.dir = o->stack, .progress = ctx->common->quiet ? NULL : stderr};
    struct request r = {.opt = o, .ctx = ctx};
    return stack_with(ctx, &conf, find_action(o)->change, perform, &r, ei);
}

const struct command cmd_fixture = {
    .name = "fixture",
    .summary = "snapshots of a seeded stack: save it once, begin each try from the same state",
    .usage = "sim fixture save|load|remove <name> [options]\n       sim fixture list [options]",
    .examples = "sim seed 9 1 && sim fixture save base\n"
                "sim fixture load base && sim run 50 300 2 180\n"
                "sim fixture list\n"
                "sim fixture save base --force --dir /srv/fixtures\n"
                "sim stack up && sim fixture load base --dir /srv/fixtures",
    .pos = positions,
    .opts = options,
    .conf_size = sizeof(struct fixture_options),
    .verify = verify,
    .run = run,
};
