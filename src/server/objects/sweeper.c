#include "server/objects/sweeper.h"

#include "base/log.h"
#include "base/mem.h"
#include "server/events/presence.h"
#include "server/objects/impl.h"
#include "store/pg.h"

#include <stdio.h>
#include <string.h>

#define SWEEP_US       (10 * 60 * US_PER_S)
#define SOON_US        (15 * US_PER_S) /* something failed, or no bucket is connected yet */
#define AGE_US         (10 * US_PER_S) /* a call that a dead process left behind may still name it */
#define BATCH          500
#define SUSPECTS_MAX   20000 /* a sweep; the rest waits for the next */
#define KEY_SUFFIX_LEN 16
#define CHANGES_KEPT   "10000" /* an account's feed reaches back so far */
#define KEPT           "1 day" /* jobs that ended */

struct sweeper {
    struct done wake;
    struct group group;
    bool stopping;
};

struct suspect {
    char key[CONTENT_KEY_MAX];
    struct wall modified; /* by the store's clock */
};
struct sweep {
    struct server *server;
    size_t prefix_len; /* "<account>/" */
    struct suspect batch[BATCH];
    size_t n_batch;
    struct suspect *suspects;
    size_t n;
    struct buf others; /* marks of the servers that live besides us: their objects are theirs to sweep */
    enum err err;
    struct errinfo ei;
};

/* Whether a key is of the form that content_new_key gives. */
static bool is_ours(const struct sweep *w, const char *key)
{
    size_t n = strlen(key);
    if (n != w->prefix_len + KEY_SUFFIX_LEN || n >= CONTENT_KEY_MAX)
        return false;
    return strspn(key + w->prefix_len, "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") ==
           KEY_SUFFIX_LEN;
}

static enum err keys_array(const struct suspect *s, size_t n, struct buf *out)
{
    const char **keys = mem_alloc((n + 1) * sizeof(*keys));
    for (size_t i = 0; i < n; i++)
        keys[i] = s[i].key;
    enum err e = pg_array(out, keys, n);
    mem_free(keys);
    return e;
}

/* Keeps of these n those that no row names. Which are in flight was looked at before: an object that was settled since
 * has its row by now. */
static MAY_YIELD enum err keep_unnamed(struct server *s, struct suspect *list, size_t *n, struct errinfo *ei)
{
    static const char sql[] = "SELECT i FROM unnest($1::text[]) WITH ORDINALITY AS t (k, i)"
                              " WHERE NOT EXISTS (SELECT FROM files WHERE path = k)"
                              " AND NOT EXISTS (SELECT FROM copy_items WHERE path = k) ORDER BY i";
    struct buf array = BUF_INIT(4 << 20);
    struct pg_result *res = NULL;
    enum err e = keys_array(list, *n, &array);
    const char *params[] = {buf_cstr(&array)};
    if (e == ERR_OK)
        e = pg_run(s->pg, sql, 1, params, &res, ei);
    if (e == ERR_OK) {
        *n = (size_t)pg_rows(res);
        for (size_t i = 0; i < *n; i++)
            list[i] = list[pg_i64(res, (int)i, 0) - 1];
    }
    pg_result_free(&res);
    buf_done(&array);
    return e;
}

static MAY_YIELD void judge_batch(struct sweep *w)
{
    w->err = keep_unnamed(w->server, w->batch, &w->n_batch, &w->ei);
    if (w->err == ERR_OK && w->n_batch > 0) {
        w->suspects = mem_realloc_array(w->suspects, w->n + w->n_batch, sizeof(*w->suspects));
        memcpy(w->suspects + w->n, w->batch, w->n_batch * sizeof(*w->batch));
        w->n += w->n_batch;
    }
    w->n_batch = 0;
}

static MAY_YIELD bool on_object(void *arg, const char *key, const struct blob_info *info)
{
    struct sweep *w = arg;
    if (w->server->sweeper->stopping || w->n >= SUSPECTS_MAX)
        return false;
    if (!is_ours(w, key) || info->modified.us == 0 || content_in_flight(w->server, key))
        return true;
    struct suspect *s = &w->batch[w->n_batch++];
    snprintf(s->key, sizeof(s->key), "%s", key);
    s->modified = info->modified;
    if (w->n_batch == BATCH)
        judge_batch(w);
    return w->err == ERR_OK;
}

static MAY_YIELD enum err look_through(struct sweep *w, struct blob *blob, struct errinfo *ei)
{
    static const char sql[] = "SELECT id FROM users WHERE parent_user_id IS NULL ORDER BY id";
    struct pg_result *res = NULL;
    enum err e = pg_run(w->server->pg, sql, 0, NULL, &res, ei);
    for (int i = 0; e == ERR_OK && i < pg_rows(res) && !w->server->sweeper->stopping; i++) {
        char prefix[CONTENT_KEY_MAX];
        snprintf(prefix, sizeof(prefix), "%s/", pg_str(res, i, 0));
        w->prefix_len = strlen(prefix);
        e = blob_list(blob, prefix, on_object, w, ei);
        if (e == ERR_OK && w->err == ERR_OK && w->n_batch > 0)
            judge_batch(w);
        if (e == ERR_OK && w->err != ERR_OK) {
            e = w->err;
            *ei = w->ei;
        }
    }
    pg_result_free(&res);
    return e;
}

/* What time it is for the store: that of an object written just now, which is deleted again. */
static MAY_YIELD enum err store_time(struct sweep *w, struct blob *blob, struct wall *out, struct errinfo *ei)
{
    char account[DRIVE_ID_MAX + 1], key[CONTENT_KEY_MAX];
    struct blob_info info;
    const char *slash = strchr(w->suspects[0].key, '/');
    snprintf(account, sizeof(account), "%.*s", (int)(slash - w->suspects[0].key), w->suspects[0].key);
    content_new_key(w->server, account, key);
    enum err e = blob_put(blob, key, "", 0, ei);
    if (e == ERR_OK)
        e = blob_head(blob, key, &info, ei);
    if (e == ERR_OK && info.modified.us == 0)
        e = err_set(ei, ERR_STORE, "the object store does not say when objects were written");
    if (e == ERR_OK)
        *out = info.modified;
    content_delete(w->server, &(const char *){key}, 1);
    content_settle(w->server, key);
    return e;
}

/* Of one account's suspects gives up those that no row names, and deletes them. */
static MAY_YIELD enum err delete_for_good(struct sweep *w, struct suspect *list, size_t n, struct errinfo *ei)
{
    static const char sql[] = "SELECT drive_give_up_objects($1, $2)";
    struct buf array = BUF_INIT(4 << 20);
    struct pg_result *res = NULL;
    char account[DRIVE_ID_MAX + 1];
    snprintf(account, sizeof(account), "%.*s", (int)strcspn(list[0].key, "/"), list[0].key);
    enum err e = keys_array(list, n, &array);
    const char *params[] = {account, buf_cstr(&array)};
    if (e == ERR_OK)
        e = pg_run(w->server->pg, sql, 2, params, &res, ei);
    if (e == ERR_OK && pg_rows(res) > 0) {
        size_t n_dead = (size_t)pg_rows(res);
        const char **keys = mem_alloc(n_dead * sizeof(*keys));
        for (size_t i = 0; i < n_dead; i++)
            keys[i] = pg_str(res, (int)i, 0);
        LOGI("sweeper", "deleted, since no file names them: %s, the first %s", COUNTED(n_dead, "object"), keys[0]);
        content_delete(w->server, keys, n_dead);
        mem_free(keys);
    }
    pg_result_free(&res);
    buf_done(&array);
    return e;
}

static bool same_account(const struct suspect *a, const struct suspect *b)
{
    size_t n = strcspn(a->key, "/");
    return strncmp(a->key, b->key, n + 1) == 0;
}

static bool is_others(const struct sweep *w, const struct suspect *s)
{
    const char *mark = strchr(s->key, '/') + 1;
    for (size_t i = 0; i < w->others.len; i += PRESENCE_MARK_LEN)
        if (memcmp(w->others.data + i, mark, PRESENCE_MARK_LEN) == 0)
            return true;
    return false;
}

/* Deletes the suspects that were there before `horizon`; *wait_us gets no longer than until the next one is that old.
 */
static MAY_YIELD enum err delete_old(struct sweep *w, struct wall horizon, int64_t *wait_us, struct errinfo *ei)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        int64_t left = w->suspects[i].modified.us - horizon.us;
        if (is_others(w, &w->suspects[i]))
            continue;
        if (left < 0)
            w->suspects[n++] = w->suspects[i];
        else if (left + US_PER_S < *wait_us)
            *wait_us = left + US_PER_S;
    }
    enum err e = ERR_OK;
    for (size_t from = 0, to; e == ERR_OK && from < n; from = to) { /* they come account by account */
        for (to = from + 1; to < n && to - from < BATCH && same_account(&w->suspects[from], &w->suspects[to]);)
            to++;
        e = delete_for_good(w, w->suspects + from, to - from, ei);
    }
    return e;
}

/* *wait_us: how long until the next sweep; made shorter when something must wait that long and no longer. */
static MAY_YIELD enum err sweep_objects(struct sweep *w, int64_t *wait_us, struct errinfo *ei)
{
    struct blob *blob = w->server->blob;
    struct mono began = mono_now();
    struct wall now;
    if (!blob) {
        *wait_us = SOON_US;
        return ERR_OK;
    }
    enum err e = look_through(w, blob, ei);
    if (e != ERR_OK || w->n == 0)
        return e;
    e = store_time(w, blob, &now, ei);
    if (e == ERR_OK) /* after the listing: who wrote what is in it lives and is known, or is dead */
        e = presence_others(w->server, &w->others, ei);
    if (e == ERR_OK)
        e = delete_old(w, (struct wall){now.us - AGE_US - mono_diff(mono_now(), began)}, wait_us, ei);
    return e;
}

static MAY_YIELD enum err sweep_rows(struct server *s, struct errinfo *ei)
{
    static const char *const statements[] = {
        "SELECT drive_housekeeping(" CHANGES_KEPT ")",
        "DELETE FROM jobs WHERE finished_at < now() - interval '" KEPT "'",
    };
    enum err e = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(statements) && e == ERR_OK; i++)
        e = pg_run(s->pg, statements[i], 0, NULL, NULL, ei);
    return e;
}

/* Until that time, or until somebody is in doubt about an object, or some could not be deleted: these are tried again
 * soon, but not at once, since what kept them from it may last. */
static MAY_YIELD void wait_for_work(struct server *s, struct mono until)
{
    bool woken = false;
    while (!woken && !mono_passed(until)) {
        struct mono soon = mono_add(mono_now(), SOON_US);
        woken = done_wait_until(s->loop, &s->sweeper->wake, mono_earlier(soon, until)) || content_take_left_behind(s);
    }
}

static void sweep_in_coroutine(void *arg)
{
    struct server *s = arg;
    struct sweeper *sw = s->sweeper;
    while (!sw->stopping) {
        struct sweep *w = mem_zalloc(sizeof(*w)); /* too large for a coroutine's stack */
        struct errinfo ei = {0};
        int64_t wait_us = SWEEP_US;
        w->server = s;
        buf_init(&w->others, 64 << 10);
        enum err e = sweep_objects(w, &wait_us, &ei);
        if (e == ERR_OK)
            e = sweep_rows(s, &ei);
        if (e != ERR_OK)
            LOGW("sweeper", "not all could be cleaned up: %s", err_message(&ei));
        mem_free(w->suspects);
        buf_done(&w->others);
        mem_free(w);
        if ((e != ERR_OK || content_in_doubt(s)) && wait_us > SOON_US)
            wait_us = SOON_US;
        wait_for_work(s, mono_add(mono_now(), wait_us));
    }
}

void sweeper_doubt(struct server *s, struct content_object *o)
{
    content_doubt(s, o);
    sweeper_look(s);
}

void sweeper_look(struct server *s)
{
    if (s->sweeper)
        done_set(&s->sweeper->wake);
}

static enum err sweeper_start(struct server *s, struct errinfo *ei)
{
    (void)ei;
    s->sweeper = mem_zalloc(sizeof(*s->sweeper));
    group_spawn(s->loop, &s->sweeper->group, sweep_in_coroutine, s);
    return ERR_OK;
}

static MAY_YIELD void sweeper_stop(struct server *s)
{
    s->sweeper->stopping = true;
    done_set(&s->sweeper->wake);
    group_wait(s->loop, &s->sweeper->group);
    MEM_FREE(s->sweeper);
}

const struct server_part sweeper_part = {"sweeper", sweeper_start, sweeper_stop};
