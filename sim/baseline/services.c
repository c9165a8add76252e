/* Postgres, Redis and the object store by the same clients as everywhere else, with nothing between. */
#include "base/digest.h"
#include "sim/baseline/baseline.h"
#include "store/blob.h"
#include "store/kv.h"
#include "store/pg.h"

#include <stdio.h>
#include <string.h>

/* ---- Postgres: a table of its own, in a schema of its own, gone afterwards ---- */

static MAY_YIELD bool commit_row(struct beat *k, unsigned lane, struct errinfo *ei)
{
    (void)lane;
    return pg_run(k->arg, "INSERT INTO drivesim_baseline.t (at) VALUES (now())", 0, NULL, NULL, ei) == ERR_OK;
}

static MAY_YIELD enum err in_one(struct pg_pool *pool, const char *sql, struct errinfo *ei)
{
    struct pg *c = NULL;
    enum err e = pg_take(pool, &c, ei);
    if (e != ERR_OK)
        return e;
    e = pg_script(c, sql, ei);
    pg_give(&c);
    return e;
}

/* So that no time of connecting is in the figures. */
static MAY_YIELD enum err connect_all(struct pg_pool *pool, struct errinfo *ei)
{
    struct pg *c[BASE_LANES];
    size_t n = 0;
    enum err e = ERR_OK;
    while (n < BASE_LANES && e == ERR_OK) {
        e = pg_take(pool, &c[n], ei);
        n += e == ERR_OK;
    }
    while (n > 0)
        pg_give(&c[--n]);
    return e;
}

enum err baseline_postgres(struct baseline *b, struct errinfo *ei)
{
    struct pg_pool *pool = NULL;
    if (!b->ctx->target->database_url)
        return err_set(ei, ERR_USAGE, "DATABASE_URL is not set");
    enum err e = pg_pool_new(&pool, b->ctx->loop, b->ctx->target->database_url, BASE_LANES, ei);
    if (e == ERR_OK)
        e = in_one(pool,
                   "DROP SCHEMA IF EXISTS drivesim_baseline CASCADE; CREATE SCHEMA drivesim_baseline;"
                   "CREATE TABLE drivesim_baseline.t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
                   " at timestamptz NOT NULL)",
                   ei);
    static const struct beat_row rows[] = {{BASE_PG_ONE, 1, commit_row, 1}, {BASE_PG_MANY, BASE_LANES, commit_row, 1}};
    if (e == ERR_OK)
        e = connect_all(pool, ei);
    if (e == ERR_OK)
        e = beat_rows(b, rows, ARRAY_LEN(rows), pool, ei);
    if (pool && in_one(pool, "DROP SCHEMA IF EXISTS drivesim_baseline CASCADE", NULL) != ERR_OK && e == ERR_OK)
        e = err_set(ei, ERR_ENV, "the schema drivesim_baseline could not be dropped: drop it by hand");
    if (pool)
        pg_pool_free(&pool);
    return e;
}

/* ---- Redis ---- */

#define SUBSCRIBERS 20
#define BURST       200

struct fan {
    struct kv *sender, *subs[SUBSCRIBERS];
    unsigned up;
    uint64_t arrived, due;
    struct done done;
    struct sv channel;
};

static void on_message(void *arg, struct sv channel, struct sv payload)
{
    struct fan *f = arg;
    (void)channel, (void)payload;
    if (++f->arrived == f->due)
        done_set(&f->done);
}

static void on_up(void *arg, bool up)
{
    struct fan *f = arg;
    f->up += up ? 1 : 0;
    if (f->up == SUBSCRIBERS)
        done_set(&f->done);
}

static MAY_YIELD bool ping(struct beat *k, unsigned lane, struct errinfo *ei)
{
    const struct sv argv[] = {SV("PING")};
    (void)lane;
    return kv_command(((struct fan *)k->arg)->sender, 1, argv, NULL, ei) == ERR_OK;
}

/* A burst to all, and all of it arrived. */
static MAY_YIELD bool publish(struct beat *k, unsigned lane, struct errinfo *ei)
{
    struct fan *f = k->arg;
    const struct sv argv[] = {SV("PUBLISH"), f->channel, SV("a message such as a server tells its apps")};
    (void)lane;
    f->due = f->arrived + (uint64_t)BURST * SUBSCRIBERS;
    for (unsigned i = 0; i < BURST; i++)
        if (!kv_send(f->sender, ARRAY_LEN(argv), argv)) {
            err_set(ei, ERR_KV, "Redis went away");
            return false;
        }
    if (done_wait_until(k->b->ctx->loop, &f->done, mono_add(mono_now(), 10 * US_PER_S)))
        return true;
    err_set(ei, ERR_KV, "%llu of %u messages did not arrive within 10 s", (unsigned long long)(f->due - f->arrived),
            BURST * SUBSCRIBERS);
    return false;
}

static MAY_YIELD enum err subscribe_all(struct baseline *b, struct fan *f, struct errinfo *ei)
{
    enum err e = ERR_OK;
    for (unsigned i = 0; i < SUBSCRIBERS && e == ERR_OK; i++) {
        e = kv_new(&f->subs[i], b->ctx->loop, b->ctx->target->redis_url, ei);
        if (e == ERR_OK)
            e = kv_subscribe(f->subs[i], f->channel.p, on_message, on_up, f, ei);
    }
    while (e == ERR_OK && f->up < SUBSCRIBERS)
        if (!done_wait_until(b->ctx->loop, &f->done, mono_add(mono_now(), 10 * US_PER_S)) && f->up < SUBSCRIBERS)
            e = err_set(ei, ERR_KV, "only %u of %u subscriptions succeeded", f->up, SUBSCRIBERS);
    return e;
}

enum err baseline_redis(struct baseline *b, struct errinfo *ei)
{
    char channel[60], id[17];
    if (!b->ctx->target->redis_url)
        return err_set(ei, ERR_USAGE, "REDIS_URL is not set");
    digest_random_id(id, 16);
    snprintf(channel, sizeof(channel), "drivesim:baseline:%s", id);
    struct fan f = {.channel = sv_of(channel)};
    enum err e = kv_new(&f.sender, b->ctx->loop, b->ctx->target->redis_url, ei);
    if (e == ERR_OK)
        e = kv_ready(f.sender, mono_add(mono_now(), 5 * US_PER_S), ei);
    if (e == ERR_OK)
        e = subscribe_all(b, &f, ei);
    static const struct beat_row rows[] = {{BASE_KV_TRIP, 1, ping, 1},
                                           {BASE_KV_FAN, 1, publish, (double)BURST * SUBSCRIBERS}};
    if (e == ERR_OK)
        e = beat_rows(b, rows, ARRAY_LEN(rows), &f, ei);
    for (unsigned i = 0; i < SUBSCRIBERS; i++)
        if (f.subs[i])
            kv_free(&f.subs[i]);
    if (f.sender)
        kv_free(&f.sender);
    return e;
}

/* ---- the object store ---- */

struct store {
    struct blob *blob;
    char prefix[60];
    char *data; /* BASE_LARGE bytes that do not compress */
    uint64_t made;
};

static char *small_key(const struct store *s, uint64_t n, char dst[100])
{
    snprintf(dst, 100, "%s/s%llu", s->prefix, (unsigned long long)n);
    return dst;
}

static MAY_YIELD bool put_small(struct beat *k, unsigned lane, struct errinfo *ei)
{
    struct store *s = k->arg;
    char key[100];
    uint64_t n = s->made++;
    (void)lane;
    return blob_put(s->blob, small_key(s, n, key), s->data + n % 4096 * BASE_SMALL, BASE_SMALL, ei) == ERR_OK;
}

static MAY_YIELD bool get_back(struct store *s, const char *key, size_t n, struct errinfo *ei)
{
    struct buf got = BUF_INIT(n);
    enum err e = blob_get(s->blob, key, 0, 0, &got, ei);
    if (e == ERR_OK && got.len != n)
        e = err_set(ei, ERR_STORE, "an object of %zu bytes came back with %zu", n, got.len);
    buf_done(&got);
    return e == ERR_OK;
}

static MAY_YIELD bool get_small(struct beat *k, unsigned lane, struct errinfo *ei)
{
    struct store *s = k->arg;
    char key[100];
    return get_back(s, small_key(s, (k->done + lane) % s->made, key), BASE_SMALL, ei);
}

static char *large_key(const struct store *s, char dst[100])
{
    snprintf(dst, 100, "%s/large", s->prefix);
    return dst;
}

static MAY_YIELD bool put_large(struct beat *k, unsigned lane, struct errinfo *ei)
{
    struct store *s = k->arg;
    char key[100];
    (void)lane;
    return blob_put(s->blob, large_key(s, key), s->data, BASE_LARGE, ei) == ERR_OK;
}

static MAY_YIELD bool get_large(struct beat *k, unsigned lane, struct errinfo *ei)
{
    struct store *s = k->arg;
    char key[100];
    (void)lane;
    return get_back(s, large_key(s, key), BASE_LARGE, ei);
}

static const struct beat_row store_rows[] = {
    {BASE_STORE_PUT, BASE_LANES, put_small, 1},
    {BASE_STORE_GET, BASE_LANES, get_small, 1},
    {BASE_STORE_UP, 1, put_large, BASE_LARGE / 1e6},
    {BASE_STORE_DOWN, 1, get_large, BASE_LARGE / 1e6},
};

struct sweep {
    struct blob *blob;
    enum err err;
};

static MAY_YIELD bool sweep_one(void *arg, const char *key, const struct blob_info *info)
{
    struct sweep *s = arg;
    (void)info;
    s->err = blob_delete(s->blob, key, NULL);
    return s->err == ERR_OK;
}

enum err baseline_store(struct baseline *b, struct errinfo *ei)
{
    const struct blob_conf conf = target_blob_conf(b->ctx->target);
    char id[17];
    if (!target_has_s3(b->ctx->target))
        return err_set(ei, ERR_USAGE, "TMA_LOAD_S3_* is not set");
    struct work *work = work_new(b->ctx->loop, BASE_LANES);
    struct store s = {.data = mem_alloc(BASE_LARGE)};
    digest_random(s.data, BASE_LARGE);
    digest_random_id(id, 16);
    snprintf(s.prefix, sizeof(s.prefix), "drivesim-baseline/%s", id);
    enum err e = blob_new(&s.blob, b->ctx->loop, b->ctx->http, work, &conf, ei);
    if (e == ERR_OK)
        e = beat_rows(b, store_rows, ARRAY_LEN(store_rows), &s, ei);
    struct sweep left = {.blob = s.blob};
    if (s.blob && (blob_list(s.blob, s.prefix, sweep_one, &left, NULL) != ERR_OK || left.err != ERR_OK) && e == ERR_OK)
        e = err_set(ei, ERR_STORE, "objects below %s could not be deleted: delete them by hand", s.prefix);
    if (s.blob)
        blob_free(&s.blob);
    work_free(&work);
    mem_free(s.data);
    return e;
}
