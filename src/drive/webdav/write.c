/* The writing calls of the webdav dialect but for saves. Nothing is overwritten that was not meant: new things carry
 * If-None-Match or Overwrite: F, and a taken name gets " (1)" as the app's own server would give it. */
#include "drive/webdav/write.h"
#include "base/mem.h"
#include "drive/path.h"
#include "drive/webdav/cloud.h"
#include "drive/webdav/read.h"
#include <stdio.h>
#include <string.h>

#define NUMBERS_MAX 50 /* " (50)": then somebody else's reason is behind it */

static void exists(struct api_result *r)
{
    r->outcome = OUT_CONFLICT;
    r->status = 409;
    snprintf(r->code, sizeof r->code, "EXISTS");
    snprintf(r->reason, sizeof r->reason, "that name is taken");
}

static const char *numbered(struct arena *mem, const char *name, unsigned number)
{
    char *text = arena_alloc(mem, DRIVE_NAME_MAX + 1);
    if (number == 0)
        return name;
    path_numbered(text, DRIVE_NAME_MAX + 1, name, number, DRIVE_NAME_MAX);
    return text;
}

/* ---- new folders ---- */

enum err webdav_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                              struct drive_file *out, struct api_result *r)
{
    struct buf path;
    if (!dav_path(a, parent, true, &path, r))
        return ERR_OK;
    enum err err = str_url_encode(&path, sv_of(name), "");
    if (!err)
        err = buf_append_char(&path, '/');
    err = dav_perform(a, &(struct dav_call){.method = "MKCOL", .path = &path, .write = true}, r);
    if (!err && r->status == 405)
        exists(r);
    if (!err && r->outcome == OUT_OK)
        (void)dav_look_at_new(a, parent, name, true, mem, out);
    return err;
}

/* ---- uploads ---- */

static MAY_YIELD enum err put_new(struct api *a, const struct api_upload *u, const char *name, const char *sum,
                                  struct api_result *r)
{
    struct buf path;
    char mtime[48];
    if (!dav_path(a, u->parent_id, true, &path, r))
        return ERR_OK;
    enum err err = str_url_encode(&path, sv_of(name), "");
    (void)err; /* cut: refused by the server as too long */
    struct dav_call c = {.method = "PUT",
                         .path = &path,
                         .headers = {"If-None-Match: *"},
                         .content = u->content,
                         .taken = u->taken,
                         .transfer_bytes = u->content->size,
                         .write = true};
    size_t n = 1;
    if (u->modified.us) { /* what the clouds take; others pass it over */
        snprintf(mtime, sizeof mtime, "X-OC-Mtime: %lld", (long long)(u->modified.us / US_PER_S));
        c.headers[n++] = mtime;
    }
    c.headers[n++] = sum;
    err = dav_perform(a, &c, r);
    if (!err && r->status == 412)
        exists(r);
    return err;
}

/* What was acknowledged is there as it was sent: by its size, and by its checksum where the server tells one. */
static enum err judge_stored(const struct api_upload *u, const char *sum, const struct dav_look *look,
                             struct api_result *r)
{
    bool whole = !look->found || look->size < 0 || (uint64_t)look->size == u->content->size;
    if (whole && dav_checksum_fits(look->checksums, sum))
        return ERR_OK;
    if (!whole)
        snprintf(r->reason, sizeof r->reason, "%llu bytes were sent, %lld are stored",
                 (unsigned long long)u->content->size, (long long)look->size);
    else
        snprintf(r->reason, sizeof r->reason, "the server reports another checksum than the one sent: %.100s",
                 look->checksums);
    r->outcome = OUT_WRONG;
    r->err = ERR_WRONG;
    return ERR_WRONG;
}

enum err webdav_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                       struct api_result *r)
{
    char header[DAV_CHECKSUM_MAX];
    const char *name = u->name, *sum = dav_checksum_header(a, u->content, header);
    struct dav_look look;
    enum err err = ERR_OK;
    for (unsigned i = 0; i <= NUMBERS_MAX && !err; i++) {
        name = numbered(mem, u->name, i);
        err = put_new(a, u, name, sum, r);
        if (err || !dav_is_name_taken(r))
            break;
    }
    if (err || r->outcome != OUT_OK)
        return err;
    look = dav_look_at_new(a, u->parent_id, name, false, mem, out);
    return judge_stored(u, sum, &look, r);
}

/* ---- rename, move, copy, delete ---- */

struct relocation {
    const char *method, *id, *parent, *name;
};

/* r->status 404 without a request when either end is gone. */
static MAY_YIELD enum err relocate(struct api *a, const struct relocation *m, struct api_result *r)
{
    struct buf path, destination;
    bool folder = names_is_folder(a->names, m->id); /* RFC 4918, 5.2: its path ends in a slash; nginx insists */
    if (!dav_path(a, m->id, folder, &path, r))
        return ERR_OK;
    if (!dav_destination(a, m->parent, m->name, folder, &destination, r)) {
        buf_done(&path);
        return ERR_OK;
    }
    bool move = strcmp(m->method, "MOVE") == 0;
    if (move)
        names_expect(a->names, m->id, m->parent, m->name);
    const struct dav_call c = {.method = m->method,
                               .path = &path,
                               .headers = {buf_cstr(&destination), "Overwrite: F", move ? NULL : "Depth: infinity"},
                               .transfer_bytes = UINT64_C(64) << 20, /* what it moves is not known here */
                               .write = true};
    enum err err = dav_perform(a, &c, r);
    buf_done(&destination);
    if (!err && r->status == 412)
        exists(r);
    if (move && r->outcome == OUT_OK)
        names_moved(a->names, m->id, m->parent, m->name);
    else if (move && r->outcome != OUT_UNKNOWN)
        names_not_moved(a->names, m->id, m->parent, m->name);
    return err;
}

enum err webdav_rename(struct api *a, const char *id, const char *name, struct arena *mem, struct drive_file *out,
                       struct api_result *r)
{
    const char *parent = names_parent(a->names, id);
    enum err err = relocate(a, &(struct relocation){"MOVE", id, parent, name}, r);
    if (!err && r->outcome == OUT_OK) {
        struct api_result look;
        if (webdav_info(a, id, mem, out, NULL, &look) || look.outcome != OUT_OK) {
            *out = (struct drive_file){.id = arena_strdup(mem, id), .size = -1}; /* others moved it meanwhile */
            out->name = arena_strdup(mem, names_name(a->names, id));
            out->parent_id = arena_strdup(mem, names_parent(a->names, id));
        }
    }
    return err;
}

/* One item to a folder, under its own name or the next free one. *name: what it became. */
static MAY_YIELD enum err relocate_freely(struct api *a, const char *method, const char *id, const char *parent,
                                          struct arena *mem, const char **name, struct api_result *r)
{
    const char *own = names_name(a->names, id);
    enum err err = ERR_OK;
    if (!own) {
        dav_missing(r);
        return ERR_OK;
    }
    own = arena_strdup(mem, own);
    const char *from = names_parent(a->names, id);
    bool here = from && parent ? strcmp(from, parent) == 0 : from == parent;
    if (here && strcmp(method, "MOVE") == 0) { /* it is there */
        *name = own;
        return webdav_info(a, id, mem, NULL, NULL, r);
    }
    for (unsigned i = here;
         /* a copy beside its source has another name: no server is asked for the same one */ i <= NUMBERS_MAX && !err;
         i++) {
        *name = numbered(mem, own, i);
        err = relocate(a, &(struct relocation){method, id, parent, *name}, r);
        if (err || !dav_is_name_taken(r))
            break;
    }
    return err;
}

enum err webdav_move(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_result *r)
{
    struct arena *mem = arena_new(2048);
    const char *name;
    enum err err = ERR_OK;
    api_result_init(r);
    for (size_t i = 0; i < n && !err && r->outcome == OUT_OK; i++) {
        err = relocate_freely(a, "MOVE", ids[i], parent, mem, &name, r);
    }
    arena_free(&mem);
    return err;
}

static void job_done(struct api_job *job)
{
    *job = (struct api_job){.done = true, .count = -1, .items_done = -1, .items_total = -1};
}

enum err webdav_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                     struct api_result *r)
{
    struct arena *mem = arena_new(2048);
    struct dav *d = dav_of(a);
    const char *name = NULL;
    enum err err = ERR_OK;
    job_done(job);
    api_result_init(r);
    for (size_t i = 0; i < n && !err && r->outcome == OUT_OK; i++) {
        err = relocate_freely(a, "COPY", ids[i], parent, mem, &name, r);
    }
    if (!err && r->outcome == OUT_OK && n == 1) {
        struct drive_file made;
        (void)dav_look_at_new(a, parent, name, false, mem, &made);
        d->copied[0] = names_id(a->names, parent, name, d->own_cloud ? made.id : NULL); /* lives on */
        job->ids = d->copied;
        job->n_ids = 1;
    }
    arena_free(&mem);
    return err;
}

enum err webdav_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    enum err err = ERR_OK;
    job_done(job);
    api_result_init(r);
    for (size_t i = 0; i < n && !err && r->outcome == OUT_OK; i++) {
        struct buf path;
        if (!dav_path(a, ids[i], names_is_folder(a->names, ids[i]), &path, r))
            return ERR_OK;
        err = dav_perform(a, &(struct dav_call){.method = "DELETE", .path = &path, .write = true}, r);
        if (!err && r->outcome == OUT_OK)
            names_drop(a->names, ids[i]);
    }
    return err;
}
