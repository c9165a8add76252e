/* The order: trees by the server's own calls, sub-users, objects that are left under our accounts' names, accounts with
 * what names them, Redis keys. What fails is noted and the rest goes on. */
#include "base/mem.h"
#include "sim/app/remover.h"
#include "sim/clean/clean.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AT_ONCE     500
#define JOB_MOST_US (3600 * US_PER_S) /* of one portion: a job that hangs in the server holds nobody up for ever */

void clean_left(struct clean *c, const char *fmt, ...)
{
    struct buf text = BUF_INIT(4096);
    va_list ap;
    va_start(ap, fmt);
    enum err e = buf_vappendf(&text, fmt, ap);
    va_end(ap);
    c->left = mem_realloc_array(c->left, c->n_left + 1, sizeof(*c->left));
    c->left[c->n_left++] = e == ERR_OK ? buf_take(&text, NULL) : mem_strdup("something whose name is too long");
    buf_done(&text);
}

/* ---- trees ---- */

/* What stands at the top level, or in the trash, goes in portions until nothing is left or one portion fails. */
static MAY_YIELD bool empty(struct clean *c, struct clean_account *a, const struct job_caller *m, bool trash, char *why,
                            size_t n)
{
    struct arena *mem = arena_new(256 << 10);
    const char *ids[AT_ONCE];
    size_t k, last = SIZE_MAX;
    bool ok = true;
    do {
        struct drive_listing l = {0};
        struct api_result r = {0};
        arena_reset(mem);
        enum err e = trash ? api_trash_list(a->api, mem, &l, &r) : api_list(a->api, NULL, mem, &l, &r);
        if (trash && e == ERR_OK && strcmp(r.code, API_CODE_ABSENT) == 0)
            break; /* what was trashed is gone */
        ok = e == ERR_OK && r.outcome == OUT_OK;
        if (!ok)
            str_format(why, n, "%d %s", r.status, r.reason);
        else if (l.n >= last) {
            str_format(why, n, "it does not go away: %s", COUNTED(l.n, "item"));
            ok = false;
        }
        last = l.n;
        for (k = 0; k < l.n && k < AT_ONCE; k++)
            ids[k] = l.items[k].id;
        if (ok && k > 0)
            ok = trash ? job_purge(m, ids, k, why, n) : job_trash(m, ids, k, why, n);
    } while (ok && k > 0 && !c->stop);
    arena_free(&mem);
    return ok && !c->stop;
}

static MAY_YIELD bool remove_tree(struct clean *c, struct clean_account *a)
{
    struct remover m = {
        .ctx = c->ctx, .api = a->api, .stop = &c->stop, .limit_us = JOB_MOST_US, .away_us = JOB_AWAY_US};
    const struct job_caller calls = remover_caller(&m);
    struct mono began = mono_now();
    char why[200] = "interrupted", took[32];
    clean_doing(c, "removing the tree of %s", a->owner.email);
    bool ok = empty(c, a, &calls, false, why, sizeof(why)) && empty(c, a, &calls, true, why, sizeof(why));
    clean_done(c);
    if (!ok)
        clean_left(c, "the tree of %s: %s", a->owner.email, why);
    else if (!c->ctx->common->quiet)
        fprintf(c->ctx->out, "%s: %s gone in %s\n", a->owner.email,
                COUNTED(a->files > 0 ? (uint64_t)a->files : 0, "file"),
                str_duration(took, sizeof(took), mono_diff(mono_now(), began)));
    return ok;
}

static MAY_YIELD void remove_subs(struct clean *c, struct clean_account *a)
{
    for (size_t i = 0; i < a->n_subs && !c->stop; i++) {
        struct http_resp resp;
        struct errinfo ei = {0};
        char path[DRIVE_ID_MAX + 40];
        str_format(path, sizeof(path), "/api/user/sub-users/%s", a->subs[i].id);
        const struct http_req req = {.method = "DELETE", .path = path};
        enum err e = httpc_perform(api_peer(a->api), &req, &resp, &ei);
        if (e != ERR_OK || (resp.status / 100 != 2 && resp.status != 404))
            clean_left(c, "the sub-user %s: %d %s", a->subs[i].email, resp.status, err_message(&ei));
        http_resp_done(&resp);
    }
}

/* ---- objects ---- */

struct leftovers {
    char **keys;
    size_t n;
};

static bool take_key(void *arg, const char *key, const struct blob_info *info)
{
    struct leftovers *l = arg;
    (void)info;
    if (l->n % 1024 == 0)
        l->keys = mem_realloc_array(l->keys, l->n + 1024, sizeof(*l->keys));
    l->keys[l->n++] = mem_strdup(key);
    return true;
}

/* Below the account's id, and what its rows named elsewhere. */
static MAY_YIELD void remove_objects(struct clean *c, struct clean_account *a)
{
    struct leftovers l = {0};
    struct errinfo ei = {0};
    char prefix[DRIVE_ID_MAX + 2];
    size_t failed = 0;
    str_format(prefix, sizeof(prefix), "%s/", a->owner.id);
    enum err e = blob_list(c->blob, prefix, take_key, &l, &ei);
    if (e == ERR_OK && l.n > 0)
        e = blob_delete_many(c->blob, (const char *const *)l.keys, l.n, &failed, &ei);
    if (e != ERR_OK)
        clean_left(c, "%s of %s: %s", COUNTED(failed, "object"), a->owner.email, err_message(&ei));
    c->objects += l.n - failed;
    for (size_t i = 0; i < l.n; i++)
        mem_free(l.keys[i]);
    mem_free(l.keys);
}

static bool stands_below_ours(const struct clean *c, const char *path)
{
    struct sv rest = sv_of(path), head;
    return sv_split(&rest, '/', &head) && rest.n > 0 && map_get(c->ours, head);
}

static MAY_YIELD void remove_paths_elsewhere(struct clean *c)
{
    const char **keys = mem_zalloc((c->n_paths + 1) * sizeof(*keys));
    struct errinfo ei = {0};
    size_t n = 0, failed = 0;
    for (size_t i = 0; i < c->n_paths; i++)
        if (!stands_below_ours(c, c->paths[i]))
            keys[n++] = c->paths[i];
    if (n > 0 && blob_delete_many(c->blob, keys, n, &failed, &ei) != ERR_OK)
        clean_left(c, "%s: %s", COUNTED(failed, "object"), err_message(&ei));
    mem_free(keys);
}

/* ---- rows ---- */

/* What names a user elsewhere, where a server has the table: without these nothing of the account is left. */
#define NAMING(table, column)                                                                                          \
    {                                                                                                                  \
#table, #column, "DELETE FROM " #table " WHERE " #column "::text = ANY ($1::text[])"                           \
    }
static const struct {
    const char *table, *column, *sql;
} namings[] = {
    NAMING(client_heartbeats, user_id), NAMING(storage_reservations, user_id), NAMING(sessions, user_id),
    NAMING(locks, account_id),          NAMING(changes, account_id),           NAMING(jobs, account_id),
    NAMING(audit_log, user_id),         NAMING(audit_log, account_owner_id),
};

static MAY_YIELD bool has_column(struct pg *pg, const char *table, const char *column)
{
    static const char sql[] = "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() AND"
                              " table_name = $1 AND column_name = $2";
    const char *params[] = {table, column};
    struct pg_result *res = NULL;
    bool has = pg_query(pg, sql, 2, params, &res, NULL) == ERR_OK && pg_rows(res) > 0;
    pg_result_free(&res);
    return has;
}

static enum err add_ids(const struct clean_account *a, struct buf *out)
{
    const char **ids = mem_zalloc((a->n_subs + 1) * sizeof(*ids));
    ids[0] = a->owner.id;
    for (size_t i = 0; i < a->n_subs; i++)
        ids[i + 1] = a->subs[i].id;
    enum err e = pg_array(out, ids, a->n_subs + 1);
    mem_free(ids);
    return e;
}

static MAY_YIELD enum err delete_rows(struct pg *pg, const struct clean_account *a, struct errinfo *ei)
{
    static const char users[] =
        "DELETE FROM users WHERE id::text = ANY ($1::text[]) AND lower(email) LIKE '%" DRIVE_EMAIL_DOMAIN
        "' AND NOT EXISTS (SELECT 1 FROM files WHERE user_id = users.id)";
    /* A server without its administrator is a fresh one: the next to sign up is the first again. */
    static const char settings[] = "UPDATE app_settings SET first_user_id = NULL WHERE first_user_id::text = $1";
    static const char signup[] = "UPDATE app_settings SET signup_enabled = true WHERE first_user_id IS NULL";
    struct buf ids = BUF_INIT(4 << 20);
    enum err e = add_ids(a, &ids);
    const char *all[] = {buf_cstr(&ids)}, *owner[] = {a->owner.id};
    for (size_t i = 0; i < ARRAY_LEN(namings) && e == ERR_OK; i++)
        if (has_column(pg, namings[i].table, namings[i].column))
            e = pg_query(pg, namings[i].sql, 1, all, NULL, ei);
    if (e == ERR_OK && has_column(pg, "app_settings", "first_user_id"))
        e = pg_query(pg, settings, 1, owner, NULL, ei);
    if (e == ERR_OK && has_column(pg, "app_settings", "signup_enabled"))
        e = pg_query(pg, signup, 0, NULL, NULL, ei);
    if (e == ERR_OK)
        e = pg_query(pg, users, 1, all, NULL, ei);
    buf_done(&ids);
    return e;
}

/* All of an account or nothing of it. */
static MAY_YIELD void remove_rows(struct clean *c, struct clean_account *a)
{
    struct pg *pg;
    struct errinfo ei = {0};
    enum err e = pg_take(c->pg, &pg, &ei);
    if (e == ERR_OK) {
        e = pg_script(pg, "BEGIN", &ei);
        if (e == ERR_OK)
            e = delete_rows(pg, a, &ei);
        if (e == ERR_OK)
            e = pg_script(pg, "COMMIT", &ei);
        pg_give(&pg);
    }
    if (e != ERR_OK)
        clean_left(c, "the account %s: %s", a->owner.email, err_message(&ei));
    else /* a server may keep the setting that was changed in a cache by its column's name */
        map_put(c->ours, SV("signup_enabled"), c);
}

/* ---- Redis ---- */

static MAY_YIELD void remove_keys(struct clean *c)
{
    clean_find_keys(c); /* our own sign-ins and removals have been counted since */
    for (size_t i = 0; i < c->n_keys; i++) {
        const struct sv argv[] = {SV("DEL"), sv_of(c->keys[i])};
        struct errinfo ei = {0};
        if (kv_command(c->kv, 2, argv, NULL, &ei) != ERR_OK)
            clean_left(c, "the Redis key %s: %s", c->keys[i], err_message(&ei));
    }
}

/* ---- the whole ---- */

static MAY_YIELD void remove_account(struct clean *c, struct clean_account *a)
{
    if (!remove_tree(c, a))
        return;
    clean_doing(c, "removing the sub-users and objects of %s", a->owner.email);
    remove_subs(c, a);
    if (c->blob && a->owner.id)
        remove_objects(c, a);
    clean_done(c);
    if (a->n_strangers)
        clean_left(c, "the account %s, which has %s that drivesim did not make", a->owner.email,
                   COUNTED(a->n_strangers, "sub-user"));
    else if (c->pg && a->owner.id)
        remove_rows(c, a);
    else
        clean_left(c, "the account %s, empty now: DATABASE_URL is needed for it", a->owner.email);
}

static MAY_YIELD void look_again(struct clean *c)
{
    static const char sql[] = "SELECT count(*) FROM files WHERE user_id::text = ANY ($1::text[])";
    for (size_t i = 0; i < c->n_accounts && c->pg; i++) {
        struct buf ids = BUF_INIT(4 << 20);
        struct pg_result *res = NULL;
        if (c->accounts[i].api && c->accounts[i].owner.id && add_ids(&c->accounts[i], &ids) == ERR_OK &&
            pg_run(c->pg, sql, 1, (const char *[]){buf_cstr(&ids)}, &res, NULL) == ERR_OK && pg_i64(res, 0, 0) > 0)
            clean_left(c, "%s of %s", COUNTED((uint64_t)pg_i64(res, 0, 0), "row"), c->accounts[i].owner.email);
        pg_result_free(&res);
        buf_done(&ids);
    }
}

void clean_remove(struct clean *c)
{
    for (size_t i = 0; i < c->n_accounts && !c->stop; i++)
        if (c->accounts[i].api)
            remove_account(c, &c->accounts[i]);
    if (c->blob && !c->stop)
        remove_paths_elsewhere(c);
    if (c->kv && !c->stop)
        remove_keys(c);
    look_again(c);
    if (c->stop)
        clean_left(c, "what comes after the interruption");
}
