#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/api/job.h"
#include "drive/belong_impl.h"
#include "drive/limits.h"
#include <stdio.h>
#include <string.h>

#define ROUNDS      3
#define LOGINS_MOST 4
#define CALL_US     (10 * US_PER_S)
#define REMOVE_US   (20 * US_PER_S)

static const char *const labels[BELONG_COUNT] = {"DATABASE_URL", "REDIS_URL", "the bucket of TMA_LOAD_S3_*"};

static bool cut(const struct proof *p)
{
    return *p->ctx->interrupts > 0;
}

/* Whether the same call is made again, what was limited having been waited for. */
static MAY_YIELD bool wait_out(const struct proof *p, const char *what, const struct api_result *r)
{
    char text[32];
    int64_t wait = r->retry_after_us > 0 ? r->retry_after_us : US_PER_S;
    if (r->outcome != OUT_THROTTLED || cut(p))
        return false;
    LOGI("target", "%s limited by the server: waiting %s", what, str_duration(text, sizeof text, wait));
    coro_sleep_until(p->ctx->loop, mono_add(mono_now(), wait));
    return !cut(p);
}

bool belong_again(struct proof *p, const struct api_result *r)
{
    return wait_out(p, "requests", r);
}

/* "DATABASE_URL, REDIS_URL" of those that are wrong, or else undecided; the first one's reason. */
static void name_parts(const struct proof *p, bool wrong, struct belong *out)
{
    out->parts[0] = out->why[0] = '\0';
    for (int i = 0; i < BELONG_COUNT; i++) {
        size_t n = strlen(out->parts);
        if (!p->open[i] || p->wrong[i] != wrong)
            continue;
        str_format(out->parts + n, sizeof out->parts - n, "%s%s", n ? ", " : "", labels[i]);
        if (!out->why[0])
            str_format(out->why, sizeof out->why, "%s", p->why[i]);
    }
}

/* ---- an account ---- */

static MAY_YIELD bool enter(struct proof *p, const char *email)
{
    const struct target *t = p->ctx->target;
    struct api_result r;
    if (api_space_lacks(p->ctx->space, email, t->password))
        return false;
    do
        (void)!api_enter(p->api, email, t->password, &r);
    while (wait_out(p, "sign-in", &r));
    return r.outcome == OUT_OK;
}

/* The first owner, or else one of those that the database names. */
static MAY_YIELD bool enter_any(struct proof *p)
{
    static const char sql[] = "SELECT email FROM users u WHERE lower(email) LIKE '%" DRIVE_EMAIL_DOMAIN
                              "' AND to_jsonb(u)->>'parent_user_id' IS NULL AND lower(email) <> $1 ORDER BY created_at";
    char first[TARGET_LOGIN_MAX + 1];
    const char *params[] = {first};
    struct pg_result *res = NULL;
    bool in = target_owner(p->ctx->target, 0, first, sizeof first) && enter(p, first);
    if (!in && p->pg && pg_run(p->pg, sql, 1, params, &res, NULL) == ERR_OK)
        for (int i = 0; i < pg_rows(res) && i < LOGINS_MOST && !in && !cut(p); i++)
            in = enter(p, pg_str(res, i, 0));
    pg_result_free(&res);
    return in;
}

/* Whether that database contradicts what the server says to everybody: a fresh one lets people sign up, one with users
 * as its administrator set it. */
static MAY_YIELD bool contradicts(struct proof *p)
{
    static const char sql[] = "SELECT signup_enabled FROM app_settings";
    struct pg_result *res = NULL;
    struct api_result r;
    bool before = false, after = true, known;
    known = api_signup_status(p->api, &before, &r) == ERR_OK && r.outcome == OUT_OK &&
            pg_run(p->pg, sql, 0, NULL, &res, NULL) == ERR_OK && pg_rows(res) == 1 &&
            api_signup_status(p->api, &after, &r) == ERR_OK && r.outcome == OUT_OK && before == after;
    bool differs = known && pg_bool(res, 0, 0) != before;
    pg_result_free(&res);
    return differs;
}

/* Nothing of drivesim's is there, or it cannot be told: by another password it would be somebody else's. */
static MAY_YIELD enum err nobody_in(struct proof *p, struct belong *out, struct errinfo *ei)
{
    if (p->pg && contradicts(p))
        return err_set(
            ei, ERR_ENV,
            "DATABASE_URL: of another server than %s; it holds accounts that cannot be signed in to there, and "
            "says otherwise who may sign up",
            p->ctx->target->url);
    name_parts(p, false, out);
    str_format(out->why, sizeof out->why, "no account can be signed in to there with this TMA_LOAD_PASSWORD");
    return ERR_OK;
}

/* ---- one marker ---- */

static struct api *client(void *arg)
{
    struct proof *p = arg;
    return cut(p) ? NULL : p->api;
}

static MAY_YIELD bool again(void *arg, enum drive_op op, const struct api_job *job, const struct api_result *r)
{
    (void)op, (void)job;
    return belong_again(arg, r);
}

static MAY_YIELD bool pause_for(void *arg, int64_t us)
{
    struct proof *p = arg;
    coro_sleep_until(p->ctx->loop, mono_add(mono_now(), us));
    return !cut(p);
}

static MAY_YIELD void remove_marker(struct proof *p)
{
    const struct job_caller calls = {
        .begin = client, .again = again, .pause = pause_for, .arg = p, .limit_us = REMOVE_US, .away_us = CALL_US};
    char why[200] = "";
    if (!job_remove(&calls, &p->folder.id, 1, why, sizeof why))
        LOGW("target", "the folder %s could not be removed, `sim clean` does it: %s", p->name, why);
}

void belong_new_name(struct proof *p)
{
    char id[17];
    digest_random_id(id, 16);
    for (char *c = id; *c; c++) /* a server may keep a login's name in small letters */
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    str_format(p->name, sizeof p->name, "drivesim-proof-%s", id);
}

static MAY_YIELD bool make_folder(struct proof *p)
{
    struct api_result r;
    belong_new_name(p);
    p->folder = (struct drive_file){0};
    do
        (void)!api_folder_create(p->api, NULL, p->name, p->mem, &p->folder, &r);
    while (belong_again(p, &r));
    for (int i = 0; r.outcome != OUT_OK && i < BELONG_COUNT; i++)
        str_format(p->why[i], sizeof p->why[i], "a folder could not be made: %d %s", r.status, r.reason);
    return r.outcome == OUT_OK && p->folder.id;
}

static bool undecided(const struct proof *p, enum belong_part part)
{
    return p->open[part] && !p->wrong[part];
}

static MAY_YIELD void try_marker(struct proof *p, bool stream)
{
    struct api_stream *events = NULL;
    arena_reset(p->mem);
    belong_listen(p, stream, &events);
    if (make_folder(p)) {
        if (undecided(p, BELONG_DATABASE))
            belong_ask_database(p);
        if (undecided(p, BELONG_STORE))
            belong_ask_store(p);
        if (undecided(p, BELONG_REDIS))
            belong_ask_redis(p);
        remove_marker(p);
    }
    p->name[0] = '\0';
    if (events)
        api_stream_close(&events);
}

/* ---- the whole ---- */

static enum err conclude(const struct proof *p, struct belong *out, struct errinfo *ei)
{
    enum err err = ERR_OK;
    name_parts(p, true, out);
    if (out->parts[0])
        err = err_set(ei, ERR_ENV, "%s: of another server than %s; %s", out->parts, p->ctx->target->url, out->why);
    name_parts(p, false, out);
    return err;
}

static MAY_YIELD enum err prove(struct proof *p, bool deletes, struct belong *out, struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(p->ctx);
    struct api *own = NULL;
    enum err err = ERR_OK;
    conf.timeout_us = CALL_US;
    if (!p->api) {
        err = api_new(&own, &conf, ei);
        p->api = own;
    }
    if (!err && own && !enter_any(p)) {
        err = nobody_in(p, out, ei);
    } else if (!err) {
        belong_ask_quietly(p, deletes);
        if (p->open[BELONG_STORE])
            err = belong_reach_store(p, ei);
        for (int round = 0; round < ROUNDS && !err && !cut(p); round++)
            if (undecided(p, BELONG_DATABASE) || undecided(p, BELONG_STORE) || undecided(p, BELONG_REDIS))
                try_marker(p, round > 0);
        err = err ? err : conclude(p, out, ei);
    }
    api_free(&own);
    return err;
}

enum err belong_prove(const struct cmd_ctx *ctx, struct api *api, bool deletes, struct belong *out, struct errinfo *ei)
{
    struct target *t = ctx->target;
    bool inside = target_shows_inside(t);
    struct proof p = {.ctx = ctx, .api = api};
    const bool given[BELONG_COUNT] = {t->database_url && inside, t->redis_url, target_has_s3(t) && inside};
    unsigned asked = 0;
    *out = (struct belong){.parts = ""};
    for (int i = 0; i < BELONG_COUNT; i++) {
        p.open[i] = given[i] && !(t->proven & 1u << i);
        asked |= p.open[i] ? 1u << i : 0;
    }
    if (!asked)
        return ERR_OK;
    p.mem = arena_new(16 << 10);
    enum err err = belong_reach(&p, inside, ei);
    if (!err && inside)
        err = prove(&p, deletes, out, ei);
    for (int i = 0; i < BELONG_COUNT && inside; i++)
        if (asked & 1u << i && !p.open[i])
            t->proven |= 1u << i;
    belong_part_ways(&p);
    arena_free(&p.mem);
    if (!err && cut(&p))
        err = err_set(ei, ERR_INTERRUPTED, "interrupted");
    return err;
}

enum err belong_prove_saying(const struct cmd_ctx *ctx, struct api *api, struct errinfo *ei)
{
    struct belong b;
    enum err err = belong_prove(ctx, api, false, &b, ei);
    if (!err && b.parts[0])
        fprintf(ctx->out, "not proven to be this server's: %s; %s. What is judged by it may be another server's\n",
                b.parts, b.why);
    return err;
}
