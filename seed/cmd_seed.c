/* sim seed: rounds of "what is there" and "make what is missing" until nothing is missing. An unbroken seeding takes
 * one round and the question at the end, which is also its verification. */
#include "base/log.h"
#include "base/mem.h"
#include "drive/belong.h"
#include "drive/stack/seeded.h"
#include "seed/seed.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS_MOST 6
#define LOOKS_MOST  10
#define LOOK_US     US_PER_S
#define SETTLE_US   (3 * US_PER_S) /* a write without an answer may still be under way */

void seed_fail(struct seeder *s, enum err err, const char *fmt, ...)
{
    va_list ap;
    s->stop = true;
    if (s->fatal)
        return;
    s->fatal = err;
    char text[sizeof s->why.msg];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(&s->why, err, "%s", text);
}

void seed_say(struct seeder *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(s->ctx->out, fmt, ap);
    va_end(ap);
    fputc('\n', s->ctx->out);
}

/* Of the way, not of the outcome: left out with --quiet. */
#define NOTE(s, ...)                                                                                                   \
    do {                                                                                                               \
        if (!(s)->ctx->common->quiet)                                                                                  \
            seed_say(s, __VA_ARGS__);                                                                                  \
    } while (0)

static void on_interrupt(void *arg)
{
    struct seeder *s = arg;
    s->stop = true;
}

static void plan(struct seeder *s)
{
    enum shape_preset preset = SHAPE_DRIVE;
    (void)shape_preset_parse(s->conf->preset, &preset); /* judged before */
    s->trees = mem_zalloc(s->n_accounts * sizeof *s->trees);
    s->founds = mem_zalloc(s->n_accounts * sizeof *s->founds);
    for (unsigned a = 0; a < s->n_accounts; a++) {
        struct planned_conf c = {.scale = s->conf->scale,
                                 .bytes_scale = s->conf->bytes_scale,
                                 .preset = preset,
                                 .seed = (uint64_t)s->ctx->common->seed,
                                 .account = a,
                                 .name_max =
                                     s->conf->name_max ? (unsigned)s->conf->name_max : s->ctx->target->name_max};
        planned_make(&s->trees[a], &c);
        found_init(&s->founds[a], &s->trees[a]);
    }
}

static void say_plan(struct seeder *s)
{
    uint64_t folders = 0, files = 0, bytes = 0;
    char c[32];
    for (size_t i = 0; i < s->n_accounts; i++) {
        folders += s->trees[i].counts.folders;
        files += s->trees[i].counts.files;
        bytes += s->trees[i].bytes;
    }
    NOTE(s, "plan: %s with %s%s, %s, %s, %s (seed %lld, sizes \"%s\")", COUNTED(s->n_accounts, "owner"),
         COUNTED((uint64_t)s->conf->sub_users, "sub-user"), s->n_accounts > 1 ? " each" : "",
         COUNTED(folders, "folder"), COUNTED(files, "file"), str_bytes(c, sizeof c, bytes),
         (long long)s->ctx->common->seed, s->conf->preset);
}

static void say_found(struct seeder *s)
{
    uint64_t folders = 0, files = 0;
    for (size_t i = 0; i < s->n_accounts; i++) {
        folders += s->founds[i].n_folders;
        files += s->founds[i].n_files;
    }
    if (folders || files)
        NOTE(s, "already there: %s, %s%s", COUNTED(folders, "folder"), COUNTED(files, "file"),
             seed_complete(s) ? "; nothing is missing" : "; continuing from there");
}

static uint64_t entries_found(const struct seeder *s)
{
    uint64_t n = 0;
    for (size_t a = 0; a < s->n_accounts; a++)
        n += s->founds[a].n_folders + s->founds[a].n_files + s->founds[a].other_files;
    return n;
}

/* A half-made tree may still be growing: the server finishes what a killed seeder had sent. Two looks that agree, a
 * moment apart, say that it has; what comes later all the same ends as a second copy and is removed. */
static MAY_YIELD void look_first(struct seeder *s)
{
    uint64_t before = 0;
    for (unsigned looks = 0; !s->stop; looks++) {
        seed_scan(s, "folders looked into");
        uint64_t now = entries_found(s);
        if (now == 0 || now == before || seed_complete(s) || looks == LOOKS_MOST)
            break;
        before = now;
        coro_sleep_until(s->ctx->loop, mono_add(mono_now(), LOOK_US));
    }
    if (!s->stop)
        say_found(s);
}

/* Requests that the missing part takes at least, against what an account's logins may send in their window. */
static void say_budget(struct seeder *s)
{
    char wait[32];
    int64_t longest = 0;
    for (unsigned a = 0; a < s->n_accounts; a++) {
        int64_t us = seed_budget_wait_us(s, a, seed_requests_left(s, a));
        longest = us > longest ? us : longest;
    }
    if (longest)
        NOTE(s, "waiting for the logins' request budgets will take about %s; more sub-users would shorten that",
             str_duration(wait, sizeof wait, longest));
}

static uint64_t planned_found(const struct seeder *s)
{
    uint64_t n = 0;
    for (size_t a = 0; a < s->n_accounts; a++)
        n += s->founds[a].n_folders + s->founds[a].n_files;
    return n;
}

static MAY_YIELD void rounds(struct seeder *s)
{
    look_first(s);
    if (!s->stop)
        say_budget(s);
    for (unsigned round = 0; !s->stop && !seed_complete(s); round++) {
        uint64_t before = planned_found(s);
        s->failed = s->unsettled = 0;
        seed_load_folders(s);
        seed_load_files(s);
        if (s->unsettled && !s->stop)
            coro_sleep_until(s->ctx->loop, mono_add(mono_now(), SETTLE_US));
        seed_scan(s, "folders verified");
        if (s->stop || seed_complete(s))
            return;
        bool progress = planned_found(s) > before; /* whoever made it: another seeder may be at the same tree */
        if (!progress || round == ROUNDS_MOST)
            seed_fail(s, ERR_CHECK, "could not be made: %s; the reasons are below", COUNTED(s->failed, "entry"));
        else
            NOTE(s, "still missing: %s; trying once more", COUNTED(s->failed, "entry"));
    }
}

/* For fixtures of the stack. That it cannot be noted costs them two columns. */
static void note_seeded(const struct seeder *s)
{
    const struct seed_conf *c = s->conf;
    const struct tree_summary *t = &s->ctx->result->tree;
    struct stack_seeded note = {.seed = s->ctx->common->seed,
                                .sub_users = c->sub_users,
                                .accounts = c->accounts,
                                .scale = c->scale,
                                .bytes_scale = c->bytes_scale,
                                .folders = t->folders,
                                .files = t->files,
                                .bytes = t->bytes};
    struct errinfo why;
    str_format(note.preset, sizeof note.preset, "%s", c->preset);
    str_format(note.manifest_sha256, sizeof note.manifest_sha256, "%s", t->manifest_sha256);
    if (s->ctx->target->own_stack && stack_note_seeded(&note, &why))
        LOGW("seed", "%s", err_message(&why));
}

/* Before the hours that a large tree takes; there was no account to prove it by until now. */
static MAY_YIELD void prove_parts(struct seeder *s)
{
    struct errinfo why;
    enum err err = belong_prove_saying(s->ctx, s->accounts[0].logins[0].api, &why);
    if (err)
        seed_fail(s, err, "%s", err_message(&why));
}

static MAY_YIELD enum err seed_all(struct seeder *s, struct errinfo *ei)
{
    seed_accounts(s);
    if (!s->stop)
        prove_parts(s);
    if (!s->stop)
        rounds(s);
    if (!s->stop)
        seed_remove_twins(s);
    if (!s->stop)
        seed_verify_content(s);
    bool looked = !s->fatal || s->fatal == ERR_CHECK || s->fatal == ERR_WRONG;
    if (looked && !*s->ctx->interrupts)
        seed_summarise(s);
    if (s->folders_made || s->files_made)
        NOTE(s, "made: %s, %s; read back and compared: %s", COUNTED(s->folders_made, "folder"),
             COUNTED(s->files_made, "file"), COUNTED(s->contents_checked, "file"));
    if (s->fatal) {
        if (ei)
            *ei = s->why;
        return s->fatal;
    }
    if (s->stop)
        return err_set(ei, ERR_INTERRUPTED, "interrupted: the same command resumes where this one ended");
    note_seeded(s);
    return ERR_OK;
}

static enum err verify(void *conf, struct errinfo *ei)
{
    const struct seed_conf *c = conf;
    enum shape_preset preset;
    return shape_preset_parse(c->preset, &preset)
               ? ERR_OK
               : err_set(ei, ERR_USAGE, "--preset takes drive or desktop, not \"%s\"", c->preset);
}

static MAY_YIELD enum err run(void *conf, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct seed_conf *c = conf;
    struct seeder s = {.ctx = ctx, .conf = c, .stats = &ctx->result->stats, .n_accounts = (size_t)c->accounts};
    plan(&s);
    say_plan(&s);
    enum err err = ERR_OK;
    if (c->explain)
        seed_explain(&s);
    ctx->on_interrupt = on_interrupt;
    ctx->on_interrupt_arg = &s;
    if (!c->explain) {
        pulse_init(&s.pulse, ctx->http, ctx->target->url, cmd_counters(ctx, CAUSE_WATCH));
        err = seed_all(&s, ei);
        pulse_done(&s.pulse);
    }
    ctx->on_interrupt = NULL;
    seed_accounts_free(&s);
    for (size_t i = 0; i < s.n_accounts; i++) {
        planned_done(&s.trees[i]);
        found_done(&s.founds[i]);
    }
    mem_free(s.trees);
    mem_free(s.founds);
    return err;
}

static bool only_explains(const void *conf)
{
    return ((const struct seed_conf *)conf)->explain;
}

static const struct opt_pos pos[] = {
    {"sub-users", OPT_INT, offsetof(struct seed_conf, sub_users), 0, 500, false, "logins of each owner besides itself"},
    {"scale", OPT_NUM, offsetof(struct seed_conf, scale), 0.0001, SHAPE_SCALE_MAX, false,
     "multiplies the tree; 1 is 2,194 folders and 16,787 files"},
    {0},
};
static const struct opt opts[] = {
    {"accounts", 0, "N", OPT_INT, offsetof(struct seed_conf, accounts), 1, 1000, "this many owners, each with a tree"},
    {"preset", 0, "NAME", OPT_STR, offsetof(struct seed_conf, preset), 0, 0,
     "file sizes: drive (scale 1 is about 1 GiB) or desktop"},
    {"bytes-scale", 0, "X", OPT_NUM, offsetof(struct seed_conf, bytes_scale), 0.00001, 1000,
     "multiplies the file sizes"},
    {"name-max", 0, "BYTES", OPT_INT, offsetof(struct seed_conf, name_max), 40, 255,
     "no file name longer than this (default: what the server is known to take)"},
    {"explain", 0, NULL, OPT_FLAG, offsetof(struct seed_conf, explain), 0, 0,
     "print the planned tree beside its targets; needs no server"},
    {"jobs", 'j', "N", OPT_INT, offsetof(struct seed_conf, jobs), 0, 1000,
     "requests at a time; 0 (the default) finds the best number"},
    {0},
};
static const struct seed_conf defaults = {.accounts = 1, .preset = "drive", .bytes_scale = 1};

const struct command cmd_seed = {
    .name = "seed",
    .summary = "make the accounts and a production-shaped tree",
    .usage = "sim seed <sub-users> <scale> [options]",
    .examples = "sim seed 9 1\nsim seed 4 0.05 --accounts 20\nsim seed 9 0.1 --bytes-scale 0.1\nsim seed 0 1 --explain",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct seed_conf),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_PROVES,
    .verify = verify,
    .run = run,
    .offline = only_explains,
};
