/* One file: upload, replace, and the question beforehand. Whether a body may come is decided from the request's head,
 * or from the part's head that says its exact size, before any of it is read; the commit decides again and for good. */
#include "base/log.h"
#include "base/mem.h"
#include "drive/path.h"
#include "server/http/fields.h"
#include "server/http/route.h"
#include "server/http/upload_form.h"
#include "server/meta/calls.h"
#include "server/objects/sweeper.h"

#define BODY_MOMENT_US 250000 /* after which a client seems to wait for an answer to its head */

/* A file on its way in, with what the request says about it. */
struct incoming {
    struct request *r;
    struct meta_who who;
    const char *replaces;    /* the file's id; NULL: a new file */
    struct meta_guard guard; /* of a replacement */
    struct upload_form form;
    struct multipart_part part;
    struct wall modified;
    int64_t old_size;             /* of the content that goes */
    int64_t max;                  /* bytes that may come */
    bool max_is_quota;            /* the account's room sets it, not the largest size allowed */
    struct content_object object; /* the file's content, stored */
};

static struct incoming incoming_of(struct request *r)
{
    return (struct incoming){.r = r, .who = meta_who(&r->login), .max = r->server->conf->max_upload_bytes};
}

/* Whether a file of that size may come now. Answers and returns false when not. */
static MAY_YIELD bool admit(struct incoming *in, int64_t bytes)
{
    struct request *r = in->r;
    struct meta_result res = {0};
    struct errinfo ei;
    int64_t largest = r->server->conf->max_upload_bytes;
    if (bytes > largest) {
        form_reply_too_large(r, bytes, largest);
        return false;
    }
    enum err e =
        in->replaces
            ? meta_replace_check(r->server, &in->who, in->replaces, &in->guard, (uint64_t)bytes, r->mem, &res, &ei)
            : meta_upload_check(r->server, &in->who, in->form.parent_id, (uint64_t)bytes, r->mem, &res, &ei);
    const struct meta_change *no = e == ERR_OK ? meta_refusal(&res) : NULL;
    if (e != ERR_OK)
        reply_error(r, &ei);
    else if (no)
        meta_reply_refusal(r, no->refused, no->detail);
    else if (in->replaces)
        in->old_size = res.rows[0].file.size;
    return e == ERR_OK && !no;
}

/* What Content-Length alone says about the file: at least so many bytes. */
static int64_t least_bytes(const struct request *r)
{
    return r->content_length > UPLOAD_FRAMING_MAX ? r->content_length - UPLOAD_FRAMING_MAX : 0;
}

/* A body of known size was judged by admit; one without is bounded by what the account has room for. */
static MAY_YIELD bool set_bound(struct incoming *in)
{
    struct errinfo ei;
    int64_t room;
    if (multipart_bytes_left(in->form.m) >= 0)
        return true;
    if (meta_room(in->r->server, &in->who, &room, &ei) != ERR_OK) {
        reply_error(in->r, &ei);
        return false;
    }
    in->max_is_quota = room != META_NO_LIMIT && room + in->old_size < in->max;
    if (in->max_is_quota)
        in->max = room + in->old_size > 0 ? room + in->old_size : 0;
    return true;
}

static MAY_YIELD void reply_over_bound(struct incoming *in)
{
    if (!in->max_is_quota) {
        form_reply_too_large(in->r, in->max + 1, in->max);
        return;
    }
    meta_reply_refusal(in->r, "STORAGE_LIMIT_EXCEEDED", meta_room_detail(in->r->mem, in->max + 1, in->max));
}

static MAY_YIELD bool take_time(struct incoming *in)
{
    if (form_time(form_value(&in->form.times, 0), &in->modified))
        return true;
    reply_message(in->r, 400, "INVALID_TIME",
                  "lastModifiedTimes holds milliseconds since 1970 or an ISO 8601 time, of the years 1 to 9999");
    return false;
}

/* Fields up to the file, which must be there. A replacement keeps its name, so the one that is sent does not matter. */
static MAY_YIELD bool find_file(struct incoming *in)
{
    bool end = false;
    if (!form_open(&in->form, in->r) || !form_next_file(&in->form, &in->part, &end))
        return false;
    const char *problem = end || in->replaces ? NULL : path_name_problem_file(in->part.filename);
    if (end)
        reply_message(in->r, 400, "NO_FILE", "No file uploaded: the form has no part with a file name");
    else if (problem)
        reply_message(in->r, 400, "INVALID_NAME", "Invalid file name: %s", problem);
    return !end && !problem && take_time(in);
}

/* The rest of the body, so that fields behind the file count too and a cut body is noticed before anything is named. */
static MAY_YIELD bool finish_form(struct incoming *in)
{
    struct multipart_part part;
    bool end = false;
    if (!form_next_file(&in->form, &part, &end))
        return false;
    if (!end) {
        reply_message(in->r, 400, "UNEXPECTED_FILE", "One file a request: POST /api/files/upload/bulk takes many");
        return false;
    }
    return take_time(in);
}

/* The file part is open: gets its content into the store. */
static MAY_YIELD bool take_file(struct incoming *in)
{
    const struct content_source src = form_source(&in->form);
    struct content_body *body = NULL;
    struct errinfo ei = {0};
    enum err e = content_receive(in->r->server, in->who.account_id, &src, multipart_bytes_left(in->form.m),
                                 (uint64_t)in->max, &body, &ei);
    if (e == ERR_LIMIT) {
        reply_over_bound(in);
        return false;
    }
    if (e == ERR_OK && !finish_form(in)) {
        content_discard(&body);
        return false;
    }
    if (e == ERR_OK)
        e = content_put(&body, &in->object, &ei);
    if (e != ERR_OK)
        form_reply_failure(in->r, e, &ei);
    return e == ERR_OK;
}

/* Names the object. What no row names in the end is deleted: the new object after a refusal, the old one after a
 * replacement. */
static MAY_YIELD void commit(struct incoming *in)
{
    struct request *r = in->r;
    const struct meta_upload item = {in->form.parent_id, in->part.filename.p, form_mime(r, &in->part),
                                     in->object.key,     in->object.size,     in->modified};
    struct meta_result res = {0};
    struct errinfo ei = {0};
    enum err e = in->replaces ? meta_replace_commit(r->server, &in->who, in->replaces, &in->guard, &item, NULL, r->mem,
                                                    &res, &ei)
                              : meta_upload_commit(r->server, &in->who, &item, 1, NULL, r->mem, &res, &ei);
    const struct meta_change *no = e == ERR_OK ? meta_refusal(&res) : NULL;
    if (e == ERR_DB_GONE)
        sweeper_doubt(r->server, &in->object);
    else if (e == ERR_OK && !no)
        content_keep(r->server, &in->object);
    else
        content_drop(r->server, &in->object);
    if (e != ERR_OK) {
        reply_error(r, &ei);
    } else if (no) {
        meta_reply_refusal(r, no->refused, no->detail);
    } else {
        meta_reply_file(r, 200, &res.rows[0].file);
        if (!fault_hit(r->server, FAULT_ORPHAN_OBJECT))
            content_delete(r->server, res.rows[0].keys, res.rows[0].n_keys);
    }
}

/* Who waits for a word before the body, with "Expect" or without, is judged by the head alone; others are sending
 * already, and the part's head, which tells the exact size, is here or will be in a moment. */
static MAY_YIELD void take_in(struct incoming *in)
{
    bool by_head = in->r->expect_100 || !req_body_comes(in->r, BODY_MOMENT_US);
    if ((by_head && !admit(in, least_bytes(in->r))) || !find_file(in))
        return;
    int64_t bytes = multipart_bytes_left(in->form.m);
    if (admit(in, bytes > 0 ? bytes : 0) && set_bound(in) && take_file(in))
        commit(in);
}

static MAY_YIELD void handle_upload(struct request *r)
{
    struct incoming in = incoming_of(r);
    take_in(&in);
}

static MAY_YIELD void handle_replace(struct request *r)
{
    struct incoming in = incoming_of(r);
    in.replaces = r->params[0];
    struct strings tags = form_if_match(r);
    struct sv lock = sv_trim(req_header(r, "X-Lock-Id"));
    in.guard = (struct meta_guard){tags.items, tags.n, lock.n ? arena_strndup(r->mem, lock.p, lock.n) : NULL};
    take_in(&in);
}

static MAY_YIELD void handle_check(struct request *r)
{
    struct incoming in = incoming_of(r);
    struct json *j = NULL;
    int64_t bytes = -1;
    if (req_json(r, &j) != ERR_OK)
        return;
    if (!json_i64(json_get(j, "fileSize"), &bytes) || bytes < 0) {
        reply_validation(r, "fileSize", "fileSize must be a number of bytes");
        return;
    }
    if (admit(&in, bytes))
        reply_text(r, 200, "application/json; charset=utf-8", SV("{\"allowed\":true}"));
}

const struct route routes_upload[] = {
    {"POST", "/api/files/upload/check", PERM(UPLOAD), 0, handle_check},
    {"POST", "/api/files/upload", PERM(UPLOAD), ROUTE_UPLOAD_BUDGET | ROUTE_NEEDS_STORE, handle_upload},
    {"POST", "/api/files/:id/replace", PERM(EDIT), ROUTE_UPLOAD_BUDGET | ROUTE_NEEDS_STORE, handle_replace},
    {0},
};
