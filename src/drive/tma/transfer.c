/* Uploads and downloads of the tma dialect. Bodies are made while they are sent and judged while they arrive: none is
 * ever whole in memory. */
#include "drive/tma/transfer.h"
#include "base/mem.h"
#include "drive/api/ranged.h"
#include "drive/path.h"
#include <stdio.h>
#include <string.h>

#define STAMP_LEN 32
#define EXT_LEN   16

static int64_t fill_part(void *arg, uint64_t offset, char *dst, size_t cap)
{
    return content_pull(arg, NULL, offset, dst, cap);
}

/* The same, counted. */
struct counted {
    const struct content *content;
    uint64_t *taken;
};

static int64_t fill_counted(void *arg, uint64_t offset, char *dst, size_t cap)
{
    const struct counted *c = arg;
    return content_pull(c->content, c->taken, offset, dst, cap);
}

static const char *mime_of(const char *name)
{
    char ext[EXT_LEN];
    struct sv e = path_extension(sv_of(name));
    if (e.n >= sizeof ext)
        return content_mime("");
    memcpy(ext, e.p, e.n);
    ext[e.n] = '\0';
    return content_mime(ext);
}

static struct http_part file_part(const char *field, const char *name, const struct content *c)
{
    struct http_part part = {
        .name = field, .filename = name, .type = mime_of(name), .read = fill_part, .size = (int64_t)c->size};
    union {
        const struct content *borrowed;
        void *arg;
    } u = {.borrowed = c};
    part.arg = u.arg; /* fill_part only reads it */
    return part;
}

static struct http_part text_part(const char *field, const char *text)
{
    return (struct http_part){.name = field, .value = sv_of(text)};
}

static const char *stamp(char dst[STAMP_LEN], struct wall t)
{
    dst[0] = '\0';
    return t.us ? wall_format(dst, STAMP_LEN, t) : dst;
}

enum err tma_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                    struct api_result *r)
{
    struct buf path;
    struct http_part parts[3];
    size_t n = 0;
    char at[STAMP_LEN];
    struct counted counted = {u->content, u->taken};
    if (u->parent_id)
        parts[n++] = text_part("parentId", u->parent_id);
    if (u->modified.us)
        parts[n++] = text_part("lastModifiedTimes", stamp(at, u->modified));
    parts[n] = file_part("file", u->name, u->content);
    if (u->taken) {
        parts[n].read = fill_counted;
        parts[n].arg = &counted;
    }
    n++;
    tma_path(&path, "/api/files/upload", NULL, NULL);
    const struct tma_call c = {.method = "POST",
                               .path = &path,
                               .parts = parts,
                               .n_parts = n,
                               .transfer_bytes = u->content->size,
                               .write = true};
    return tma_call_file(a, &c, mem, out, r);
}

enum err tma_replace(struct api *a, const char *id, const char *name, const char *version, const char *lock_id,
                     const struct content *content, struct arena *mem, struct drive_file *out, struct api_result *r)
{
    struct buf path;
    struct http_part part = file_part("file", name, content);
    char match[DRIVE_ID_MAX + 32], lock[DRIVE_ID_MAX + 32];
    tma_path(&path, "/api/files/", id, "/replace");
    struct tma_call c = {
        .method = "POST", .path = &path, .parts = &part, .n_parts = 1, .transfer_bytes = content->size, .write = true};
    size_t n = 0;
    if (version) {
        snprintf(match, sizeof match, "If-Match: \"%s\"", version);
        c.headers[n++] = match;
    }
    if (lock_id) {
        snprintf(lock, sizeof lock, WIRE_LOCK_HEADER ": %s", lock_id);
        c.headers[n++] = lock;
    }
    return tma_call_file(a, &c, mem, out, r);
}

/* The parts of a bulk upload: fields first, each kind repeated once a file so that they join by ordinal. */
struct bulk {
    struct http_part *parts;
    size_t n;
    char (*stamps)[STAMP_LEN];
    char (*ordinals)[24];
    uint64_t bytes;
};

static const char *client_id(const struct bulk *b, const struct api_upload *u, size_t i)
{
    return u[i].client_id ? u[i].client_id : b->ordinals[i];
}

static void bulk_make(struct bulk *b, const struct api_upload *u, size_t n)
{
    b->parts = mem_zalloc((3 * n + 1) * sizeof *b->parts);
    b->stamps = mem_zalloc(n * sizeof *b->stamps);
    b->ordinals = mem_zalloc(n * sizeof *b->ordinals);
    if (u[0].parent_id)
        b->parts[b->n++] = text_part("parentId", u[0].parent_id);
    for (size_t i = 0; i < n; i++) {
        snprintf(b->ordinals[i], sizeof b->ordinals[i], "%zu", i);
        b->parts[b->n++] = text_part("clientIds", client_id(b, u, i));
    }
    for (size_t i = 0; i < n; i++)
        b->parts[b->n++] = text_part("lastModifiedTimes", stamp(b->stamps[i], u[i].modified));
    for (size_t i = 0; i < n; i++) {
        b->parts[b->n++] = file_part("files", u[i].name, u[i].content);
        b->bytes += u[i].content->size;
    }
}

static void bulk_done(struct bulk *b)
{
    mem_free(b->parts);
    mem_free(b->stamps);
    mem_free(b->ordinals);
}

/* Which upload an item of the answer is about: its clientId, or its place when the answer names none. */
static size_t item_index(const struct bulk *b, const struct api_upload *u, size_t n, const struct json *item,
                         size_t place)
{
    const char *id = json_str(json_get(item, "clientId"));
    for (size_t i = 0; id && i < n; i++) {
        size_t at = (place + i) % n; /* almost always in order */
        if (strcmp(client_id(b, u, at), id) == 0)
            return at;
    }
    return id ? n : place;
}

static void first_failure(const struct json *failed, struct api_result *r)
{
    const char *why = json_str(json_get(json_first(failed), "error"));
    api_reason(r, why ? why : "no reason given");
}

static enum err bulk_read(const struct bulk *b, const struct api_upload *u, size_t n, const struct json *j,
                          struct arena *mem, struct drive_file *outs, struct api_result *r)
{
    const struct json *files = json_get(j, "files"), *failed = json_get(j, "failed");
    size_t place = 0, got = 0;
    if (!json_is_array(files))
        return api_wrong(r, "the answer lists no files");
    for (const struct json *it = json_first(files); it; it = json_next(it), place++) {
        size_t i = item_index(b, u, n, it, place);
        struct drive_file f;
        if (i >= n || !wire_file(it, mem, &f))
            return api_wrong(r, "the answer lists a file that was not sent");
        outs[i] = f;
        got++;
    }
    if (json_count(failed))
        first_failure(failed, r);
    if (got == 0)
        r->outcome = OUT_CLIENT;
    return ERR_OK;
}

enum err tma_upload_bulk(struct api *a, const struct api_upload *u, size_t n, struct arena *mem,
                         struct drive_file *outs, struct api_result *r)
{
    struct buf path;
    struct bulk b = {0};
    struct json *j;
    memset(outs, 0, n * sizeof *outs);
    bulk_make(&b, u, n);
    tma_path(&path, "/api/files/upload/bulk", NULL, NULL);
    const struct tma_call c = {.method = "POST",
                               .path = &path,
                               .parts = b.parts,
                               .n_parts = b.n,
                               .transfer_bytes = b.bytes,
                               .write = true,
                               .cap = API_CAP_BULK};
    enum err err = tma_call_json(a, &c, &j, r);
    if (j)
        err = bulk_read(&b, u, n, j, mem, outs, r);
    json_free(&j);
    bulk_done(&b);
    return err;
}

enum err tma_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                      int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out, size_t version_n,
                      struct api_result *r)
{
    struct buf path;
    struct http_resp resp = {0};
    struct sv etag;
    char range[80];
    struct ranged d = ranged_of(offset, length, &resp, sink, arg);
    tma_path(&path, "/api/files/", id, "/download");
    struct tma_call c = {.method = "GET", .path = &path, .sink = ranged_sink, .sink_arg = &d};
    /* A sink that stalls nothing: the size is not known here, so the whole transfer gets the time of a large one. */
    c.transfer_bytes = length ? length : UINT64_C(1) << 30;
    if (d.ranged) {
        ranged_header(range, sizeof range, offset, length);
        c.headers[0] = range;
    }
    enum err err = tma_call(a, &c, &resp, r);
    if (!err && d.ranged && resp.status == 200)
        a->caps &= ~(unsigned)API_CAP_RANGES;
    if (version_out && version_n) {
        version_out[0] = '\0';
        if (!err && r->outcome == OUT_OK && wire_etag(http_resp_header(&resp, "ETag"), &etag) && etag.n < version_n)
            snprintf(version_out, version_n, SV_FMT, SV_ARG(etag));
    }
    http_resp_done(&resp);
    return err;
}
