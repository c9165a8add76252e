#include "server/meta/meta.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/meta/impl.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct meta_who meta_who(const struct login *l)
{
    return (struct meta_who){l->account_id, l->user_id, l->session_id, l->name};
}

/* ---- slots: one writer an account ---- */

struct meta_slot {
    struct meta_slot *next;
    char account_id[DRIVE_ID_MAX + 1];
    struct sem sem;
    unsigned users;
    struct mono since; /* the writer whose turn it is has it since then */
};

static struct meta_slot **slot_place(struct meta *m, const char *account_id)
{
    struct meta_slot **at = &m->slots[hash_str(account_id) % ARRAY_LEN(m->slots)];
    while (*at && strcmp((*at)->account_id, account_id) != 0)
        at = &(*at)->next;
    return at;
}

struct meta_slot *meta_slot_take(struct server *s, const char *account_id)
{
    struct meta_slot **at = slot_place(s->meta, account_id), *slot = *at;
    if (!slot) {
        slot = *at = mem_zalloc(sizeof *slot);
        snprintf(slot->account_id, sizeof slot->account_id, "%s", account_id);
        sem_init_coro(&slot->sem, 1);
    }
    slot->users++;
    sem_take(s->loop, &slot->sem, 1);
    slot->since = mono_now();
    return slot;
}

void meta_slot_give(struct server *s, struct meta_slot *slot)
{
    s->metrics.turns_us += (uint64_t)mono_diff(mono_now(), slot->since);
    sem_give(&slot->sem, 1);
    if (--slot->users > 0)
        return;
    struct meta_slot **at = slot_place(s->meta, slot->account_id);
    *at = slot->next;
    mem_free(slot);
}

/* ---- rows of drive_change ---- */

enum {
    COL_REFUSED,
    COL_DETAIL,
    COL_SEQ,
    COL_EVENT,
    COL_DATA,
    COL_KEYS,
    COL_FILE,
    COL_COUNT = COL_FILE + META_FILE_COLUMN_COUNT
};

/* "{a/b,a/c}": object keys hold nothing that an array's text form quotes. */
static void keep_keys(struct arena *mem, const char *text, struct meta_change *c)
{
    size_t n = 1, len = strlen(text);
    if (len <= 2)
        return;
    for (const char *p = text; *p; p++)
        n += *p == ',';
    c->keys = arena_alloc(mem, n * sizeof *c->keys);
    struct sv rest = {text + 1, len - 2}, key;
    while (sv_split(&rest, ',', &key))
        c->keys[c->n_keys++] = arena_strndup(mem, key.p, key.n);
}

static void keep_rows(struct arena *mem, const struct pg_result *res, struct meta_result *out)
{
    out->n = (size_t)pg_rows(res);
    out->rows = arena_alloc(mem, (out->n + 1) * sizeof *out->rows);
    for (int i = 0; i < pg_rows(res); i++) {
        struct meta_change *c = &out->rows[i];
        c->refused = arena_strdup(mem, pg_str_or_null(res, i, COL_REFUSED));
        c->detail = arena_strdup(mem, pg_str_or_null(res, i, COL_DETAIL));
        c->seq = pg_i64(res, i, COL_SEQ);
        c->file = meta_file_keep(mem, meta_file_of(res, i, COL_FILE));
        keep_keys(mem, pg_str(res, i, COL_KEYS), c);
    }
}

static void publish_rows(struct server *s, const char *account_id, const struct pg_result *res)
{
    struct buf data = BUF_INIT(1 << 20);
    for (int i = 0; i < pg_rows(res); i++) {
        if (pg_is_null(res, i, COL_SEQ))
            continue;
        buf_reset(&data);
        if (buf_append_str(&data, pg_str(res, i, COL_DATA)) == ERR_OK)
            events_publish(s, account_id, pg_i64(res, i, COL_SEQ), pg_str(res, i, COL_EVENT), &data);
        s->metrics.commits++;
    }
    buf_done(&data);
}

/* FAULT_LOST_UPLOAD: the answer is made, the transaction is not kept. */
static MAY_YIELD enum err write_undone(struct server *s, const char *sql, int n, const char *const *params,
                                       struct pg_result **res, struct errinfo *ei)
{
    struct pg *pg = NULL;
    enum err err = pg_take(s->pg, &pg, ei);
    if (!err)
        err = pg_script(pg, "BEGIN", ei);
    if (!err)
        err = pg_query(pg, sql, n, params, res, ei);
    if (pg)
        pg_give(&pg); /* rolls back */
    return err;
}

static MAY_YIELD enum err write_change(struct server *s,
                                       enum err (*run)(struct pg_pool *p, const char *sql, int n,
                                                       const char *const *params, struct pg_result **out,
                                                       struct errinfo *ei),
                                       const char *account_id, const char *sql, int n, const char *const *params,
                                       struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct pg_result *res = NULL;
    struct meta_slot *slot = meta_slot_take(s, account_id);
    bool undone = s->faults.set && strstr(sql, "drive_upload_commit") && fault_hit(s, FAULT_LOST_UPLOAD);
    enum err err = undone ? write_undone(s, sql, n, params, &res, ei) : run(s->pg, sql, n, params, &res, ei);
    if (!err && !undone)
        publish_rows(s, account_id, res);
    meta_slot_give(s, slot);
    if (err == ERR_DB_GONE)
        meta_unsure(s, account_id);
    if (err)
        return err;
    keep_rows(mem, res, out);
    pg_result_free(&res);
    return ERR_OK;
}

enum err meta_write(struct server *s, const char *account_id, const char *sql, int n, const char *const *params,
                    struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    return write_change(s, pg_run, account_id, sql, n, params, mem, out, ei);
}

enum err meta_write_long(struct server *s, const char *account_id, const char *sql, int n, const char *const *params,
                         struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    return write_change(s, pg_run_long, account_id, sql, n, params, mem, out, ei);
}

enum err meta_read(struct server *s, const char *sql, int n, const char *const *params, struct arena *mem,
                   struct meta_result *out, struct errinfo *ei)
{
    struct pg_result *res = NULL;
    enum err err = pg_run(s->pg, sql, n, params, &res, ei);
    if (err)
        return err;
    keep_rows(mem, res, out);
    pg_result_free(&res);
    return ERR_OK;
}

const struct meta_change *meta_refusal(const struct meta_result *res)
{
    for (size_t i = 0; i < res->n; i++)
        if (res->rows[i].refused)
            return &res->rows[i];
    return NULL;
}

/* ---- the part ---- */

static MAY_YIELD enum err learn_epoch(struct server *s, struct errinfo *ei)
{
    struct pg_result *res = NULL;
    enum err err = pg_run(s->pg, "SELECT epoch FROM app_settings", 0, NULL, &res, ei);
    if (err)
        return err;
    snprintf(s->epoch, sizeof s->epoch, "%s", pg_str(res, 0, 0));
    pg_result_free(&res);
    return ERR_OK;
}

static MAY_YIELD enum err meta_start(struct server *s, struct errinfo *ei)
{
    s->meta = mem_zalloc(sizeof *s->meta);
    enum err err = meta_schema_apply(s->pg, ei);
    if (!err)
        err = learn_epoch(s, ei);
    if (err)
        MEM_FREE(s->meta);
    else
        meta_keeper_start(s);
    return err;
}

static MAY_YIELD void meta_stop(struct server *s)
{
    meta_keeper_stop(s);
    MEM_FREE(s->meta);
}

const struct server_part meta_part = {"meta", meta_start, meta_stop};
