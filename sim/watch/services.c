#include "sim/watch/services.h"
#include "base/mem.h"
#include "store/kv.h"
#include "store/pg.h"

#include <string.h>

#define EVERY_US US_PER_S
#define LIMIT_US (3 * US_PER_S) /* without an answer for so long nothing is known */

struct watch_services {
    struct cmd_ctx *ctx;
    struct watch_values *values;
    struct pg_pool *pg;
    struct kv *kv;
    struct group group;
    struct done wake_pg, wake_kv;
    bool stopping;
};

static MAY_YIELD bool next_round(struct watch_services *s, struct done *wake)
{
    if (!s->stopping)
        (void)done_wait_until(s->ctx->loop, wake, mono_add(mono_now(), EVERY_US));
    return !s->stopping;
}

/* ---- Postgres ---- */

struct pg_counters {
    int64_t commits, hits, reads;
    struct mono at; /* us 0: none yet */
};

static MAY_YIELD void ask_pg(struct watch_services *s, struct pg_counters *before)
{
    static const char sql[] =
        "SELECT numbackends, xact_commit, blks_hit, blks_read, (SELECT count(*) FROM pg_locks WHERE NOT granted)"
        " FROM pg_stat_database WHERE datname = current_database()";
    struct pg_result *res = NULL;
    double *v = s->values->v;
    if (pg_run(s->pg, sql, 0, NULL, &res, NULL) != ERR_OK || pg_rows(res) != 1) {
        pg_result_free(&res);
        v[WATCH_PG_CONNECTIONS] = v[WATCH_PG_COMMITS] = v[WATCH_PG_WAITING] = v[WATCH_PG_HITS] = WATCH_UNKNOWN;
        before->at.us = 0;
        return;
    }
    struct pg_counters now = {pg_i64(res, 0, 1), pg_i64(res, 0, 2), pg_i64(res, 0, 3), mono_now()};
    v[WATCH_PG_CONNECTIONS] = (double)pg_i64(res, 0, 0);
    v[WATCH_PG_WAITING] = (double)pg_i64(res, 0, 4);
    pg_result_free(&res);
    if (before->at.us) {
        double seconds = (double)mono_diff(now.at, before->at) / 1e6;
        double hits = (double)(now.hits - before->hits), all = hits + (double)(now.reads - before->reads);
        v[WATCH_PG_COMMITS] = (double)(now.commits - before->commits) / seconds;
        v[WATCH_PG_HITS] = all > 0 ? 100 * hits / all : v[WATCH_PG_HITS];
    }
    *before = now;
}

static void pg_lane(void *arg)
{
    struct watch_services *s = arg;
    struct pg_counters before = {0};
    do
        ask_pg(s, &before);
    while (next_round(s, &s->wake_pg));
}

/* ---- Redis ---- */

/* "used_memory:1234" within the text of INFO. */
static double info_value(const char *text, const char *name)
{
    struct sv rest = sv_of(text), line, key;
    double v;
    while (sv_split(&rest, '\n', &line))
        if (sv_split(&line, ':', &key) && sv_eq_cstr(key, name) && sv_to_f64(sv_trim(line), &v))
            return v;
    return WATCH_UNKNOWN;
}

static MAY_YIELD void ask_kv(struct watch_services *s)
{
    const struct sv argv[] = {SV("INFO")};
    struct kv_reply r = {0};
    double *v = s->values->v;
    const char *text = kv_command(s->kv, ARRAY_LEN(argv), argv, &r, NULL) == ERR_OK && r.s ? r.s : "";
    double memory = info_value(text, "used_memory");
    v[WATCH_KV_CLIENTS] = info_value(text, "connected_clients");
    v[WATCH_KV_OPS] = info_value(text, "instantaneous_ops_per_sec");
    v[WATCH_KV_MEMORY] = memory < 0 ? WATCH_UNKNOWN : memory / (1 << 20);
    kv_reply_done(&r);
}

static void kv_lane(void *arg)
{
    struct watch_services *s = arg;
    do
        ask_kv(s);
    while (next_round(s, &s->wake_kv));
}

/* ---- life ---- */

struct watch_services *watch_services_new(struct cmd_ctx *ctx, struct watch_values *values)
{
    struct watch_services *s = mem_zalloc(sizeof(*s));
    *s = (struct watch_services){.ctx = ctx, .values = values};
    if (ctx->target->database_url && pg_pool_new(&s->pg, ctx->loop, ctx->target->database_url, 1, NULL) == ERR_OK) {
        pg_pool_set_limit(s->pg, LIMIT_US);
        group_spawn(ctx->loop, &s->group, pg_lane, s);
    }
    if (ctx->target->redis_url && kv_new(&s->kv, ctx->loop, ctx->target->redis_url, NULL) == ERR_OK)
        group_spawn(ctx->loop, &s->group, kv_lane, s);
    return s;
}

void watch_services_free(struct watch_services **sp)
{
    struct watch_services *s = *sp;
    if (!s)
        return;
    s->stopping = true;
    done_set(&s->wake_pg);
    done_set(&s->wake_kv);
    group_wait(s->ctx->loop, &s->group);
    if (s->pg)
        pg_pool_free(&s->pg);
    if (s->kv)
        kv_free(&s->kv);
    MEM_FREE(*sp);
}
