/* Changes of names and places. Each is one call of meta/calls.h: what it refuses is the answer, what it did is in the
 * answer and, published already, in the events. */
#include "base/log.h"
#include "server/http/fields.h"
#include "server/http/route.h"
#include "server/jobs/jobs.h"
#include "server/meta/calls.h"
#include <string.h>

#define ITEMS_AT_ONCE 1000 /* more go to the trash, or come back, as a job */

/* One change: what was asked, and how it ended. */
struct change {
    struct request *r;
    struct meta_who who;
    struct json *body;
    struct field_ids ids;
    struct meta_result res;
    struct errinfo ei;
};

/* Reads the body. False when it has been answered, here and in the two that follow. */
static MAY_YIELD bool change_open(struct change *c, struct request *r)
{
    c->r = r;
    c->who = meta_who(&r->login);
    return req_json(r, &c->body) == ERR_OK;
}

/* The same for a change of several items. */
static MAY_YIELD bool change_open_ids(struct change *c, struct request *r)
{
    return change_open(c, r) && field_ids(r, c->body, &c->ids);
}

/* Whether the call was done; err is what it said. */
static MAY_YIELD bool change_done(struct change *c, enum err err)
{
    if (err) {
        reply_error(c->r, &c->ei);
        return false;
    }
    const struct meta_change *refused = meta_refusal(&c->res);
    if (refused)
        meta_reply_refusal(c->r, refused->refused, refused->detail);
    return !refused;
}

/* {"message", "count", "files"}: the files as they are now, since a taken name may have been numbered. */
static MAY_YIELD void reply_files(struct change *c, const char *message)
{
    struct buf out = BUF_INIT(4 << 20);
    struct jsonw w;
    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", message);
    jsonw_i64(&w, "count", (int64_t)c->res.n);
    jsonw_array(&w, "files");
    for (size_t i = 0; i < c->res.n; i++)
        meta_file_json(&w, NULL, &c->res.rows[i].file);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (w.err)
        reply_message(c->r, 200, NULL, "%s", message);
    else
        reply_json(c->r, 200, &out);
    buf_done(&out);
}

static MAY_YIELD void post_folder(struct request *r)
{
    struct change c;
    const char *name, *parent;
    if (!change_open(&c, r) || !field_name(r, c.body, &name) || !field_parent(r, c.body, "parentId", &parent))
        return;
    if (change_done(&c, meta_folder_create(r->server, &c.who, parent, name, r->mem, &c.res, &c.ei)))
        meta_reply_file(r, 201, &c.res.rows[0].file);
}

static MAY_YIELD void post_rename(struct request *r)
{
    struct change c;
    const char *name, *id;
    if (!change_open(&c, r) || !field_text(r, c.body, "id", &id) || !field_name(r, c.body, &name))
        return;
    if (change_done(&c, meta_rename(r->server, &c.who, id, name, r->mem, &c.res, &c.ei)))
        meta_reply_file(r, 200, &c.res.rows[0].file);
}

static MAY_YIELD void post_move(struct request *r)
{
    struct change c;
    const char *target;
    if (!change_open_ids(&c, r) || !field_parent(r, c.body, "parentId", &target))
        return;
    if (change_done(&c, meta_move(r->server, &c.who, c.ids.v, c.ids.n, target, r->mem, &c.res, &c.ei)))
        reply_files(&c, "Moved");
}

/* A mark that goes on or off: field is its name in the body, mark the database's. */
static MAY_YIELD void set_mark(struct request *r, const char *field, const char *mark, const char *on_text,
                               const char *off_text)
{
    struct change c;
    bool on;
    if (!change_open_ids(&c, r) || !field_bool(r, c.body, field, &on))
        return;
    if (change_done(&c, meta_mark(r->server, &c.who, c.ids.v, c.ids.n, mark, on, r->mem, &c.res, &c.ei)))
        reply_files(&c, on ? on_text : off_text);
}

static MAY_YIELD void post_star(struct request *r)
{
    set_mark(r, "starred", "star", "Starred", "No longer starred");
}

static MAY_YIELD void post_share(struct request *r)
{
    set_mark(r, "shared", "share", "Shared", "No longer shared");
}

/* Into the trash or back: at once, or as a job when there are too many items for one request. */
static MAY_YIELD void set_trashed(struct request *r, bool trashed)
{
    struct change c;
    if (!change_open_ids(&c, r))
        return;
    enum err err = (trashed ? meta_trash : meta_restore)(r->server, &c.who, c.ids.v, c.ids.n, ITEMS_AT_ONCE, r->mem,
                                                         &c.res, &c.ei);
    const struct meta_change *refused = err ? NULL : meta_refusal(&c.res);
    if (refused && strcmp(refused->refused, "TOO_MANY") == 0)
        jobs_queue(r, trashed ? JOB_TRASH : JOB_RESTORE, c.ids.v, c.ids.n, NULL);
    else if (change_done(&c, err))
        reply_files(&c, trashed ? "Moved to the trash" : "Restored from the trash");
}

static MAY_YIELD void post_delete(struct request *r)
{
    set_trashed(r, true);
}

static MAY_YIELD void post_restore(struct request *r)
{
    set_trashed(r, false);
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
