#include "base/log.h"
#include "base/mem.h"
#include "drive/api/profile.h"
#include "net/work.h"
#include "sim/app/turn.h"
#include "sim/clean/clean.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ANY ((void *)ours_mark) /* a value for what is only a set */
static char ours_mark[] = "ours";

/* ---- accounts ---- */

/* A server that is away, or does not work, has not said that there is nothing. */
static void lose(struct clean *c, const char *email, const char *what, const struct api_result *r)
{
    if (!c->lost[0])
        str_format(c->lost, sizeof(c->lost), "the server does not tell %s %s: %s", what, email,
                   r->reason[0] ? r->reason : outcome_key(r->outcome));
}

static bool answered(const struct api_result *r)
{
    return r->outcome == OUT_OK || strcmp(r->code, API_CODE_ABSENT) == 0;
}

static bool searching(const struct clean *c)
{
    return !c->stop && !c->lost[0];
}

static MAY_YIELD void sign_in(struct clean *c, struct clean_account *a)
{
    struct api_conf conf = api_conf_of(c->ctx);
    conf.timeout_us = 60 * US_PER_S;
    conf.budget = &c->budget;
    struct errinfo ei = {0};
    struct api_result r = {0};
    struct turn turn = {.loop = c->ctx->loop, .stop = &c->stop, .command = "clean"};
    rng_init(&turn.rng, (uint64_t)c->ctx->common->seed, 12);
    if (api_new(&a->api, &conf, &ei) != ERR_OK) {
        str_format(a->why, sizeof(a->why), "%s", err_message(&ei));
        return;
    }
    do {
        (void)!api_sign_in(a->api, a->owner.email, c->ctx->target->password, &r);
    } while (turn_again(&turn, a->owner.email, &r));
    if (r.outcome == OUT_OK)
        return;
    if (r.status / 100 != 4 || r.status == 429)
        lose(c, a->owner.email, "whether it has", &r);
    str_format(a->why, sizeof(a->why),
               "it cannot be signed in to with this password (%d %s), so it may be somebody else's", r.status,
               r.reason);
    api_free(&a->api);
}

static MAY_YIELD void find_subs(struct clean *c, struct clean_account *a)
{
    struct arena *mem = arena_new(16 << 10);
    struct api_users users = {0};
    struct api_result r;
    if (api_sub_users(a->api, mem, &users, &r) != ERR_OK || !answered(&r)) {
        users.n = 0;
        lose(c, a->owner.email, "the sub-users of", &r);
    }
    a->subs = mem_zalloc((users.n + 1) * sizeof(*a->subs));
    for (size_t i = 0; i < users.n; i++) {
        if (sv_ends(sv_of(users.items[i].email), SV(DRIVE_EMAIL_DOMAIN)))
            a->subs[a->n_subs++] = (struct clean_user){mem_strdup(users.items[i].id), mem_strdup(users.items[i].email)};
        else
            a->n_strangers++;
    }
    arena_free(&mem);
}

static MAY_YIELD void find_holdings(struct clean_account *a)
{
    struct arena *mem = arena_new(64 << 10);
    struct api_storage storage = {0};
    struct api_totals totals = {0};
    struct drive_listing trash = {0};
    struct api_result r;
    if (api_storage(a->api, &storage, &r) == ERR_OK && answered(&r))
        a->bytes = storage.used;
    if (api_stats(a->api, &totals, &r) == ERR_OK && answered(&r)) {
        a->files = totals.files;
        a->folders = totals.folders;
    }
    if (api_trash_list(a->api, mem, &trash, &r) == ERR_OK && answered(&r))
        a->in_trash = (int64_t)trash.n;
    arena_free(&mem);
}

static void remember(struct clean *c, const struct clean_user *u)
{
    if (u->id)
        map_put(c->ours, sv_of(u->id), ANY);
    map_put(c->ours, sv_of(u->email), ANY);
}

static MAY_YIELD struct clean_account *add_account(struct clean *c, const char *email, const char *id)
{
    c->accounts = mem_realloc_array(c->accounts, c->n_accounts + 1, sizeof(*c->accounts));
    struct clean_account *a = &c->accounts[c->n_accounts++];
    *a = (struct clean_account){.owner = {mem_strdup(id), mem_strdup(email)}};
    clean_doing(c, "looking for %s", email);
    sign_in(c, a);
    if (!a->api)
        return a;
    if (!a->owner.id)
        a->owner.id = profile_read_id(api_peer(a->api));
    find_subs(c, a);
    find_holdings(a);
    remember(c, &a->owner);
    for (size_t i = 0; i < a->n_subs; i++)
        remember(c, &a->subs[i]);
    return a;
}

/* The database knows all accounts of our domain; the administrator, who made the others possible, comes last. */
static MAY_YIELD enum err accounts_of_database(struct clean *c, struct errinfo *ei)
{
    static const char sql[] = "SELECT email, id FROM users u WHERE to_jsonb(u)->>'parent_user_id' IS NULL AND "
                              "lower(email) LIKE '%" DRIVE_EMAIL_DOMAIN "' ORDER BY created_at DESC, id";
    struct pg_result *res = NULL;
    enum err e = pg_run(c->pg, sql, 0, NULL, &res, ei);
    for (int i = 0; e == ERR_OK && i < pg_rows(res) && searching(c); i++)
        add_account(c, pg_str(res, i, 0), pg_str(res, i, 1));
    pg_result_free(&res);
    return e;
}

/* Without one, the names that seed and refusals give. */
static MAY_YIELD void accounts_by_name(struct clean *c)
{
    char email[64];
    bool there = true;
    add_account(c, "refusals" DRIVE_EMAIL_DOMAIN, NULL);
    for (unsigned k = 2; there && searching(c); k++) {
        str_format(email, sizeof(email), "owner-%u" DRIVE_EMAIL_DOMAIN, k);
        there = add_account(c, email, NULL)->api != NULL;
    }
    add_account(c, "owner" DRIVE_EMAIL_DOMAIN, NULL);
    size_t n = 0; /* those that are not there are nobody's */
    for (size_t i = 0; i < c->n_accounts; i++) {
        if (c->accounts[i].api)
            c->accounts[n++] = c->accounts[i];
        else
            mem_free(c->accounts[i].owner.email);
    }
    c->n_accounts = n;
}

/* ---- objects and keys ---- */

static bool take_path(void *arg, const struct pg_result *row)
{
    struct clean *c = arg;
    if (c->n_paths % 1024 == 0)
        c->paths = mem_realloc_array(c->paths, c->n_paths + 1024, sizeof(*c->paths));
    c->paths[c->n_paths++] = mem_strdup(pg_str(row, 0, 0));
    return true;
}

static MAY_YIELD void find_paths(struct clean *c)
{
    static const char sql[] = "SELECT path FROM files WHERE user_id = $1 AND path IS NOT NULL";
    struct pg *pg;
    if (!c->pg || pg_take(c->pg, &pg, &c->pg_why) != ERR_OK)
        return;
    for (size_t i = 0; i < c->n_accounts; i++) {
        const char *params[] = {c->accounts[i].owner.id};
        if (c->accounts[i].api && params[0] && pg_each(pg, sql, 1, params, take_path, c, &c->pg_why) != ERR_OK)
            LOGW("clean", "objects of %s are not known: %s", c->accounts[i].owner.email, err_message(&c->pg_why));
    }
    pg_give(&pg);
}

bool clean_key_is_ours(const struct map *ours, struct sv key)
{
    struct sv rest = key, part;
    while (sv_split(&rest, ':', &part))
        if (map_get(ours, part))
            return true;
    return false;
}

void clean_find_keys(struct clean *c)
{
    char cursor[32] = "0";
    for (size_t i = 0; i < c->n_keys; i++)
        mem_free(c->keys[i]);
    c->n_keys = 0;
    if (!c->kv)
        return;
    do {
        struct sv argv[] = {SV("SCAN"), sv_of(cursor), SV("COUNT"), SV("1000")};
        struct kv_reply r = {0};
        if (kv_command(c->kv, ARRAY_LEN(argv), argv, &r, &c->kv_why) != ERR_OK || r.n_items != 2) {
            kv_reply_done(&r);
            return;
        }
        for (size_t i = 0; i < r.items[1].n_items; i++) {
            const struct kv_reply *key = &r.items[1].items[i];
            if (!key->s || !clean_key_is_ours(c->ours, (struct sv){key->s, key->n}))
                continue;
            c->keys = mem_realloc_array(c->keys, c->n_keys + 1, sizeof(*c->keys));
            c->keys[c->n_keys++] = mem_strndup(key->s, key->n);
        }
        str_format(cursor, sizeof(cursor), "%s", r.items[0].s ? r.items[0].s : "0");
        kv_reply_done(&r);
    } while (strcmp(cursor, "0") != 0 && !c->stop);
}

/* ---- the whole ---- */

/* What was given and is not to be had would keep what is ours, unsaid. */
static MAY_YIELD enum err connect_services(struct clean *c, struct errinfo *ei)
{
    const struct target *t = c->ctx->target;
    const struct blob_conf blob = target_blob_conf(t);
    struct errinfo why = {0};
    enum err e = t->database_url ? pg_pool_new(&c->pg, c->ctx->loop, t->database_url, 1, ei) : ERR_OK;
    if (e == ERR_OK && t->redis_url) {
        e = kv_new(&c->kv, c->ctx->loop, t->redis_url, &why);
        if (e == ERR_OK)
            e = kv_ready(c->kv, mono_add(mono_now(), 5 * US_PER_S), &why);
        if (e != ERR_OK)
            e = err_set(ei, ERR_ENV, "nothing was removed: REDIS_URL was given and is not to be had: %s",
                        err_message(&why));
    }
    if (e != ERR_OK || !target_has_s3(t))
        return e;
    c->work = work_new(c->ctx->loop, 4);
    return blob_new(&c->blob, c->ctx->loop, c->ctx->http, c->work, &blob, ei);
}

enum err clean_find(struct clean *c, struct errinfo *ei)
{
    c->ours = map_new();
    enum err e = connect_services(c, ei);
    if (e != ERR_OK)
        return e;
    if (c->pg)
        e = accounts_of_database(c, ei);
    else
        accounts_by_name(c);
    if (e == ERR_OK && !c->stop && c->lost[0])
        e = err_set(ei, ERR_ENV, "%s; nothing was removed", c->lost);
    if (e == ERR_OK && c->stop)
        e = err_set(ei, ERR_INTERRUPTED, "interrupted: nothing was removed");
    if (e == ERR_OK) {
        clean_doing(c, "looking for objects and Redis keys");
        find_paths(c);
        clean_find_keys(c);
    }
    clean_done(c);
    return e;
}

bool clean_anything(const struct clean *c)
{
    for (size_t i = 0; i < c->n_accounts; i++)
        if (c->accounts[i].api)
            return true;
    return c->n_keys > 0;
}

void clean_print(const struct clean *c)
{
    FILE *out = c->ctx->out;
    char s[32];
    fprintf(out, "to be removed from %s:\n", c->ctx->target->url);
    for (size_t i = 0; i < c->n_accounts; i++) {
        const struct clean_account *x = &c->accounts[i];
        if (!x->api)
            continue;
        fprintf(out, "  %s with %s: %s, %s, %s", x->owner.email, COUNTED(x->n_subs, "sub-user"),
                COUNTED(x->files > 0 ? (uint64_t)x->files : 0, "file"),
                COUNTED(x->folders > 0 ? (uint64_t)x->folders : 0, "folder"),
                str_bytes(s, sizeof(s), (uint64_t)x->bytes));
        fprintf(out, ", %s in the trash\n", COUNTED(x->in_trash > 0 ? (uint64_t)x->in_trash : 0, "item"));
    }
    if (c->pg)
        fprintf(out, "  %s\n", COUNTED(c->n_paths, "object"));
    if (c->kv)
        fprintf(out, "  %s\n", COUNTED(c->n_keys, "Redis key"));
    for (size_t i = 0; i < c->n_accounts; i++) {
        const struct clean_account *x = &c->accounts[i];
        if (!x->api)
            fprintf(out, "to be left: %s: %s\n", x->owner.email, x->why);
        else if (x->n_strangers)
            fprintf(out, "to be left: %s of %s that drivesim did not make\n", COUNTED(x->n_strangers, "sub-user"),
                    x->owner.email);
    }
    if (!c->pg)
        fprintf(
            out,
            "to be left: the accounts themselves, empty: no call of the server removes them, it takes DATABASE_URL\n");
}

void clean_free(struct clean *c)
{
    for (size_t i = 0; i < c->n_accounts; i++) {
        struct clean_account *a = &c->accounts[i];
        for (size_t k = 0; k < a->n_subs; k++) {
            mem_free(a->subs[k].id);
            mem_free(a->subs[k].email);
        }
        mem_free(a->subs);
        mem_free(a->owner.id);
        mem_free(a->owner.email);
        api_free(&a->api);
    }
    api_free(&c->admin);
    mem_free(c->accounts);
    for (size_t i = 0; i < c->n_paths; i++)
        mem_free(c->paths[i]);
    for (size_t i = 0; i < c->n_keys; i++)
        mem_free(c->keys[i]);
    for (size_t i = 0; i < c->n_left; i++)
        mem_free(c->left[i]);
    mem_free(c->paths);
    mem_free(c->keys);
    mem_free(c->left);
    if (c->blob)
        blob_free(&c->blob);
    if (c->work)
        work_free(&c->work);
    if (c->kv)
        kv_free(&c->kv);
    if (c->pg)
        pg_pool_free(&c->pg);
    map_free(&c->ours);
}
