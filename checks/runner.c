#include "checks/runner.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/shortage.h"
#include "checks/evidence/others.h"
#include "checks/evidence/told.h"
#include "drive/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PORTS_BACK_US (3 * US_PER_S / 2)

/* The order in which they are asked: what waits first, what leaves traces in the server last. */
static const struct check *const all_checks[] = {
    &check_drain,   &check_aggregates, &check_storage,     &check_structure, &check_objects,
    &check_ledger,  &check_answers,    &check_reads,       &check_versions,  &check_locks,
    &check_changes, &check_events,     &check_convergence, &check_database,  &check_server,
};

void check_detail(struct check_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    result_check_detail(r, fmt, ap);
    va_end(ap);
}

PRINTF_LIKE(2, 0) static void set_summary(struct check_result *r, const char *fmt, va_list ap)
{
    vsnprintf(r->summary, sizeof(r->summary), fmt, ap);
}

void check_not_run(struct check_result *r, const char *fmt, ...)
{
    r->status = CHECK_NOT_RUN;
    va_list ap;
    va_start(ap, fmt);
    set_summary(r, fmt, ap);
    va_end(ap);
}

void check_blocked(struct check_result *r, const char *fmt, ...)
{
    r->status = CHECK_NOT_RUN;
    r->blocked = true;
    va_list ap;
    va_start(ap, fmt);
    set_summary(r, fmt, ap);
    va_end(ap);
}

void check_summary(struct check_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    set_summary(r, fmt, ap);
    va_end(ap);
}

#define NOT_OFFERED "not offered: a server of this kind has no "

/* What was not even named is not run; what was and cannot be had blocks. */
static void say_missing(struct check_result *r, bool named, const struct errinfo *why)
{
    if (named)
        check_blocked(r, "%s", err_message(why));
    else
        check_not_run(r, "%s", err_message(why));
}

/* A database that is named beside given logins is another server's. */
static bool names_database(const struct check_ctx *c)
{
    return c->cmd->target->database_url && target_shows_inside(c->cmd->target);
}

const struct tree *check_rows(struct check_ctx *c, struct check_result *r)
{
    if (c->tree && !c->tree->listed)
        return c->tree;
    if (c->tree)
        check_not_run(r, NOT_OFFERED "database");
    else
        say_missing(r, names_database(c), &c->pg_why);
    return NULL;
}

const struct tree *check_tree(struct check_ctx *c, struct check_result *r)
{
    if (!c->tree)
        say_missing(r, names_database(c) || !target_shows_inside(c->cmd->target), &c->pg_why);
    return c->tree;
}

struct pg_pool *check_pg(struct check_ctx *c, struct check_result *r)
{
    if (!c->pg)
        say_missing(r, names_database(c), &c->pg_why);
    return c->pg;
}

struct blob *check_blob(struct check_ctx *c, struct check_result *r)
{
    if (!c->blob)
        say_missing(r, target_has_s3(c->cmd->target) && target_shows_inside(c->cmd->target), &c->blob_why);
    return c->blob;
}

const struct journal *check_journal(struct check_ctx *c, struct check_result *r)
{
    if (!c->run_dir) {
        check_not_run(r, "no run to judge: 'sim check --run FOLDER' names one");
        return NULL;
    }
    if (!c->journal) {
        check_blocked(r, "%s", err_message(&c->journal_why));
        return NULL;
    }
    if (c->journal->end.tail == LEDGER_DAMAGED) { /* what is missing in the middle may explain anything */
        check_blocked(r, "%s (at byte %" PRIu64 ")", journal_damage(c->journal), c->journal->end.at);
        return NULL;
    }
    return c->journal;
}

static bool wanted(const struct opt_list *only, const char *name)
{
    struct opt_words words = {.list = only};
    struct sv word;
    while (only && opt_words_next(&words, &word))
        if (sv_eq_cstr(word, name))
            return true;
    return !only;
}

enum err checks_judge_names(const struct opt_list *only, struct errinfo *ei)
{
    struct opt_words words = {.list = only};
    struct sv word;
    while (opt_words_next(&words, &word)) {
        struct opt_guess near;
        bool known = false;
        opt_guess_init(&near, word);
        for (size_t i = 0; i < ARRAY_LEN(all_checks); i++) {
            known = known || sv_eq_cstr(word, all_checks[i]->name);
            opt_guess_try(&near, all_checks[i]->name);
        }
        if (known)
            continue;
        if (near.name[0])
            return err_set(ei, ERR_USAGE, "no check is called '%s'%s", SHOWN(word), opt_guess_text(&near));
        char names[200] = "";
        for (size_t i = 0; i < ARRAY_LEN(all_checks); i++)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "", all_checks[i]->name);
        return err_set(ei, ERR_USAGE, "no check is called '" SV_FMT "'; there are %s", SV_ARG(word), names);
    }
    return ERR_OK;
}

static MAY_YIELD void open_database(struct check_ctx *c)
{
    const struct target *t = c->cmd->target;
    if (!target_shows_inside(t)) { /* a database that is named all the same is another server's */
        err_set(&c->pg_why, ERR_ENV, NOT_OFFERED "database");
        return;
    }
    if (!t->database_url) {
        err_set(&c->pg_why, ERR_ENV, "DATABASE_URL is not set");
        return;
    }
    if (pg_pool_new(&c->pg, c->cmd->loop, t->database_url, 4, &c->pg_why) != ERR_OK)
        return;
    struct pg *pg = NULL;
    enum err e = pg_take(c->pg, &pg, &c->pg_why);
    if (e == ERR_OK)
        e = schema_probe(pg, &c->schema, &c->pg_why);
    if (pg)
        pg_give(&pg);
}

static MAY_YIELD void read_rows(struct check_ctx *c)
{
    if (!target_shows_inside(c->cmd->target) && tree_list(c, &c->tree, &c->pg_why) != ERR_OK)
        c->tree = NULL;
    if (c->pg && c->pg_why.code == ERR_OK && tree_load(c->pg, &c->tree, &c->pg_why) != ERR_OK)
        c->tree = NULL;
}

static void open_store(struct check_ctx *c)
{
    const struct target *t = c->cmd->target;
    if (!target_shows_inside(t)) {
        err_set(&c->blob_why, ERR_ENV, NOT_OFFERED "objects");
        return;
    }
    if (!target_has_s3(t)) {
        err_set(&c->blob_why, ERR_ENV, "TMA_LOAD_S3_ENDPOINT, _BUCKET, _ACCESS_KEY and _SECRET_KEY are not all set");
        return;
    }
    struct blob_conf conf = target_blob_conf(t);
    c->work = work_new(c->cmd->loop, 8);
    if (blob_new(&c->blob, c->cmd->loop, c->cmd->http, c->work, &conf, &c->blob_why) != ERR_OK)
        c->blob = NULL;
}

static MAY_YIELD void close_all(struct check_ctx *c)
{
    told_sign_out(c); /* it borrows from the tree */
    tree_free(&c->tree);
    journal_free(&c->journal);
    map_free(&c->others);
    if (c->pg)
        pg_pool_free(&c->pg);
    if (c->blob)
        blob_free(&c->blob);
    if (c->work)
        work_free(&c->work);
}

/* The ledger, and what else the run left for the checks in its folder. */
static MAY_YIELD void open_journal(struct check_ctx *c, struct check_baseline *kept)
{
    const struct json *run;
    int64_t broken = 1; /* an unfinished run has seen an end as sudden as an outage's */
    if (!c->offline)
        c->calls_broken = stats_broken(&c->cmd->result->stats) > 0;
    if (!c->run_dir || journal_read(c->run_dir, &c->journal, &c->journal_why) != ERR_OK)
        return;
    run = c->journal->run;
    if (c->offline && json_get(run, "baseline")) {
        check_baseline_read(kept, json_get(run, "baseline"));
        if (check_same_accounts(c, kept, &c->journal_why) != ERR_OK) {
            journal_free(&c->journal);
            return;
        }
        c->since = kept;
    }
    if (c->journal->finished && !json_i64(json_get(run, "broken_calls"), &broken))
        broken = 0;
    c->calls_broken |= broken > 0;
}

struct verdict {
    unsigned violated, ran, proofs;
    const char *missed; /* of those asked for by name */
    char blocked_name[32], blocked_why[200];
};

static void count(struct verdict *v, const struct check *check, const struct check_result *r, bool asked)
{
    v->violated += r->status == CHECK_VIOLATED;
    v->ran += r->status != CHECK_NOT_RUN;
    /* that it is at rest, and what it says of itself, proves nothing */
    v->proofs += r->status != CHECK_NOT_RUN && check != &check_server && check != &check_drain;
    if (r->status == CHECK_NOT_RUN && asked)
        v->missed = r->name;
    if (r->blocked && !v->blocked_name[0]) {
        snprintf(v->blocked_name, sizeof(v->blocked_name), "%s", r->name);
        snprintf(v->blocked_why, sizeof(v->blocked_why), "%s", r->summary);
    }
}

/* Checks ask the database more than once: that it went away meanwhile must not look like an answer. */
static MAY_YIELD enum err still_there(struct check_ctx *c, struct errinfo *ei)
{
    struct errinfo why;
    struct pg_result *res = NULL;
    if (!c->pg)
        return ERR_OK;
    enum err e = pg_run(c->pg, "SELECT 1", 0, NULL, &res, &why);
    pg_result_free(&res);
    if (e != ERR_OK)
        e = err_set(ei, ERR_ENV, "the database went away while the checks ran: %s", err_message(&why));
    return e;
}

/* This machine, of something that a connection takes: what was not run for it says so, as does the generator. */
static bool ran_short(void)
{
    return shortage_count(SHORTAGE_PORTS) + shortage_count(SHORTAGE_FILES) + shortage_count(SHORTAGE_MEMORY) > 0;
}

static enum err conclude(const struct check_ctx *c, const struct verdict *v, bool only, struct errinfo *ei)
{
    if (v->violated > 0)
        return err_set(ei, ERR_CHECK, "%u of %u checks found something wrong", v->violated, v->ran);
    if (*c->cmd->interrupts)
        return ERR_OK;
    if (v->blocked_name[0] && (c->offline || !ran_short()))
        return err_set(ei, ERR_ENV, "the check '%s' could not run: %s", v->blocked_name, v->blocked_why);
    if (c->journal && journal_damage(c->journal))
        return err_set(ei, ERR_ENV, "%s: only what comes before byte %" PRIu64 " was judged",
                       journal_damage(c->journal), c->journal->end.at);
    /* After a seed or a run the work itself succeeded: what the server does not offer is said, but is no failure. */
    if (!c->offline)
        return ERR_OK;
    if (v->missed)
        return err_set(ei, ERR_ENV, "the check '%s' could not run", v->missed);
    if (!only && v->proofs == 0)
        return err_set(ei, ERR_ENV, "nothing could be checked: set DATABASE_URL and TMA_LOAD_S3_*, or give --run");
    return ERR_OK;
}

/* The wait for a server to come to rest, and a large tree, take their time. */
static void tell(struct progress *p, struct mono began, const char *doing)
{
    progress_set(p, (uint64_t)(mono_diff(mono_now(), began) / US_PER_S), doing);
}

enum err checks_run(struct cmd_ctx *ctx, const struct opt_list *only, const char *run_dir,
                    const struct check_baseline *since, struct errinfo *ei)
{
    struct verdict v = {0};
    struct check_baseline kept;
    if (only && only->n == 0)
        only = NULL;
    struct check_ctx c = {.cmd = ctx, .run_dir = run_dir, .since = since, .offline = !since};
    struct mono began = mono_now();
    struct progress *p = progress_new_seconds(ctx->common->quiet ? NULL : ctx->out, ctx->tty, "checking", 0);
    if (ran_short()) /* ports of closed connections come back: TIME_WAIT is reused after a second (tcp_tw_reuse) */
        coro_sleep_until(ctx->loop, mono_add(mono_now(), PORTS_BACK_US));
    open_database(&c);
    open_store(&c);
    open_journal(&c, &kept);
    tell(p, began, "waiting until the server is at rest");
    check_drain_wait(&c);
    tell(p, began, "reading what is there");
    read_rows(&c);
    for (size_t i = 0; i < ARRAY_LEN(all_checks); i++) {
        if (!wanted(only, all_checks[i]->name) || *ctx->interrupts > 1)
            continue;
        struct check_result *r = result_check(ctx->result, all_checks[i]->name);
        LOGD("check", "%s", r->name);
        tell(p, began, r->name);
        all_checks[i]->run(&c, r);
        count(&v, all_checks[i], r, only != NULL);
    }
    progress_drop(&p);
    enum err e = conclude(&c, &v, only != NULL, ei);
    if (e == ERR_OK && !*ctx->interrupts)
        e = still_there(&c, ei);
    close_all(&c);
    return e;
}
