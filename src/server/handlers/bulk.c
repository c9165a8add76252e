/* Many files in one request. Each body is taken in as it comes and put into the store while the next one is read, a few
 * at a time; when all are there, one call names them all. A file that fails does not stop the others: the answer lists
 * it. Folders of relativePaths are made where they are missing. */
#include "base/log.h"
#include "base/mem.h"
#include "drive/path.h"
#include "server/http/route.h"
#include "server/http/upload_form.h"
#include "server/meta/calls.h"
#include "server/objects/sweeper.h"

#include <string.h>

#define PUTS_AT_ONCE 8
/* Framing of many parts: a bulk's size is judged by Content-Length alone only when it is far above the room. */
#define BULK_FRAMING_MAX (INT64_C(1) << 20)
#define FOLDERS_MAX      100 /* on a relative path: deeper than any tree may be */

struct bulk;
struct bulk_item {
    struct bulk *bulk;
    const char *name, *mime;
    struct content_body *body;    /* taken in, not yet put */
    struct content_object object; /* put, not yet named */
    struct meta_upload upload;
    const struct meta_file *file; /* named */
    /* why it failed; status 0: it did not */
    int status;
    const char *code, *why, *detail;
};
struct bulk_folder { /* a relative path that was made, or why it could not be */
    struct bulk_folder *next;
    const char *path, *id;
    const char *code, *detail;
};
struct bulk {
    struct request *r;
    struct meta_who who;
    struct upload_form form;
    struct bulk_item **items;
    size_t n, cap;
    int64_t room, taken; /* bytes the account has room for, or META_NO_LIMIT; taken by this request so far */
    struct sem puts;
    struct group group;
    struct bulk_folder *folders;
};

/* ---- failing ---- */

static void item_fail(struct bulk_item *it, int status, const char *code, const char *why)
{
    it->status = status;
    it->code = code;
    it->why = why;
}

static void item_refuse(struct bulk_item *it, const char *code, const char *detail)
{
    struct arena *mem = it->bulk->r->mem;
    item_fail(it, meta_refusal_status(code), code, meta_refusal_text(mem, code, detail));
    it->detail = detail;
}

/* What a failed transfer means for one file; what ends the request is not asked here. */
static void item_fail_transfer(struct bulk_item *it, enum err e, const struct errinfo *ei)
{
    const char *why = arena_strdup(it->bulk->r->mem, err_message(ei));
    LOGW("upload", "bulk: %s", why);
    if (e == ERR_FULL)
        item_fail(it, 507, "INSUFFICIENT_STORAGE", "The server's disk for temporary files is full");
    else if (e == ERR_STORE)
        item_fail(it, 503, "STORAGE_UNAVAILABLE", "The object store cannot be reached at the moment");
    else
        item_fail(it, 500, "INTERNAL_ERROR", "Internal server error");
}

static void item_fail_size(struct bulk_item *it, int64_t max)
{
    struct bulk *b = it->bulk;
    const char *detail = meta_room_detail(b->r->mem, max + 1, max);
    if (max < b->r->server->conf->max_upload_bytes) {
        item_refuse(it, "STORAGE_LIMIT_EXCEEDED", detail);
        return;
    }
    item_fail(it, 413, "FILE_TOO_LARGE", "The file is larger than this server allows");
    it->detail = detail;
}

/* ---- taking in ---- */

static struct bulk_item *item_add(struct bulk *b, const struct multipart_part *part)
{
    struct arena *mem = b->r->mem;
    struct bulk_item *it = arena_alloc(mem, sizeof(*it));
    *it = (struct bulk_item){.bulk = b, .name = part->filename.p, .mime = form_mime(b->r, part)};
    if (b->n == b->cap) {
        struct bulk_item **old = b->items;
        b->cap = b->cap ? 2 * b->cap : 32;
        b->items = arena_alloc(mem, b->cap * sizeof(struct bulk_item *));
        if (b->n > 0)
            memcpy(b->items, old, b->n * sizeof(struct bulk_item *));
    }
    b->items[b->n++] = it;
    return it;
}

static void put_item(void *arg)
{
    struct bulk_item *it = arg;
    struct errinfo ei = {0};
    enum err e = content_put(&it->body, &it->object, &ei);
    if (e != ERR_OK)
        item_fail_transfer(it, e, &ei);
    sem_give(&it->bulk->puts, 1);
}

/* The part is open. False when the request itself is broken or its client gone: answered then. */
static MAY_YIELD bool take_item(struct bulk *b, struct bulk_item *it)
{
    const struct content_source src = form_source(&b->form);
    struct server *s = b->r->server;
    struct errinfo ei = {0};
    int64_t max = s->conf->max_upload_bytes;
    const char *problem = path_name_problem_file(sv_of(it->name));
    if (problem) { /* the content is passed over with the part */
        item_fail(it, 400, "INVALID_NAME", problem);
        return true;
    }
    if (b->room - b->taken < max)
        max = b->room > b->taken ? b->room - b->taken : 0;
    /* A place among the puts first: so many bodies at most wait in memory. */
    sem_take(s->loop, &b->puts, 1);
    enum err e = content_receive(s, b->who.account_id, &src, -1, (uint64_t)max, &it->body, &ei);
    if (e == ERR_OK) {
        b->taken += (int64_t)content_body_size(it->body);
        group_spawn(s->loop, &b->group, put_item, it);
        return true;
    }
    sem_give(&b->puts, 1);
    switch (e) {
    case ERR_LIMIT:
        item_fail_size(it, max);
        return true;
    case ERR_FULL:
    case ERR_STORE:
    case ERR_IO:
        item_fail_transfer(it, e, &ei);
        return true;
    default:
        form_reply_failure(b->r, e, &ei);
        return false;
    }
}

/* Before the first body: what the account has room for, and whether the folder is there. */
static MAY_YIELD bool admit(struct bulk *b)
{
    struct request *r = b->r;
    struct errinfo ei;
    int64_t least = r->content_length - BULK_FRAMING_MAX;
    if (meta_room(r->server, &b->who, &b->room, &ei) != ERR_OK) {
        reply_error(r, &ei);
        return false;
    }
    if (least <= b->room)
        return true;
    meta_reply_refusal(r, "STORAGE_LIMIT_EXCEEDED", meta_room_detail(r->mem, least, b->room));
    return false;
}

static MAY_YIELD bool admit_parent(struct bulk *b)
{
    struct meta_result res = {0};
    struct errinfo ei;
    enum err e = meta_upload_check(b->r->server, &b->who, b->form.parent_id, 0, b->r->mem, &res, &ei);
    const struct meta_change *no = e == ERR_OK ? meta_refusal(&res) : NULL;
    if (e != ERR_OK)
        reply_error(b->r, &ei);
    else if (no)
        meta_reply_refusal(b->r, no->refused, no->detail);
    return e == ERR_OK && !no;
}

static MAY_YIELD bool take_all(struct bulk *b)
{
    struct multipart_part part;
    bool end = false;
    if (!form_open(&b->form, b->r))
        return false;
    for (;;) {
        if (!form_next_file(&b->form, &part, &end))
            return false;
        if (end)
            break;
        if (b->n == 0 && !admit_parent(b))
            return false;
        if (!take_item(b, item_add(b, &part)))
            return false;
    }
    if (b->n == 0)
        reply_message(b->r, 400, "NO_FILE", "No file uploaded: the form has no part with a file name");
    return b->n > 0;
}

/* ---- naming ---- */

/* "a/b/c.txt" -> {"a", "b"}; empty steps do not count. False when a name is not allowed or there are too many. */
static bool split_folders(struct arena *mem, const char *path, const char **names, size_t *n, const char **problem)
{
    struct sv rest = sv_of(path), step;
    const char *slash = strrchr(path, '/');
    *n = 0;
    rest.n = slash ? (size_t)(slash - path) : 0;
    while (sv_split(&rest, '/', &step)) {
        if (step.n == 0)
            continue;
        *problem = *n == FOLDERS_MAX ? "the path has too many levels" : path_name_problem_folder(step);
        if (*problem)
            return false;
        names[(*n)++] = arena_strndup(mem, step.p, step.n);
    }
    return true;
}

static MAY_YIELD struct bulk_folder *make_folder(struct bulk *b, const char *path, const char *const *names, size_t n)
{
    struct arena *mem = b->r->mem;
    struct bulk_folder *f = arena_alloc(mem, sizeof(*f));
    struct meta_result res = {0};
    struct errinfo ei;
    *f = (struct bulk_folder){.next = b->folders, .path = path};
    b->folders = f;
    enum err e = meta_folder_path(b->r->server, &b->who, b->form.parent_id, names, n, mem, &res, &ei);
    const struct meta_change *no = e == ERR_OK ? meta_refusal(&res) : NULL;
    if (e != ERR_OK) {
        LOGE("upload", "bulk: folder: %s", err_message(&ei));
        f->code = e == ERR_DB_GONE ? "DATABASE_UNAVAILABLE" : "INTERNAL_ERROR";
    } else if (no) {
        f->code = no->refused;
        f->detail = no->detail;
    } else {
        f->id = res.rows[res.n - 1].file.id;
    }
    return f;
}

/* The folder that the file of that ordinal goes into. False: it cannot be had, and the item says why. */
static MAY_YIELD bool find_parent(struct bulk *b, size_t ordinal, struct bulk_item *it, const char **parent_id)
{
    const char *path = form_value(&b->form.paths, ordinal), *names[FOLDERS_MAX], *problem = NULL;
    size_t n = 0;
    *parent_id = b->form.parent_id;
    if (!path)
        return true;
    if (!split_folders(b->r->mem, path, names, &n, &problem)) {
        item_fail(it, 400, "INVALID_NAME", problem);
        return false;
    }
    if (n == 0)
        return true;
    const char *slash = strrchr(path, '/');
    const char *folder = arena_strndup(b->r->mem, path, (size_t)(slash - path));
    struct bulk_folder *f = b->folders; /* files of one folder mostly follow each other */
    while (f && strcmp(f->path, folder) != 0)
        f = f->next;
    if (!f)
        f = make_folder(b, folder, names, n);
    *parent_id = f->id;
    if (!f->id)
        item_refuse(it, f->code, f->detail);
    return f->id != NULL;
}

/* Fills in what the row of a file needs. False: this file fails. */
static MAY_YIELD bool prepare(struct bulk *b, size_t ordinal, struct bulk_item *it)
{
    struct meta_upload *u = &it->upload;
    *u = (struct meta_upload){.name = it->name, .mime_type = it->mime, .path = it->object.key, .size = it->object.size};
    if (!form_time(form_value(&b->form.times, ordinal), &u->modified)) {
        item_fail(it, 400, "INVALID_TIME", "lastModifiedTimes holds milliseconds since 1970 or an ISO 8601 time");
        return false;
    }
    return find_parent(b, ordinal, it, &u->parent_id);
}

/* One call for all that are ready. False when it failed as a whole: answered then. */
static MAY_YIELD bool name_all(struct bulk *b)
{
    struct arena *mem = b->r->mem;
    struct bulk_item **ready = arena_alloc(mem, (b->n + 1) * sizeof(struct bulk_item *));
    struct meta_upload *uploads = arena_alloc(mem, (b->n + 1) * sizeof(*uploads));
    struct meta_result res = {0};
    struct errinfo ei = {0};
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (!b->items[i]->status && prepare(b, i, b->items[i])) {
            uploads[n] = b->items[i]->upload;
            ready[n++] = b->items[i];
        }
    if (n == 0)
        return true;
    enum err e = meta_upload_commit(b->r->server, &b->who, uploads, n, NULL, mem, &res, &ei);
    if (e != ERR_OK) {
        for (size_t i = 0; e == ERR_DB_GONE && i < n; i++)
            sweeper_doubt(b->r->server, &ready[i]->object);
        reply_error(b->r, &ei);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const struct meta_change *c = &res.rows[i < res.n ? i : 0]; /* one row alone refuses them all */
        if (c->refused) {
            item_refuse(ready[i], c->refused, c->detail);
            continue;
        }
        ready[i]->file = &c->file;
        content_keep(b->r->server, &ready[i]->object);
    }
    return true;
}

/* ---- the answer ---- */

static void write_failure(struct jsonw *w, const struct bulk_item *it, const char *client_id)
{
    jsonw_object(w, NULL);
    jsonw_str(w, "fileName", it->name);
    jsonw_str(w, "error", it->why);
    jsonw_str(w, "code", it->code);
    if (client_id)
        jsonw_str(w, "clientId", client_id);
    jsonw_end_object(w);
}

/* When nothing came through, the first failure speaks for the request, figures included. */
static void write_reason(struct jsonw *w, const struct bulk_item *first)
{
    struct json *d = NULL;
    int64_t required, available;
    jsonw_str(w, "message", first->why);
    jsonw_str(w, "error", first->code);
    if (!first->detail || json_parse(first->detail, strlen(first->detail), &d, NULL) != ERR_OK)
        return;
    if (json_i64(json_get(d, "required"), &required))
        jsonw_i64(w, "required", required);
    if (json_i64(json_get(d, "available"), &available))
        jsonw_i64(w, "available", available);
    json_free(&d);
}

static MAY_YIELD void reply_bulk(struct bulk *b)
{
    struct buf json = BUF_INIT(64 << 20);
    struct jsonw w;
    const struct bulk_item *first = NULL;
    size_t done = 0;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "files");
    for (size_t i = 0; i < b->n; i++) {
        const struct bulk_item *it = b->items[i];
        if (!it->file) {
            first = first ? first : it;
            continue;
        }
        done++;
        jsonw_object(&w, NULL);
        meta_file_fields(&w, it->file);
        if (form_value(&b->form.client_ids, i))
            jsonw_str(&w, "clientId", form_value(&b->form.client_ids, i));
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_array(&w, "failed");
    for (size_t i = 0; i < b->n; i++)
        if (!b->items[i]->file)
            write_failure(&w, b->items[i], form_value(&b->form.client_ids, i));
    jsonw_end_array(&w);
    jsonw_i64(&w, "total", (int64_t)b->n);
    jsonw_i64(&w, "successful", (int64_t)done);
    jsonw_i64(&w, "failedCount", (int64_t)(b->n - done));
    if (done == 0)
        write_reason(&w, first);
    jsonw_end_object(&w);
    reply_json(b->r, done > 0 ? 200 : first->status, &json);
    buf_done(&json);
}

/* Deletes the objects that no row names, all in one call. */
static MAY_YIELD void drop_rest(struct bulk *b)
{
    const char **keys = arena_alloc(b->r->mem, (b->n + 1) * sizeof(*keys));
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i]->object.key[0])
            keys[n++] = b->items[i]->object.key;
    content_delete(b->r->server, keys, n);
    for (size_t i = 0; i < n; i++)
        content_settle(b->r->server, keys[i]);
}

static MAY_YIELD void handle_bulk(struct request *r)
{
    struct bulk b = {.r = r, .who = meta_who(&r->login)};
    sem_init_coro(&b.puts, PUTS_AT_ONCE);
    bool ok = admit(&b) && take_all(&b);
    group_wait(r->server->loop, &b.group);
    if (ok && name_all(&b))
        reply_bulk(&b);
    drop_rest(&b);
}

const struct route routes_bulk[] = {
    {"POST", "/api/files/upload/bulk", PERM(UPLOAD), ROUTE_UPLOAD_BUDGET | ROUTE_NEEDS_STORE, handle_bulk},
    {0},
};
