/* Where each part shows the marker. A part is called another server's on a contradiction alone: the server shows the
 * marker now, by another of its calls, and the part does not. */
#include "base/digest.h"
#include "base/mem.h"
#include "drive/api/profile.h"
#include "drive/belong_impl.h"
#include <string.h>

#define REACH_US    (5 * US_PER_S)
#define SEALED_MOST 4096 /* bytes that a server may add to a body when it stores it */

void belong_note(struct proof *p, enum belong_part part, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    str_vformat(p->why[part], sizeof p->why[part], fmt, ap);
    va_end(ap);
}

/* ---- to be had at all ---- */

static enum err not_had(const char *name, const struct errinfo *why, struct errinfo *ei)
{
    enum err err = why->code == ERR_SAFETY || why->code == ERR_USAGE ? why->code : ERR_ENV;
    return err_set(ei, err, "%s was given and is not to be had: %s", name, err_message(why));
}

static bool none(void *arg, const char *key, const struct blob_info *info)
{
    (void)arg, (void)key, (void)info;
    return false;
}

static MAY_YIELD enum err reach_redis(struct proof *p, struct errinfo *ei)
{
    struct errinfo why = {0};
    enum err err = kv_new(&p->kv, p->ctx->loop, p->ctx->target->redis_url, &why);
    if (!err)
        err = kv_ready(p->kv, mono_add(mono_now(), REACH_US), &why);
    return err ? not_had("REDIS_URL", &why, ei) : ERR_OK;
}

enum err belong_reach_store(struct proof *p, struct errinfo *ei)
{
    const struct blob_conf conf = target_blob_conf(p->ctx->target);
    struct errinfo why = {0};
    p->work = work_new(p->ctx->loop, 2);
    enum err err = blob_new(&p->blob, p->ctx->loop, p->ctx->http, p->work, &conf, &why);
    if (!err)
        err = blob_list(p->blob, "drivesim-proof", none, NULL, &why);
    return err ? not_had("the bucket of TMA_LOAD_S3_*", &why, ei) : ERR_OK;
}

static MAY_YIELD enum err reach_database(struct proof *p, struct errinfo *ei)
{
    struct errinfo why = {0};
    enum err err = pg_pool_new(&p->pg, p->ctx->loop, p->ctx->target->database_url, 1, &why);
    if (!err)
        err = pg_run(p->pg, "SELECT 1", 0, NULL, NULL, &why);
    return err ? not_had("DATABASE_URL", &why, ei) : ERR_OK;
}

enum err belong_reach(struct proof *p, bool shows_inside, struct errinfo *ei)
{
    enum err err = ERR_OK;
    if (p->open[BELONG_REDIS])
        err = reach_redis(p, ei);
    if (!err && p->open[BELONG_DATABASE] && shows_inside)
        err = reach_database(p, ei);
    return err;
}

void belong_part_ways(struct proof *p)
{
    pg_pool_free(&p->pg);
    kv_free(&p->kv);
    blob_free(&p->blob);
    if (p->work)
        work_free(&p->work);
    map_free(&p->keys_before);
    mem_free(p->account_id);
}

/* ---- the database ---- */

/* 1: the folder's row is there; 0: it is not; -1: nobody knows. */
static MAY_YIELD int row_there(struct proof *p)
{
    static const char sql[] = "SELECT 1 FROM files WHERE id::text = $1 AND name = $2";
    const char *params[] = {p->folder.id, p->name};
    struct pg_result *res = NULL;
    struct errinfo why = {0};
    enum err err = pg_run(p->pg, sql, 2, params, &res, &why);
    int there = err ? -1 : pg_rows(res) > 0;
    pg_result_free(&res);
    if (err && strcmp(why.sqlstate, "42P01") == 0)
        return 0; /* no such table */
    if (err)
        belong_note(p, BELONG_DATABASE, "%s", err_message(&why));
    return there;
}

static MAY_YIELD bool server_shows_folder(struct proof *p)
{
    struct drive_file seen = {0};
    struct api_result r;
    do
        (void)!api_info(p->api, p->folder.id, p->mem, &seen, NULL, &r);
    while (belong_again(p, &r));
    return r.outcome == OUT_OK && seen.name && strcmp(seen.name, p->name) == 0;
}

void belong_ask_database(struct proof *p)
{
    int there = row_there(p);
    if (there == 1) {
        p->open[BELONG_DATABASE] = false;
    } else if (there == 0 && server_shows_folder(p) && row_there(p) == 0) {
        p->wrong[BELONG_DATABASE] = true;
        belong_note(p, BELONG_DATABASE, "the folder %s, which the server shows, is in no row of it", p->name);
    } else if (there == 0) {
        belong_note(p, BELONG_DATABASE, "the server does not show a folder that it had made");
    }
}

/* ---- the bucket ---- */

static bool take_key(void *arg, const char *key, const struct blob_info *info)
{
    (void)info;
    map_put(arg, sv_of(key), arg);
    return true;
}

static MAY_YIELD bool list_before(struct proof *p)
{
    struct errinfo why = {0};
    char prefix[DRIVE_ID_MAX + 2];
    if (!p->account_id && !(p->account_id = profile_read_id(api_peer(p->api)))) {
        belong_note(p, BELONG_STORE, "neither a database nor the server tells where its objects lie");
        return false;
    }
    str_format(prefix, sizeof prefix, "%s/", p->account_id);
    map_free(&p->keys_before);
    p->keys_before = map_new();
    if (blob_list(p->blob, prefix, take_key, p->keys_before, &why) == ERR_OK)
        return true;
    belong_note(p, BELONG_STORE, "%s", err_message(&why));
    return false;
}

static bool is_new(void *arg, const char *key, const struct blob_info *info)
{
    struct proof *p = arg;
    bool new = !map_get(p->keys_before, sv_of(key)) && info->size >= MARKER_BYTES && info->size <= SEALED_MOST;
    if (new)
        p->open[BELONG_STORE] = false;
    return !new;
}

static MAY_YIELD bool upload(struct proof *p)
{
    struct api_result r;
    digest_random(p->bytes, sizeof p->bytes);
    const struct content c = {.size = sizeof p->bytes, .ext = "bin", .literal = {p->bytes, sizeof p->bytes}};
    const struct api_upload u = {.parent_id = p->folder.id, .name = "proof.bin", .content = &c};
    do
        (void)!api_upload(p->api, &u, p->mem, &p->file, &r);
    while (belong_again(p, &r));
    if (r.outcome != OUT_OK)
        belong_note(p, BELONG_STORE, "a file could not be uploaded: %d %s", r.status, r.reason);
    return r.outcome == OUT_OK;
}

struct compare {
    const char *want;
    size_t at;
    bool differs;
};

static int compare(void *arg, const char *data, size_t n)
{
    struct compare *c = arg;
    c->differs = c->differs || c->at + n > MARKER_BYTES || memcmp(c->want + c->at, data, n) != 0;
    c->at += n;
    return c->differs;
}

static MAY_YIELD bool server_gives_file(struct proof *p)
{
    struct compare c = {.want = p->bytes};
    struct api_result r;
    do
        (void)!api_download(p->api, p->file.id, 0, 0, compare, &c, NULL, 0, &r);
    while (belong_again(p, &r));
    return r.outcome == OUT_OK && !c.differs && c.at == MARKER_BYTES;
}

static MAY_YIELD void object_is_missing(struct proof *p)
{
    if (server_gives_file(p)) {
        p->wrong[BELONG_STORE] = true;
        belong_note(p, BELONG_STORE, "a file that the server gives back is no object of it");
    } else {
        belong_note(p, BELONG_STORE, "the server does not give back a file that it had taken");
    }
}

/* By the key that the file's row names. */
static MAY_YIELD void look_at_object(struct proof *p)
{
    static const char sql[] = "SELECT path FROM files WHERE id::text = $1";
    struct pg_result *res = NULL;
    struct blob_info info;
    struct errinfo why = {0};
    enum err err = pg_run(p->pg, sql, 1, (const char *[]){p->file.id}, &res, &why);
    const char *key = !err && pg_rows(res) ? pg_str_or_null(res, 0, 0) : NULL;
    if (!err && !key)
        belong_note(p, BELONG_STORE, "the server lost a file that it had taken");
    else if (!err)
        err = blob_head(p->blob, key, &info, &why);
    if (!err && key)
        p->open[BELONG_STORE] = false;
    else if (err == ERR_NOTFOUND)
        object_is_missing(p);
    else if (err)
        belong_note(p, BELONG_STORE, "%s", err_message(&why));
    pg_result_free(&res);
}

void belong_ask_store(struct proof *p)
{
    struct errinfo why = {0};
    char prefix[DRIVE_ID_MAX + 2];
    if (p->pg && (p->open[BELONG_DATABASE] || p->wrong[BELONG_DATABASE])) {
        belong_note(p, BELONG_STORE, "it takes the server's own database");
        return;
    }
    if ((!p->pg && !list_before(p)) || !upload(p))
        return;
    if (p->pg) {
        look_at_object(p);
        return;
    }
    str_format(prefix, sizeof prefix, "%s/", p->account_id);
    enum err err = blob_list(p->blob, prefix, is_new, p, &why);
    if (err)
        belong_note(p, BELONG_STORE, "%s", err_message(&why));
    else if (p->open[BELONG_STORE])
        object_is_missing(p);
}
