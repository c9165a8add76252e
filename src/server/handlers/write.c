/* Changes of names and places. Each is one call of meta/calls.h: what it refuses is the answer, what it did is in the
 * answer and, published already, in the events. */
#include "base/log.h"
#include "server/http/fields.h"
#include "server/http/route.h"
#include "server/jobs/jobs.h"
#include "server/meta/calls.h"
#include <string.h>

#define ITEMS_AT_ONCE 1000 /* more go to the trash, or come back, as a job */

/* The body as JSON, and on whose behalf. */
static MAY_YIELD bool open_body(struct request *r, struct json **body, struct meta_who *who)
{
    *who = meta_who(&r->login);
    return req_json(r, body) == ERR_OK;
}

/* True when the call was done; else it has been answered. */
static MAY_YIELD bool done(struct request *r, enum err err, const struct meta_result *res, const struct errinfo *ei)
{
    if (err) {
        reply_error(r, ei);
        return false;
    }
    const struct meta_change *refused = meta_refusal(res);
    if (refused)
        meta_reply_refusal(r, refused->refused, refused->detail);
    return !refused;
}

static MAY_YIELD void reply_file(struct request *r, int status, const struct meta_file *f)
{
    struct buf out = BUF_INIT(64 * 1024);
    struct jsonw w;
    jsonw_init(&w, &out);
    meta_file_json(&w, NULL, f);
    reply_json(r, status, &out);
    buf_done(&out);
}

/* {"message", "count", "files"}: the files as they are now, since a taken name may have been numbered. */
static MAY_YIELD void reply_files(struct request *r, const struct meta_result *res, const char *message)
{
    struct buf out = BUF_INIT(4 << 20);
    struct jsonw w;
    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", message);
    jsonw_i64(&w, "count", (int64_t)res->n);
    jsonw_array(&w, "files");
    for (size_t i = 0; i < res->n; i++)
        meta_file_json(&w, NULL, &res->rows[i].file);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (w.err)
        reply_message(r, 200, NULL, "%s", message);
    else
        reply_json(r, 200, &out);
    buf_done(&out);
}

static MAY_YIELD void post_folder(struct request *r)
{
    struct json *body;
    struct meta_who who;
    struct meta_result res;
    struct errinfo ei;
    const char *name, *parent;
    if (!open_body(r, &body, &who) || !field_name(r, body, &name) || !field_parent(r, body, "parentId", &parent))
        return;
    if (done(r, meta_folder_create(r->server, &who, parent, name, r->mem, &res, &ei), &res, &ei))
        reply_file(r, 201, &res.rows[0].file);
}

static MAY_YIELD void post_rename(struct request *r)
{
    struct json *body;
    struct meta_who who;
    struct meta_result res;
    struct errinfo ei;
    const char *name, *id;
    if (!open_body(r, &body, &who) || !field_text(r, body, "id", &id) || !field_name(r, body, &name))
        return;
    if (done(r, meta_rename(r->server, &who, id, name, r->mem, &res, &ei), &res, &ei))
        reply_file(r, 200, &res.rows[0].file);
}

static MAY_YIELD void post_move(struct request *r)
{
    struct json *body;
    struct meta_who who;
    struct meta_result res;
    struct errinfo ei;
    struct field_ids ids;
    const char *target;
    if (!open_body(r, &body, &who) || !field_ids(r, body, &ids) || !field_parent(r, body, "parentId", &target))
        return;
    if (done(r, meta_move(r->server, &who, ids.v, ids.n, target, r->mem, &res, &ei), &res, &ei))
        reply_files(r, &res, "Moved");
}

/* Starring and sharing: a mark that goes on or off. */
static MAY_YIELD void set_mark(struct request *r, const char *key,
                               MAY_YIELD enum err (*call)(struct server *, const struct meta_who *, const char *const *,
                                                          size_t, bool, struct arena *, struct meta_result *,
                                                          struct errinfo *),
                               const char *on_text, const char *off_text)
{
    struct json *body;
    struct meta_who who;
    struct meta_result res;
    struct errinfo ei;
    struct field_ids ids;
    bool on;
    if (!open_body(r, &body, &who) || !field_ids(r, body, &ids) || !field_bool(r, body, key, &on))
        return;
    if (done(r, call(r->server, &who, ids.v, ids.n, on, r->mem, &res, &ei), &res, &ei))
        reply_files(r, &res, on ? on_text : off_text);
}

static MAY_YIELD void post_star(struct request *r)
{
    set_mark(r, "starred", meta_star, "Starred", "No longer starred");
}

static MAY_YIELD void post_share(struct request *r)
{
    set_mark(r, "shared", meta_share, "Shared", "No longer shared");
}

/* Whether there are too many for one request: then a job has been queued and the answer sent. */
static MAY_YIELD bool became_job(struct request *r, enum err err, const struct meta_result *res, enum job_kind kind,
                                 const struct field_ids *ids)
{
    const struct meta_change *refused = err ? NULL : meta_refusal(res);
    if (!refused || strcmp(refused->refused, "TOO_MANY") != 0)
        return false;
    jobs_queue(r, kind, ids->v, ids->n, NULL);
    return true;
}

static MAY_YIELD void post_delete(struct request *r)
{
    struct json *body;
    struct meta_who who;
    struct meta_result res;
    struct errinfo ei;
    struct field_ids ids;
    if (!open_body(r, &body, &who) || !field_ids(r, body, &ids))
        return;
    enum err err = meta_trash(r->server, &who, ids.v, ids.n, ITEMS_AT_ONCE, r->mem, &res, &ei);
    if (!became_job(r, err, &res, JOB_TRASH, &ids) && done(r, err, &res, &ei))
        reply_files(r, &res, "Moved to the trash");
}

static MAY_YIELD void post_restore(struct request *r)
{
    struct json *body;
    struct meta_who who;
    struct meta_result res;
    struct errinfo ei;
    struct field_ids ids;
    if (!open_body(r, &body, &who) || !field_ids(r, body, &ids))
        return;
    enum err err = meta_restore(r->server, &who, ids.v, ids.n, ITEMS_AT_ONCE, r->mem, &res, &ei);
    if (!became_job(r, err, &res, JOB_RESTORE, &ids) && done(r, err, &res, &ei))
        reply_files(r, &res, "Restored from the trash");
}

const struct route routes_write[] = {
    {"POST", "/api/files/folder", PERM(UPLOAD), 0, post_folder},
    {"POST", "/api/files/rename", PERM(EDIT), 0, post_rename},
    {"POST", "/api/files/move", PERM(EDIT), 0, post_move},
    {"POST", "/api/files/star", PERM(EDIT), 0, post_star},
    {"POST", "/api/files/share", PERM(SHARE), 0, post_share},
    {"POST", "/api/files/delete", PERM(DELETE), 0, post_delete},
    {"POST", "/api/files/trash/restore", PERM(TRASH), 0, post_restore},
    {0},
};
