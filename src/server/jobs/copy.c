#include "base/log.h"
#include "base/mem.h"
#include "server/jobs/impl.h"
#include "server/meta/calls.h"
#include "server/objects/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Copying: the store copies the objects by itself, several at a time, into keys that copy_items chose beforehand; one
 * commit then makes all rows visible. Until then nobody sees any of it, and copy_items keeps the sweeper off. */

#define BATCH   256
#define AT_ONCE 16

struct copy_batch;
struct copy_one {
    struct copy_batch *batch;
    const char *ord, *from, *to;
    enum err err; /* ERR_NOTFOUND: the source is gone for good and the item with it; ERR_WRONG: its object is missing */
};
struct copy_batch {
    struct job *job;
    struct copy_one *items;
    size_t n;
    struct sem slots;
    struct group group;
};

/* The source was replaced or deleted since the list was made: copies its content as it is now, if there is any. */
static MAY_YIELD enum err copy_refreshed(struct copy_one *c, struct blob *blob, struct errinfo *ei)
{
    struct job *j = c->batch->job;
    const char *params[] = {j->id, c->ord};
    struct pg_result *res = NULL;
    enum err e = pg_run(j->server->pg, "SELECT drive_copy_refresh($1, $2::integer)", 2, params, &res, ei);
    if (e != ERR_OK)
        return e;
    if (pg_is_null(res, 0, 0))
        e = ERR_NOTFOUND;
    else
        e = content_store_err(blob_copy(blob, pg_str(res, 0, 0), c->to, ei), ei);
    if (e == ERR_NOTFOUND && !pg_is_null(res, 0, 0))
        e = ERR_WRONG;
    pg_result_free(&res);
    return e;
}

static void copy_one(void *arg)
{
    struct copy_one *c = arg;
    struct server *s = c->batch->job->server;
    struct blob *blob = NULL;
    struct errinfo ei = {0};
    c->err = content_blob(s, &blob, &ei);
    if (c->err == ERR_OK && !fault_hit(s, FAULT_COPY_PARTIAL))
        c->err = content_store_err(blob_copy(blob, c->from, c->to, &ei), &ei);
    if (c->err == ERR_NOTFOUND)
        c->err = copy_refreshed(c, blob, &ei);
    if (c->err != ERR_OK && c->err != ERR_NOTFOUND)
        LOGW("jobs", "copy %s: %s", c->batch->job->id, err_message(&ei));
    sem_give(&c->batch->slots, 1);
}

static MAY_YIELD bool fetch_batch(struct job *j, struct arena *mem, struct copy_batch *b)
{
    static const char sql[] = "SELECT ord, source_path, path FROM copy_items WHERE job_id = $1 AND type = 'file'"
                              " AND NOT copied ORDER BY ord LIMIT 256";
    struct pg_result *res = NULL;
    struct errinfo ei;
    _Static_assert(BATCH == 256, "as in the statement");
    if (pg_run(j->server->pg, sql, 1, &j->id, &res, &ei) != ERR_OK) {
        LOGW("jobs", "copy %s: %s", j->id, err_message(&ei));
        return false;
    }
    *b = (struct copy_batch){.job = j, .n = (size_t)pg_rows(res)};
    b->items = arena_alloc(mem, (b->n + 1) * sizeof(*b->items));
    for (size_t i = 0; i < b->n; i++)
        b->items[i] =
            (struct copy_one){b, arena_strdup(mem, pg_str(res, (int)i, 0)), arena_strdup(mem, pg_str(res, (int)i, 1)),
                              arena_strdup(mem, pg_str(res, (int)i, 2)), ERR_OK};
    pg_result_free(&res);
    return true;
}

/* Notes what is copied, and tells how the batch went. */
static MAY_YIELD enum job_end note_batch(struct copy_batch *b, struct arena *mem)
{
    const char **ords = arena_alloc(mem, (b->n + 1) * sizeof(*ords)), *params[2];
    struct buf array = BUF_INIT(1 << 20);
    struct errinfo ei = {0};
    enum job_end end = JOB_DONE;
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        enum err one = b->items[i].err;
        if (one == ERR_OK)
            ords[n++] = b->items[i].ord;
        else if (one == ERR_WRONG)
            end = JOB_FAILED;
        else if (one != ERR_NOTFOUND && end == JOB_DONE)
            end = JOB_LATER;
    }
    enum err e = pg_array(&array, ords, n);
    params[0] = b->job->id;
    params[1] = buf_cstr(&array);
    if (e == ERR_OK)
        e = pg_run(b->job->server->pg, "SELECT drive_job_copied($1, $2::integer[])", 2, params, NULL, &ei);
    if (e != ERR_OK)
        LOGW("jobs", "copy %s: %s", b->job->id, err_message(&ei));
    buf_done(&array);
    return e != ERR_OK && end == JOB_DONE ? JOB_LATER : end;
}

/* One batch of objects; *more is false when there were none left. */
static MAY_YIELD enum job_end copy_batch(struct job *j, bool *more)
{
    struct arena *mem = arena_new(32 << 10);
    struct copy_batch b;
    enum job_end end = fetch_batch(j, mem, &b) ? JOB_DONE : JOB_LATER;
    *more = end == JOB_DONE && b.n > 0;
    if (*more) {
        sem_init_coro(&b.slots, AT_ONCE);
        for (size_t i = 0; i < b.n; i++) {
            sem_take(j->server->loop, &b.slots, 1);
            group_spawn(j->server->loop, &b.group, copy_one, &b.items[i]);
        }
        group_wait(j->server->loop, &b.group);
        end = note_batch(&b, mem);
    }
    arena_free(&mem);
    return end;
}

enum job_end job_copy_run(struct job *j, const char **code)
{
    struct meta_result res = {0};
    struct errinfo ei;
    enum job_end end = JOB_DONE;
    for (bool more = true; more && end == JOB_DONE;)
        end = jobs_stopping(j->server) ? JOB_LATER : copy_batch(j, &more);
    if (end == JOB_FAILED)
        *code = "CONTENT_MISSING";
    if (end != JOB_DONE)
        return end;
    if (meta_copy_commit(j->server, &j->who, j->id, j->mem, &res, &ei) != ERR_OK) {
        LOGW("jobs", "copy %s: %s", j->id, err_message(&ei));
        return JOB_LATER; /* if it was done after all, the next call says so by giving back nothing */
    }
    const struct meta_change *no = meta_refusal(&res);
    if (no)
        *code = no->refused;
    return no ? JOB_FAILED : JOB_DONE;
}
