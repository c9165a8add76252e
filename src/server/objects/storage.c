#include "server/objects/storage.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/work.h"
#include "server/events/events.h"
#include "server/objects/impl.h"
#include "server/objects/seal.h"
#include "store/blob.h"
#include "store/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS_PURPOSE "bucket access key"
#define SECRET_PURPOSE "bucket secret key"
#define LOOK_US        US_PER_S

/* A connection that was replaced: calls may still run on it, so it lives until the server ends. There are as many as
 * the administrator made changes. */
struct retired {
    struct retired *next;
    struct blob *blob;
};

struct storage {
    struct work *work; /* threads of the store's blocking calls */
    struct storage_settings settings;
    bool connected;
    int64_t version;
    struct retired *retired;
    struct group looking; /* the coroutine of storage_look */
    struct mono looked;
};

const struct storage_settings *storage_current(const struct server *s, int64_t *version)
{
    *version = s->storage->version;
    return s->storage->connected ? &s->storage->settings : NULL;
}

static struct storage_settings settings_copy(const struct storage_settings *s)
{
    return (struct storage_settings){mem_strdup(s->endpoint),   mem_strdup(s->region),     mem_strdup(s->bucket),
                                     mem_strdup(s->access_key), mem_strdup(s->secret_key), s->path_style};
}

static void forget(const char **s)
{
    char *p = NULL;
    memcpy(&p, s, sizeof(p)); /* ours, const only towards readers */
    if (p)
        explicit_bzero(p, strlen(p));
    mem_free(p);
    *s = NULL;
}

static void settings_done(struct storage_settings *s)
{
    forget(&s->endpoint);
    forget(&s->region);
    forget(&s->bucket);
    forget(&s->access_key);
    forget(&s->secret_key);
}

static enum err make_blob(struct server *s, const struct storage_settings *want, struct blob **out, struct errinfo *ei)
{
    const struct blob_conf conf = {want->endpoint,   want->bucket, want->access_key,
                                   want->secret_key, want->region, want->path_style};
    return blob_new(out, s->loop, s->httpc, s->storage->work, &conf, ei);
}

enum err storage_test(struct server *s, const struct storage_settings *want, struct errinfo *ei)
{
    struct blob *blob = NULL;
    enum err e = make_blob(s, want, &blob, ei);
    if (e == ERR_OK)
        e = content_store_err(blob_probe(blob, ei), ei);
    if (blob)
        blob_free(&blob);
    return e == ERR_NOTFOUND ? ERR_STORE : e;
}

static void connect_bucket(struct server *s, struct blob *blob, const struct storage_settings *want, int64_t version)
{
    struct storage *st = s->storage;
    if (s->blob) {
        struct retired *r = mem_alloc(sizeof(*r));
        *r = (struct retired){st->retired, s->blob};
        st->retired = r;
    }
    struct storage_settings old = st->settings;
    st->settings = settings_copy(want);
    settings_done(&old);
    st->version = version;
    st->connected = true;
    s->blob = blob;
    LOGI("storage", "bucket %s at %s is connected", want->bucket, want->endpoint);
}

/* ---- what stands in app_settings ---- */

static enum err settings_write(const struct server *s, const struct storage_settings *want, struct buf *json)
{
    const struct seal_key *key = &s->content->key;
    struct buf access = BUF_INIT(64 << 10), secret = BUF_INIT(64 << 10);
    enum err e = seal_text(key, ACCESS_PURPOSE, sv_of(want->access_key), &access);
    if (e == ERR_OK)
        e = seal_text(key, SECRET_PURPOSE, sv_of(want->secret_key), &secret);
    struct jsonw w;
    jsonw_init(&w, json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "provider", "s3");
    jsonw_str(&w, "endpoint", want->endpoint);
    jsonw_str(&w, "region", want->region);
    jsonw_str(&w, "bucket", want->bucket);
    jsonw_bool(&w, "forcePathStyle", want->path_style);
    jsonw_str(&w, "accessKeyIdSealed", buf_cstr(&access));
    jsonw_str(&w, "secretAccessKeySealed", buf_cstr(&secret));
    jsonw_end_object(&w);
    buf_done(&access);
    buf_done(&secret);
    return e == ERR_OK ? w.err : e;
}

static enum err load_key(const struct server *s, const struct json *j, const char *field, const char *purpose,
                         const char **out)
{
    struct buf plain = BUF_INIT(64 << 10);
    enum err e = unseal_text(&s->content->key, purpose, sv_of(json_str(json_get(j, field))), &plain);
    if (e == ERR_OK)
        *out = mem_strdup(buf_cstr(&plain));
    buf_done(&plain);
    return e;
}

static enum err settings_read(const struct server *s, const struct json *j, struct storage_settings *out,
                              struct errinfo *ei)
{
    *out = (struct storage_settings){.endpoint = mem_strdup(json_str(json_get(j, "endpoint"))),
                                     .region = mem_strdup(json_str(json_get(j, "region"))),
                                     .bucket = mem_strdup(json_str(json_get(j, "bucket"))),
                                     .path_style = json_bool(json_get(j, "forcePathStyle"), true)};
    enum err e = load_key(s, j, "accessKeyIdSealed", ACCESS_PURPOSE, &out->access_key);
    if (e == ERR_OK)
        e = load_key(s, j, "secretAccessKeySealed", SECRET_PURPOSE, &out->secret_key);
    if (e != ERR_OK)
        return err_set(ei, ERR_ENV,
                       "the bucket's saved keys do not open: FILE_ENCRYPTION_KEY is not the one that this "
                       "database was used with");
    return ERR_OK;
}

static enum err reconnect(struct server *s, const char *config, int64_t version, struct errinfo *ei)
{
    struct json *j = NULL;
    struct storage_settings saved = {.path_style = true};
    struct blob *blob = NULL;
    enum err e = json_parse(config, strlen(config), &j, ei);
    if (e == ERR_OK)
        e = settings_read(s, j, &saved, ei);
    if (e == ERR_OK)
        e = make_blob(s, &saved, &blob, ei);
    if (e == ERR_OK)
        connect_bucket(s, blob, &saved, version);
    settings_done(&saved);
    json_free(&j);
    return e;
}

/* Whether the bucket holds what is stored already, judged by a few of the objects. */
static MAY_YIELD enum err holds_our_files(struct server *s, struct blob *blob, bool *yes, struct errinfo *ei)
{
    struct pg_result *r = NULL;
    enum err e = pg_run(s->pg, "SELECT path FROM files WHERE path IS NOT NULL LIMIT 5", 0, NULL, &r, ei);
    *yes = true;
    for (int i = 0; e == ERR_OK && i < pg_rows(r) && *yes; i++) {
        struct blob_info info;
        e = content_store_err(blob_head(blob, pg_str(r, i, 0), &info, ei), ei);
        if (e == ERR_NOTFOUND) {
            *yes = false;
            e = ERR_OK;
        }
    }
    pg_result_free(&r);
    return e;
}

/* The row decides who was first: of two changes made from one version, one is stale. */
static MAY_YIELD enum err save_row(struct server *s, const struct storage_settings *want, int64_t version,
                                   int64_t *saved, struct errinfo *ei)
{
    struct buf json = BUF_INIT(64 << 10);
    struct pg_result *r = NULL;
    char text[24];
    *saved = -1;
    enum err e = settings_write(s, want, &json);
    if (e != ERR_OK) {
        buf_done(&json);
        return err_set(ei, e, "the bucket's settings cannot be written down");
    }
    snprintf(text, sizeof(text), "%lld", (long long)version);
    const char *params[] = {buf_cstr(&json), text};
    e = pg_run(s->pg,
               "UPDATE app_settings SET storage_config = $1::jsonb, storage_version = storage_version + 1"
               " WHERE storage_version = $2::integer RETURNING storage_version",
               2, params, &r, ei);
    if (e == ERR_OK && pg_rows(r) == 1)
        *saved = pg_i64(r, 0, 0);
    pg_result_free(&r);
    buf_done(&json);
    return e;
}

enum err storage_save(struct server *s, const struct storage_settings *want, int64_t version, enum storage_outcome *out,
                      struct errinfo *ei)
{
    struct blob *blob = NULL;
    bool same = true;
    int64_t saved = -1;
    *out = STORAGE_STALE;
    enum err e = storage_refresh(s, ei);
    if (e != ERR_OK || version != s->storage->version)
        return e;
    e = make_blob(s, want, &blob, ei);
    if (e != ERR_OK)
        return e;
    e = content_store_err(blob_probe(blob, ei), ei);
    if (e == ERR_NOTFOUND)
        e = ERR_STORE;
    if (e == ERR_OK)
        e = holds_our_files(s, blob, &same, ei);
    if (e == ERR_OK && !same)
        *out = STORAGE_NOT_THE_SAME;
    if (e == ERR_OK && same)
        e = save_row(s, want, version, &saved, ei);
    if (e != ERR_OK || saved < 0) {
        blob_free(&blob);
        return e;
    }
    *out = STORAGE_SAVED;
    connect_bucket(s, blob, want, saved);
    events_control(s, "storage", "saved");
    return ERR_OK;
}

/* ---- what other processes save ---- */

enum err storage_refresh(struct server *s, struct errinfo *ei)
{
    struct pg_result *r = NULL;
    enum err e = pg_run(s->pg, "SELECT storage_version, storage_config::text FROM app_settings", 0, NULL, &r, ei);
    if (e == ERR_OK && pg_rows(r) == 1 && pg_i64(r, 0, 0) > s->storage->version && !pg_is_null(r, 0, 1))
        e = reconnect(s, pg_str(r, 0, 1), pg_i64(r, 0, 0), ei);
    pg_result_free(&r);
    return e;
}

static void look_in_coroutine(void *arg)
{
    struct server *s = arg;
    struct errinfo ei;
    if (storage_refresh(s, &ei) != ERR_OK)
        LOGW("storage", "the bucket's settings cannot be read: %s", err_message(&ei));
}

void storage_look(struct server *s)
{
    struct storage *st = s->storage;
    struct mono now = mono_now();
    if (!st || s->stopping || st->looking.running > 0 || (st->looked.us && mono_diff(now, st->looked) < LOOK_US))
        return;
    st->looked = now;
    group_spawn(s->loop, &st->looking, look_in_coroutine, s);
}

/* ---- the part ---- */

static MAY_YIELD void storage_stop(struct server *s)
{
    struct storage *st = s->storage;
    group_wait(s->loop, &st->looking);
    work_free(&st->work);
    if (s->blob)
        blob_free(&s->blob);
    while (st->retired) {
        struct retired *r = st->retired;
        st->retired = r->next;
        blob_free(&r->blob);
        mem_free(r);
    }
    settings_done(&st->settings);
    MEM_FREE(s->storage);
}

static MAY_YIELD enum err storage_start(struct server *s, struct errinfo *ei)
{
    s->storage = mem_zalloc(sizeof(*s->storage));
    s->storage->work = work_new(s->loop, s->store_threads);
    enum err e = storage_refresh(s, ei);
    if (e != ERR_OK)
        storage_stop(s);
    return e;
}

const struct server_part storage_part = {"storage", storage_start, storage_stop};
