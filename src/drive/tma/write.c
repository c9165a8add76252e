/* The writing calls of the tma dialect that carry no file body. */
#include "drive/tma/write.h"
#include "base/mem.h"
#include "drive/tma/read.h"
#include <stdio.h>
#include <string.h>

/* A JSON body being written; every field after the first call to body(). */
struct body {
    struct buf text;
    struct jsonw w;
};

static void body_begin(struct body *b)
{
    buf_init(&b->text, TMA_JSON_MAX);
    jsonw_init(&b->w, &b->text);
    jsonw_object(&b->w, NULL);
}

static struct tma_call post(struct buf *path, struct body *b)
{
    jsonw_end_object(&b->w);
    return (struct tma_call){.method = "POST", .path = path, .json = &b->text, .write = true};
}

enum err tma_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                           struct drive_file *out, struct api_result *r)
{
    struct body b;
    struct buf path;
    body_begin(&b);
    jsonw_str(&b.w, "name", name);
    if (parent)
        jsonw_str(&b.w, "parentId", parent);
    tma_path(&path, "/api/files/folder", NULL, NULL);
    struct tma_call c = post(&path, &b);
    return tma_call_file(a, &c, mem, out, r);
}

enum err tma_rename(struct api *a, const char *id, const char *name, struct arena *mem, struct drive_file *out,
                    struct api_result *r)
{
    struct body b;
    struct buf path;
    body_begin(&b);
    jsonw_str(&b.w, "id", id);
    jsonw_str(&b.w, "name", name);
    tma_path(&path, "/api/files/rename", NULL, NULL);
    struct tma_call c = post(&path, &b);
    return tma_call_file(a, &c, mem, out, r);
}

/* A file that is surely there and whose lock path is not: the server has no locks. Asked only until the first lock. */
static MAY_YIELD void judge_missing_lock(struct api *a, const char *id, struct api_result *r)
{
    struct api_result info;
    struct arena *mem = arena_new(1024);
    if (tma_info(a, id, mem, NULL, NULL, &info) == ERR_OK && info.status == 200) {
        a->caps &= ~(unsigned)API_CAP_LOCKS;
        snprintf(r->code, sizeof r->code, "%s", API_CODE_ABSENT);
    }
    arena_free(&mem);
}

static bool copy_field(const struct json *j, const char *key, char *dst, size_t n)
{
    const char *s = json_str(json_get(j, key));
    return s && *s && (size_t)snprintf(dst, n, "%s", s) < n;
}

enum err tma_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id, struct api_lock *out,
                  struct api_result *r)
{
    struct body b;
    struct buf path;
    struct json *j;
    char renew[2 * DRIVE_ID_MAX];
    memset(out, 0, sizeof *out);
    body_begin(&b);
    if (ttl_s)
        jsonw_i64(&b.w, "ttlSeconds", ttl_s);
    tma_path(&path, "/api/files/", id, "/lock");
    struct tma_call c = post(&path, &b);
    c.cap = API_CAP_LOCKS;
    if (renew_lock_id) {
        snprintf(renew, sizeof renew, WIRE_LOCK_HEADER ": %s", renew_lock_id);
        c.headers[0] = renew;
    }
    enum err err = tma_call_json(a, &c, &j, r);
    if (j) {
        const char *expires = json_str(json_get(j, "expiresAt"));
        a->locks_seen = true;
        if (!copy_field(j, "lockId", out->id, sizeof out->id))
            err = api_wrong(r, "the answer names no lock");
        copy_field(j, "version", out->version, sizeof out->version);
        if (!expires || !wall_parse(expires, &out->expires))
            out->expires.us = 0;
    } else if (!err && r->status == 423) {
        a->locks_seen = true;
    } else if (!err && r->status == 404 && !tma_is_absent(r) && !a->locks_seen) {
        judge_missing_lock(a, id, r);
    }
    json_free(&j);
    return err;
}

enum err tma_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r)
{
    struct buf path;
    struct http_resp resp;
    char header[2 * DRIVE_ID_MAX];
    tma_path(&path, "/api/files/", id, "/lock");
    snprintf(header, sizeof header, WIRE_LOCK_HEADER ": %s", lock_id);
    struct tma_call c = {.method = "DELETE", .path = &path, .write = true, .cap = API_CAP_LOCKS, .headers = {header}};
    enum err err = tma_call(a, &c, &resp, r);
    http_resp_done(&resp);
    return err;
}

/* {"ids": [...]} and, with parent_set, {"parentId": id or null}; the answer may name a job. */
static MAY_YIELD enum err post_ids(struct api *a, const char *to, const char *const *ids, size_t n, bool parent_set,
                                   const char *parent, struct api_job *job, struct api_result *r)
{
    struct body b;
    struct buf path;
    struct json *j;
    body_begin(&b);
    jsonw_array(&b.w, "ids");
    for (size_t i = 0; i < n; i++)
        jsonw_str(&b.w, NULL, ids[i]);
    jsonw_end_array(&b.w);
    if (parent_set)
        jsonw_str(&b.w, "parentId", parent);
    tma_path(&path, to, NULL, NULL);
    struct tma_call c = post(&path, &b);
    if (job)
        *job = (struct api_job){.count = -1, .items_done = -1, .items_total = -1};
    enum err err = tma_call_json(a, &c, &j, r);
    if (j && job) {
        copy_field(j, "jobId", job->id, sizeof job->id);
        job->done = !job->id[0];
    }
    json_free(&j);
    return err;
}

enum err tma_move(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_result *r)
{
    return post_ids(a, "/api/files/move", ids, n, true, parent, NULL, r);
}

enum err tma_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                  struct api_result *r)
{
    return post_ids(a, "/api/files/copy", ids, n, true, parent, job, r);
}

enum err tma_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    return post_ids(a, "/api/files/delete", ids, n, false, NULL, job, r);
}

enum err tma_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    return post_ids(a, "/api/files/trash/restore", ids, n, false, NULL, job, r);
}

enum err tma_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    return post_ids(a, "/api/files/trash/delete", ids, n, false, NULL, job, r);
}
