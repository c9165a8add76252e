/* `sim refusals`: every refusal of the table, many times each, beside apps at work. A refusal holds when its reason, as
 * status and sentence, reached the client in every try and in time, and nothing that the account holds has moved. */
#include "base/mem.h"
#include "sim/refusals/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAUSE_US      (20 * US_PER_MS) /* between two tries beside apps: refusals must not be the load themselves */
#define SHARE         0.2              /* by which the background's p95 may grow */
#define UNANSWERED    3                /* tries without an answer after which a row is given up */
#define OPEN_FOLDERS  20
#define DURING_MIN_US (5 * US_PER_S)

static const struct opt opts[] = {
    {"tries", 'n', "N", OPT_INT, offsetof(struct refusals_conf, tries), 1, 100000,
     "how often each refusal is tried (default 30)"},
    {"background", 0, "N", OPT_INT, offsetof(struct refusals_conf, background), 0, 10000,
     "apps at work meanwhile (default 20, 0: none)"},
    {"rate", 0, "N", OPT_NUM, offsetof(struct refusals_conf, per_minute), 0.1, 6000,
     "actions a minute of each of them (default 30)"},
    {"before", 0, "TIME", OPT_DURATION, offsetof(struct refusals_conf, before_us), 1e5, 3.6e9,
     "how long they work alone first (default 15 s)"},
    {"within", 0, "TIME", OPT_DURATION, offsetof(struct refusals_conf, within_us), 1e3, 3e7,
     "a refusal that takes longer fails (default 1 s)"},
    {"max-upload", 0, "SIZE", OPT_SIZE, offsetof(struct refusals_conf, max_upload_bytes), 1, 1e300,
     "the server's largest upload (default 10 GiB)"},
    {"spend", 0, "TIME", OPT_DURATION, offsetof(struct refusals_conf, spend_us), 0, 3.6e9,
     "how long spending a budget may take; a row whose\nbudget needs more is not tried (default 60 s)"},
    {"only", 0, "NAMES", OPT_LIST, offsetof(struct refusals_conf, only), 0, 0,
     "these rows alone, separated by commas; a name ending\nin * takes all that begin so"},
    {"except", 0, "NAMES", OPT_LIST, offsetof(struct refusals_conf, except), 0, 0,
     "all but these rows, named likewise: what this server is\nknown to answer otherwise"},
    {"list", 0, NULL, OPT_FLAG, offsetof(struct refusals_conf, list), 0, 0, "print the rows' names, ask nothing"},
    {0},
};
static const struct refusals_conf defaults = {.tries = 30,
                                              .background = 20,
                                              .per_minute = 30,
                                              .before_us = 15 * US_PER_S,
                                              .within_us = US_PER_S,
                                              .max_upload_bytes = INT64_C(10) << 30,
                                              .spend_us = 60 * US_PER_S};

static void on_interrupt(void *arg)
{
    struct command_refusals *c = arg;
    c->stop = true;
    if (c->background)
        background_stop(c->background);
}

/* ---- which rows ---- */

static bool name_fits(struct sv pattern, const char *key)
{
    struct sv k = sv_of(key);
    if (pattern.n > 0 && pattern.p[pattern.n - 1] == '*')
        return sv_starts(k, (struct sv){pattern.p, pattern.n - 1});
    return sv_eq(k, pattern);
}

static bool any_fits(const struct opt_list *names, const char *key)
{
    struct opt_words words = {.list = names};
    struct sv word;
    while (opt_words_next(&words, &word))
        if (name_fits(word, key))
            return true;
    return false;
}

static bool wanted(const struct refusals_conf *conf, const struct refusal *f)
{
    return (!conf->only.n || any_fits(&conf->only, f->key)) && !any_fits(&conf->except, f->key);
}

static enum err names_valid(const char *option, const struct opt_list *names, struct errinfo *ei)
{
    struct opt_words words = {.list = names};
    struct sv word;
    while (opt_words_next(&words, &word)) {
        struct opt_guess near;
        bool any = false;
        opt_guess_init(&near, word);
        for (size_t i = 0; i < n_refusals; i++) {
            any = any || name_fits(word, refusals[i].key);
            opt_guess_try(&near, refusals[i].key);
        }
        if (!any)
            return err_set(ei, ERR_USAGE, "%s: no refusal is called '%s'%s", option, SHOWN(word),
                           near.name[0] ? opt_guess_text(&near) : "; sim refusals --list names them");
    }
    return ERR_OK;
}

/* ---- one row ---- */

PRINTF_LIKE(3, 4) static void settle(struct verdict_row *v, enum refusal_verdict verdict, const char *fmt, ...)
{
    va_list ap;
    v->verdict = verdict;
    va_start(ap, fmt);
    vsnprintf(v->why, sizeof(v->why), fmt, ap);
    va_end(ap);
}

static bool is_absent(const struct answer *a)
{
    return a->status == 404 || a->status == 405 || a->status == 501;
}

/* The same call by somebody who may: else a refusal would prove nothing. */
static MAY_YIELD bool granted(struct command_refusals *c, const struct refusal *f, struct verdict_row *v)
{
    struct answer a;
    if (f->granted == WHO_OWNER)
        return true;
    refusal_ask(&c->stage, f, f->granted, &a);
    if (a.err == ERR_ENV || is_absent(&a))
        settle(v, VERDICT_NOT_TRIED, "the server has no such call: %d %s", a.status, a.reason);
    else if (a.err != ERR_OK || a.status / 100 != 2)
        settle(v, VERDICT_FAILED, "the same call is refused to a user who may make it: %d %s", a.status, a.reason);
    return v->why[0] == '\0';
}

/* False: no more tries. */
static bool take_answer(struct command_refusals *c, const struct refusal *f, const struct answer *a,
                        struct verdict_row *v, unsigned *unanswered)
{
    char text[280];
    if (v->tries++ == 0) {
        v->status = a->status;
        str_format(v->came, sizeof(v->came), "%s", a->reason);
    }
    if (a->err == ERR_OK)
        hist_record(v->took, a->us);
    if ((f->flags & ROW_MAY_ALLOW) && a->err == ERR_OK && a->status / 100 == 2) {
        settle(v, VERDICT_ALLOWED, "this server's own policy");
        return false;
    }
    const char *problem = refusal_problem(f, a, c->conf->within_us, text, sizeof(text));
    *unanswered += a->err != ERR_OK;
    if (!problem) {
        v->ok++;
        return true;
    }
    if (!v->why[0])
        settle(v, VERDICT_FAILED, "try %u: %s", v->tries, problem);
    return *unanswered < UNANSWERED;
}

static MAY_YIELD void try_row(struct command_refusals *c, const struct refusal *f, struct verdict_row *v)
{
    unsigned unanswered = 0;
    bool more = true;
    for (unsigned i = 0; i < c->conf->tries && more && !c->stop; i++) {
        struct answer a;
        struct mono next = mono_add(mono_now(), PAUSE_US);
        if (f->ask)
            f->ask(&c->stage, f, i, &a);
        else
            refusal_ask(&c->stage, f, f->who, &a);
        more = take_answer(c, f, &a, v, &unanswered);
        if (c->background && more)
            coro_sleep_until(c->ctx->loop, next);
    }
}

static void compare(const struct holdings *was, const struct holdings *is, struct verdict_row *v)
{
    if (!was->known || !is->known || v->why[0])
        return;
    if (was->used != is->used || was->files != is->files || was->folders != is->folders || was->listed != is->listed)
        settle(v, VERDICT_FAILED,
               "refused, but something changed: %+" PRId64 " bytes in use, %+" PRId64 " files, %+" PRId64 " folders",
               drive_difference(is->used, was->used), drive_difference(is->files, was->files),
               drive_difference(is->folders, was->folders));
}

static bool has_failed(const struct command_refusals *c, const char *key)
{
    for (size_t i = 0; key && i < n_refusals; i++)
        if (strcmp(refusals[i].key, key) == 0)
            return c->rows[i].verdict == VERDICT_FAILED;
    return false;
}

static const char *unfit(struct command_refusals *c, const struct refusal *f)
{
    const char *why = "";
    if (has_failed(c, f->unless))
        return "a server that lets a folder into itself might copy for ever";
    if (c->stop)
        return "interrupted";
    if ((f->flags & ROW_OWN_ACCOUNT) && !c->stage.own_account)
        return "it needs an account of its own, which this server does not let us make";
    if ((f->flags & ROW_PLAIN) && strncmp(c->ctx->target->url, "https:", 6) == 0)
        return "it is sent byte by byte, which is not done over TLS";
    return (f->flags & ROW_CALLS) || stage_peer(&c->stage, f->who, &why) ? NULL : why;
}

static MAY_YIELD void run_row(struct command_refusals *c, const struct refusal *f, struct verdict_row *v)
{
    struct holdings was, is;
    char why[200] = "";
    const char *no = unfit(c, f);
    v->took = hist_new();
    if (no) {
        settle(v, VERDICT_NOT_TRIED, "%s", no);
        return;
    }
    if (!refusal_things_there(&c->stage, f, why, sizeof(why)) ||
        (f->before && !f->before(&c->stage, f, why, sizeof(why)))) {
        settle(v, VERDICT_NOT_TRIED, "%s", c->stop ? "interrupted" : why);
    } else if (granted(c, f, v)) {
        stage_holdings(&c->stage, &was);
        try_row(c, f, v);
        stage_holdings(&c->stage, &is);
        compare(&was, &is, v);
        if (v->tries == 0)
            settle(v, VERDICT_NOT_TRIED, "interrupted");
    }
    if (f->after)
        f->after(&c->stage);
}

/* ---- the course ---- */

static MAY_YIELD void run_rows(struct command_refusals *c, bool alone)
{
    bool calls = !target_shows_inside(c->ctx->target);
    for (size_t i = 0; i < n_refusals; i++) {
        const struct refusal *f = &refusals[i];
        if (!wanted(c->conf, f) || alone != ((f->flags & ROW_ALONE) != 0) || ((f->flags & ROW_CALLS) != 0) != calls)
            continue;
        run_row(c, f, &c->rows[i]);
        refusals_print_row(c, f, &c->rows[i]);
    }
}

static MAY_YIELD enum err background_up(struct command_refusals *c, struct errinfo *ei)
{
    const struct background_conf conf = {(unsigned)c->conf->background, OPEN_FOLDERS, c->conf->per_minute};
    char t[32];
    if (c->conf->background == 0)
        return ERR_OK;
    enum err e = background_start(&c->background, c->ctx, &conf, ei);
    if (e != ERR_OK)
        return e;
    fprintf(c->ctx->out, "background: %s at work, %s alone first\n", COUNTED(conf.apps, "app"),
            str_duration(t, sizeof(t), c->conf->before_us));
    background_mark(c->background);
    coro_sleep_unless(c->ctx->loop, mono_add(mono_now(), c->conf->before_us), &c->stop);
    background_look(c->background, &c->before);
    background_mark(c->background);
    return ERR_OK;
}

static MAY_YIELD void background_down(struct command_refusals *c, struct mono began)
{
    if (!c->background)
        return;
    coro_sleep_unless(c->ctx->loop,
                      mono_add(began, c->conf->before_us < DURING_MIN_US ? c->conf->before_us : DURING_MIN_US),
                      &c->stop);
    background_look(c->background, &c->during);
    c->held = background_compare(&c->before, &c->during, SHARE);
    background_end(&c->background);
}

static MAY_YIELD enum err carry_out(struct command_refusals *c, struct errinfo *ei)
{
    enum err e = stage_build(&c->stage, ei);
    if (e == ERR_OK)
        e = background_up(c, ei);
    if (e != ERR_OK)
        return e;
    cmd_phase(c->ctx, "work");
    struct mono began = mono_now();
    refusals_print_head(c->ctx->out);
    run_rows(c, false);
    background_down(c, began);
    run_rows(c, true);
    return ERR_OK;
}

static MAY_YIELD void clear(struct command_refusals *c)
{
    char left[300];
    background_end(&c->background);
    stage_clear(&c->stage, left, sizeof(left));
    if (left[0])
        fprintf(c->ctx->out, "not removed: %s\n", left);
    stage_free(&c->stage);
}

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct refusals_conf *conf = arg;
    enum err e = names_valid("--only", &conf->only, ei);
    return e == ERR_OK ? names_valid("--except", &conf->except, ei) : e;
}

static MAY_YIELD enum err run_main(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct refusals_conf *conf = arg;
    struct command_refusals *c;
    if (conf->list) {
        refusals_print_list(ctx->out);
        return ERR_OK;
    }
    ctx->cause = CAUSE_ACTION;
    c = mem_zalloc(sizeof(*c));
    *c = (struct command_refusals){.conf = conf, .ctx = ctx, .rows = mem_zalloc(n_refusals * sizeof(*c->rows))};
    c->stage = (struct stage){.ctx = ctx,
                              .conf = {conf->max_upload_bytes, conf->spend_us},
                              .stop = &c->stop,
                              .budget = {.loop = ctx->loop, .stop = &c->stop}};
    ctx->on_interrupt_arg = c;
    ctx->on_interrupt = on_interrupt;
    enum err e = carry_out(c, ei);
    clear(c);
    if (e == ERR_OK)
        refusals_report(c);
    ctx->on_interrupt = NULL;
    for (size_t i = 0; i < n_refusals; i++)
        hist_free(&c->rows[i].took);
    mem_free(c->rows);
    mem_free(c);
    return e;
}

static bool offline(const void *conf)
{
    return ((const struct refusals_conf *)conf)->list;
}

const struct command cmd_refusals = {
    .name = "refusals",
    .summary = "ask for what must be refused, many times, and check that the reason arrives",
    .usage = "sim refusals [options]",
    .examples = "sim refusals\n"
                "sim refusals --tries 3 --background 0 --only 'over_quota*,no_upload'\n"
                "sim refusals --background 50 --rate 60 --json refusals.json\n"
                "sim refusals --fail-on 'no_token.p95<100ms' --fail-on 'background.failed==0'",
    .opts = opts,
    .conf_size = sizeof(struct refusals_conf),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_FAILURES_MATTER,
    .verify = verify,
    .run = run_main,
    .offline = offline,
    .sample = refusals_sample,
};
