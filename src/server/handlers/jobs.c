/* Asking for what is done as a job, and asking how far it is. */
#include "server/jobs/jobs.h"
#include "base/mem.h"
#include "server/http/fields.h"
#include "server/http/route.h"
#include "server/meta/meta.h"

#include <string.h>

static MAY_YIELD void post_copy(struct request *r)
{
    struct json *body = NULL;
    struct field_ids ids;
    const char *target = NULL;
    if (req_json(r, &body) == ERR_OK && field_ids(r, body, &ids) && field_parent(r, body, "parentId", &target))
        jobs_queue(r, JOB_COPY, ids.v, ids.n, target);
}

static MAY_YIELD void post_purge(struct request *r)
{
    struct json *body = NULL;
    struct field_ids ids;
    if (req_json(r, &body) == ERR_OK && field_ids(r, body, &ids))
        jobs_queue(r, JOB_PURGE, ids.v, ids.n, NULL);
}

static MAY_YIELD void post_empty(struct request *r)
{
    jobs_queue(r, JOB_EMPTY, NULL, 0, NULL);
}

struct job_state {
    const char *status, *result, *error;
    int64_t done, total;
    const char *created, *started, *finished; /* NULL: not yet */
};

static MAY_YIELD void reply_state(struct request *r, const struct job_state *j)
{
    bool completed = strcmp(j->status, "completed") == 0, failed = strcmp(j->status, "failed") == 0;
    struct buf json = BUF_INIT(4 << 20);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "jobId", r->params[0]);
    jsonw_str(&w, "status", j->status);
    jsonw_object(&w, "progress");
    jsonw_i64(&w, "done", j->done);
    jsonw_i64(&w, "total", j->total);
    jsonw_end_object(&w);
    jsonw_str(&w, "createdAt", j->created);
    jsonw_str(&w, "startedAt", j->started);
    jsonw_str(&w, "finishedAt", j->finished);
    if (completed)
        jsonw_raw(&w, "result", sv_of(j->result));
    if (failed) {
        jsonw_str(&w, "message", meta_refusal_text(r->mem, j->error, NULL));
        jsonw_str(&w, "error", j->error);
    }
    jsonw_end_object(&w);
    r->tells_of_job = true;
    reply_json(r, completed ? 200 : failed ? 500 : 202, &json);
    buf_done(&json);
}

static MAY_YIELD void get_job(struct request *r)
{
    static const char sql[] = "SELECT status, coalesce(result, '{}')::text, coalesce(error, 'UNKNOWN'), done, total,"
                              " drive_iso(created_at), drive_iso(started_at), drive_iso(finished_at)"
                              " FROM jobs WHERE id = $1 AND account_id = $2";
    const char *params[] = {r->params[0], r->login.account_id};
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(r->server->pg, sql, 2, params, &res, &ei) != ERR_OK) {
        reply_error(r, &ei);
    } else if (pg_rows(res) == 0) {
        reply_message(r, 404, "NOT_FOUND", "There is no such job");
    } else {
        struct job_state j = {pg_str(res, 0, 0),         pg_str(res, 0, 1),        pg_str(res, 0, 2),
                              pg_i64(res, 0, 3),         pg_i64(res, 0, 4),        pg_str_or_null(res, 0, 5),
                              pg_str_or_null(res, 0, 6), pg_str_or_null(res, 0, 7)};
        reply_state(r, &j);
    }
    pg_result_free(&res);
}

const struct route routes_jobs[] = {
    {"POST", "/api/files/copy", PERM(UPLOAD), ROUTE_NEEDS_STORE, post_copy},
    {"POST", "/api/files/trash/delete", PERM(TRASH), ROUTE_NEEDS_STORE, post_purge},
    {"POST", "/api/files/trash/empty", PERM(TRASH), ROUTE_NEEDS_STORE, post_empty},
    {"GET", "/api/files/jobs/:id", 0, 0, get_job},
    {0},
};
