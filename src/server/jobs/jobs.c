#include "base/log.h"
#include "base/mem.h"
#include "server/events/presence.h"
#include "server/jobs/impl.h"
#include "server/objects/content.h"

#include <stdio.h>
#include <string.h>

#define AT_ONCE      8              /* accounts whose jobs run side by side in one server */
#define LOOK_US      (3 * US_PER_S) /* for jobs of servers that died, and for those that wait for a while */
#define ATTEMPTS_MAX 8 /* a job that takes the server down, or finds the store away, is not tried for ever */
#define DELETE_BATCH 1000

struct jobs {
    struct done wake; /* a job was queued or ended, or the server stops */
    struct group group;
    struct job *running[AT_ONCE];
    size_t n_running;
    bool stopping;
};

static const char *const kind_names[] = {
    [JOB_COPY] = "copy", [JOB_PURGE] = "purge", [JOB_EMPTY] = "empty", [JOB_TRASH] = "trash", [JOB_RESTORE] = "restore",
};
static const char *const queued_messages[] = {
    [JOB_COPY] = "Copy queued.",
    [JOB_PURGE] = "Permanent deletion queued.",
    [JOB_EMPTY] = "Emptying of the trash queued.",
    [JOB_TRASH] = "Moving to the trash queued.",
    [JOB_RESTORE] = "Restoring queued.",
};

bool jobs_stopping(const struct server *s)
{
    return s->jobs->stopping;
}

/* ---- queueing ---- */

static MAY_YIELD void reply_queued(struct request *r, enum job_kind kind, const char *id)
{
    struct buf json = BUF_INIT(4096);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", queued_messages[kind]);
    jsonw_bool(&w, "queued", true);
    jsonw_str(&w, "jobId", id);
    jsonw_str(&w, "status", "created");
    jsonw_end_object(&w);
    reply_json(r, 202, &json);
    buf_done(&json);
}

void jobs_queue(struct request *r, enum job_kind kind, const char *const *ids, size_t n, const char *target)
{
    static const char sql[] = "SELECT refused, detail, job FROM drive_job_queue($1, $2, $3, $4, $5)";
    struct buf array = BUF_INIT(1 << 20);
    struct pg_result *res = NULL;
    struct errinfo ei = {0};
    enum err e = pg_array(&array, ids, n);
    const char *params[] = {r->login.account_id, r->login.user_id, kind_names[kind], buf_cstr(&array), target};
    struct meta_slot *slot = meta_slot_take(r->server, r->login.account_id);
    if (e == ERR_OK)
        e = pg_run(r->server->pg, sql, 5, params, &res, &ei);
    if (e == ERR_OK && kind == JOB_COPY && fault_hit(r->server, FAULT_DUPLICATE_ON_RETRY))
        e = pg_run(r->server->pg, sql, 5, params, NULL, &ei);
    meta_slot_give(r->server, slot);
    buf_done(&array);
    if (e != ERR_OK) {
        reply_error(r, &ei);
    } else if (!pg_is_null(res, 0, 0)) {
        meta_reply_refusal(r, pg_str(res, 0, 0), pg_str_or_null(res, 0, 1));
    } else {
        done_set(&r->server->jobs->wake);
        reply_queued(r, kind, pg_str(res, 0, 2));
    }
    pg_result_free(&res);
}

/* The objects' keys that are a result's first column; they live in the job's arena. res NULL: none. */
static const char **keys_of(struct job *j, const struct pg_result *res, size_t *n)
{
    *n = res ? (size_t)pg_rows(res) : 0;
    const char **keys = arena_alloc(j->mem, (*n + 1) * sizeof(*keys));
    for (size_t i = 0; i < *n; i++)
        keys[i] = arena_strdup(j->mem, pg_str(res, (int)i, 0));
    return keys;
}

/* ---- kinds that are one call and then some deleting ---- */

/* The rows are gone for good; what the store would not delete now is left to the sweeper. */
static MAY_YIELD enum job_end delete_objects(struct job *j)
{
    static const char progress_sql[] = "UPDATE jobs SET done = $2::bigint WHERE id = $1";
    static const char end_sql[] = "UPDATE jobs SET status = 'completed', done = total, keys = NULL, finished_at = now()"
                                  " WHERE id = $1 AND status = 'active' AND keys IS NOT NULL";
    struct pg_result *res = NULL;
    struct errinfo ei;
    size_t n;
    if (pg_run(j->server->pg, "SELECT unnest(keys) FROM jobs WHERE id = $1", 1, &j->id, &res, &ei) != ERR_OK) {
        LOGW("jobs", "%s: %s", j->id, err_message(&ei));
        return JOB_LATER;
    }
    const char **keys = keys_of(j, res, &n);
    pg_result_free(&res);
    for (size_t at = 0; at < n; at += DELETE_BATCH) {
        char text[24];
        const char *params[] = {j->id, text};
        if (jobs_stopping(j->server))
            return JOB_LATER;
        content_delete(j->server, keys + at, n - at < DELETE_BATCH ? n - at : DELETE_BATCH);
        snprintf(text, sizeof(text), "%zu", n - at < DELETE_BATCH ? n : at + DELETE_BATCH);
        if (pg_run(j->server->pg, progress_sql, 2, params, NULL, &ei) != ERR_OK)
            LOGW("jobs", "%s: %s", j->id, err_message(&ei));
    }
    return pg_run(j->server->pg, end_sql, 1, &j->id, NULL, &ei) == ERR_OK ? JOB_DONE : JOB_LATER;
}

static MAY_YIELD enum job_end run_apply(struct job *j, const char **code)
{
    static const char sql[] = "SELECT refused, detail, seq, event, data, keys, id, name, type, size, mime_type,"
                              " parent_id, starred, shared, modified, accessed_at, version, path"
                              " FROM drive_job_apply($1, $2, $3)";
    const char *params[] = {j->who.account_id, j->who.user_id, j->id};
    struct meta_result res = {0};
    struct errinfo ei;
    if (meta_write_long(j->server, j->who.account_id, sql, 3, params, j->mem, &res, &ei) != ERR_OK) {
        LOGW("jobs", "%s: %s", j->id, err_message(&ei));
        return JOB_LATER;
    }
    const struct meta_change *no = meta_refusal(&res);
    if (no) {
        *code = no->refused;
        return JOB_FAILED;
    }
    return delete_objects(j);
}

/* ---- running ---- */

static const struct {
    const char *kind;
    MAY_YIELD enum job_end (*run)(struct job *j, const char **code);
} runs[] = {
    {"copy", job_copy_run}, {"purge", run_apply}, {"empty", run_apply}, {"trash", run_apply}, {"restore", run_apply},
};

/* Lets go of the job, so that it can be claimed again: at once when the server stops, else after a pause that grows. */
static MAY_YIELD void put_back(struct job *j)
{
    char pause[24];
    const char *params[] = {j->id, presence_id(j->server), pause};
    struct errinfo ei;
    snprintf(pause, sizeof(pause), "%d", jobs_stopping(j->server) ? 0 : 1 << (j->attempts < 5 ? j->attempts : 5));
    if (pg_run(j->server->pg, "SELECT drive_job_put_back($1, $2, $3)", 3, params, NULL, &ei) != ERR_OK)
        LOGW("jobs", "%s: %s", j->id, err_message(&ei));
}

/* The objects that a copy made so far go too, after the commit: by then nothing names them. */
static MAY_YIELD void fail(struct job *j, const char *code)
{
    static const char sql[] = "SELECT k FROM drive_job_fail($1, $2) AS k WHERE k IS NOT NULL";
    const char *params[] = {j->id, code}, **keys;
    struct pg_result *res = NULL;
    struct errinfo ei;
    size_t n;
    LOGW("jobs", "%s %s of account %s failed: %s", j->kind, j->id, j->who.account_id, code);
    if (meta_refusal_status(code) >= 500) /* else the server works as designed: the target was deleted meanwhile, … */
        j->server->metrics.server_errors++;
    if (pg_run(j->server->pg, sql, 2, params, &res, &ei) != ERR_OK)
        LOGW("jobs", "%s: %s", j->id, err_message(&ei));
    keys = keys_of(j, res, &n);
    content_delete(j->server, keys, n);
    pg_result_free(&res);
}

static void forget_job(struct job *j)
{
    struct jobs *jobs = j->server->jobs;
    struct arena *mem = j->mem; /* j itself lives in it */
    size_t i = 0;
    while (jobs->running[i] != j)
        i++;
    jobs->running[i] = jobs->running[--jobs->n_running];
    done_set(&jobs->wake);
    arena_free(&mem);
}

static void run_in_coroutine(void *arg)
{
    struct job *j = arg;
    size_t k = 0;
    const char *code = "GIVEN_UP";
    while (k < ARRAY_LEN(runs) && strcmp(runs[k].kind, j->kind) != 0)
        k++;
    enum job_end end = k == ARRAY_LEN(runs) || j->attempts > ATTEMPTS_MAX ? JOB_FAILED : runs[k].run(j, &code);
    if (end == JOB_LATER && j->attempts == ATTEMPTS_MAX && !jobs_stopping(j->server))
        end = JOB_FAILED;
    if (end == JOB_FAILED)
        fail(j, code);
    else if (end == JOB_LATER)
        put_back(j);
    forget_job(j);
}

/* ---- claiming ---- */

static enum err append_running(const struct jobs *jobs, struct buf *array)
{
    const char *ids[AT_ONCE];
    for (size_t i = 0; i < jobs->n_running; i++)
        ids[i] = jobs->running[i]->id;
    return pg_array(array, ids, jobs->n_running);
}

static MAY_YIELD struct job *claim(struct server *s)
{
    static const char sql[] = "SELECT job, account, actor, kind, attempts FROM drive_job_claim($1, $2)";
    struct buf at = BUF_INIT(4096);
    struct pg_result *res = NULL;
    struct job *j = NULL;
    struct errinfo ei = {0};
    enum err e = append_running(s->jobs, &at);
    const char *params[] = {presence_id(s), buf_cstr(&at)};
    if (e == ERR_OK)
        e = pg_run(s->pg, sql, 2, params, &res, &ei);
    if (e != ERR_OK) {
        LOGW("jobs", "cannot look for jobs: %s", err_message(&ei));
    } else if (pg_rows(res) > 0) {
        struct arena *mem = arena_new(16 << 10);
        j = arena_alloc(mem, sizeof(*j));
        j->server = s;
        j->mem = mem;
        j->id = arena_strdup(mem, pg_str(res, 0, 0));
        j->who.account_id = arena_strdup(mem, pg_str(res, 0, 1));
        j->who.user_id = arena_strdup(mem, pg_str(res, 0, 2));
        j->who.session_id = j->who.name = "";
        j->kind = arena_strdup(mem, pg_str(res, 0, 3));
        j->attempts = pg_i64(res, 0, 4);
    }
    pg_result_free(&res);
    buf_done(&at);
    return j;
}

static MAY_YIELD void start_jobs(struct server *s)
{
    struct jobs *jobs = s->jobs;
    while (!jobs->stopping && jobs->n_running < AT_ONCE) {
        struct job *j = claim(s);
        if (!j)
            return;
        jobs->running[jobs->n_running++] = j;
        group_spawn(s->loop, &jobs->group, run_in_coroutine, j);
    }
}

static void dispatch_in_coroutine(void *arg)
{
    struct server *s = arg;
    while (!s->jobs->stopping) {
        start_jobs(s);
        done_wait_until(s->loop, &s->jobs->wake, mono_add(mono_now(), LOOK_US));
    }
}

/* ---- the part ---- */

static enum err jobs_start(struct server *s, struct errinfo *ei)
{
    (void)ei;
    s->jobs = mem_zalloc(sizeof(*s->jobs));
    group_spawn(s->loop, &s->jobs->group, dispatch_in_coroutine, s);
    return ERR_OK;
}

static MAY_YIELD void jobs_stop(struct server *s)
{
    s->jobs->stopping = true;
    done_set(&s->jobs->wake);
    group_wait(s->loop, &s->jobs->group);
    MEM_FREE(s->jobs);
}

const struct server_part jobs_part = {"jobs", jobs_start, jobs_stop};
