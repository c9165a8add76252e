#include "base/log.h"
#include "base/mem.h"
#include "checks/told.h"
#include "drive/schema.h"

#include <stdio.h>
#include <string.h>

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

void check_summary(struct check_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    set_summary(r, fmt, ap);
    va_end(ap);
}

#define NOT_OFFERED "not offered: a server of this kind shows no "

const struct tree *check_rows(struct check_ctx *c, struct check_result *r)
{
    if (c->tree && !c->tree->listed)
        return c->tree;
    check_not_run(r, "%s", c->tree ? NOT_OFFERED "database" : err_message(&c->pg_why));
    return NULL;
}

const struct tree *check_tree(struct check_ctx *c, struct check_result *r)
{
    if (!c->tree)
        check_not_run(r, "%s", err_message(&c->pg_why));
    return c->tree;
}

const struct journal *check_journal(struct check_ctx *c, struct check_result *r)
{
    if (!c->run_dir)
        check_not_run(r, "no run to judge: give its folder with --run");
    else if (!c->journal)
        check_not_run(r, "%s", err_message(&c->journal_why));
    return c->journal;
}

static bool wanted(const char *only, const char *name)
{
    struct sv rest = sv_of(only), head;
    if (!only)
        return true;
    while (sv_split(&rest, ',', &head))
        if (sv_eq_cstr(sv_trim(head), name))
            return true;
    return false;
}

/* ERR_USAGE for a name in only that is no check. */
static enum err only_valid(const char *only, struct errinfo *ei)
{
    struct sv rest = sv_of(only), head;
    if (!only)
        return ERR_OK;
    while (sv_split(&rest, ',', &head)) {
        head = sv_trim(head);
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(all_checks); i++)
            known = known || sv_eq_cstr(head, all_checks[i]->name);
        if (known)
            continue;
        char names[200] = "";
        for (size_t i = 0; i < ARRAY_LEN(all_checks); i++)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "", all_checks[i]->name);
        return err_set(ei, ERR_USAGE, "no check is called '" SV_FMT "'; there are %s", SV_ARG(head), names);
    }
    return ERR_OK;
}

static void open_database(struct check_ctx *c)
{
    const struct target *t = c->cmd->target;
    if (target_logins_given(t)) { /* a database that is named all the same is another server's */
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
    if (target_logins_given(c->cmd->target) && tree_list(c, &c->tree, &c->pg_why) != ERR_OK)
        c->tree = NULL;
    if (c->pg && c->pg_why.code == ERR_OK && tree_load(c->pg, &c->tree, &c->pg_why) != ERR_OK)
        c->tree = NULL;
}

static void open_store(struct check_ctx *c)
{
    const struct target *t = c->cmd->target;
    if (target_logins_given(t)) {
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

static void close_all(struct check_ctx *c)
{
    told_sign_out(c); /* it borrows from the tree */
    tree_free(&c->tree);
    journal_free(&c->journal);
    if (c->pg)
        pg_pool_free(&c->pg);
    if (c->blob)
        blob_free(&c->blob);
    if (c->work)
        work_free(&c->work);
}

enum err checks_run(struct cmd_ctx *ctx, const char *only, const char *run_dir, const struct check_baseline *since,
                    struct errinfo *ei)
{
    enum err e = only_valid(only, ei);
    if (e != ERR_OK)
        return e;
    struct check_ctx c = {.cmd = ctx, .run_dir = run_dir, .since = since};
    open_database(&c);
    open_store(&c);
    check_drain_wait(&c);
    if (run_dir && journal_read(run_dir, &c.journal, &c.journal_why) != ERR_OK)
        c.journal = NULL;
    read_rows(&c);
    unsigned violated = 0, ran = 0, proofs = 0;
    const char *missed = NULL; /* of those asked for by name, or by the folder of a run */
    for (size_t i = 0; i < ARRAY_LEN(all_checks); i++) {
        if (!wanted(only, all_checks[i]->name) || *ctx->interrupts > 1)
            continue;
        struct check_result *r = result_check(ctx->result, all_checks[i]->name);
        LOGD("check", "%s", r->name);
        all_checks[i]->run(&c, r);
        violated += r->status == CHECK_VIOLATED;
        ran += r->status != CHECK_NOT_RUN;
        proofs += r->status != CHECK_NOT_RUN && all_checks[i] != &check_server && all_checks[i] != &check_drain;
        if (r->status == CHECK_NOT_RUN && (only || (run_dir && all_checks[i] == &check_ledger)))
            missed = r->name;
    }
    close_all(&c);
    if (violated > 0)
        return err_set(ei, ERR_CHECK, "%u of %u checks found something wrong", violated, ran);
    /* After a seed or a run the work itself succeeded: that nothing could be judged is said, but is no failure of it.
     */
    if (since || *ctx->interrupts)
        return ERR_OK;
    if (missed)
        return err_set(ei, ERR_ENV, "the check '%s' could not run", missed);
    if (!only && proofs == 0) /* what the server says of itself proves nothing */
        return err_set(ei, ERR_ENV, "nothing could be checked: set DATABASE_URL and TMA_LOAD_S3_*, or give --run");
    return ERR_OK;
}
