/* Downloads: a file, a part of it, or a folder as ZIP. */
#include "base/log.h"
#include "base/mem.h"
#include "server/http/disposition.h"
#include "server/http/fields.h"
#include "server/http/route.h"
#include "server/meta/meta.h"
#include "server/objects/archive.h"
#include "server/objects/content.h"
#include "server/objects/content_out.h"

#include <string.h>

#define TRIES 3

struct download {
    struct request *r;
    struct meta_who who;
    struct meta_file file;
    const char *version; /* as text */
    int status;          /* 200 or 206 */
    uint64_t first, count;
};

/* Headers that 200, 206 and 304 have in common. */
static void common_headers(const struct download *d)
{
    struct buf disposition = BUF_INIT(4096);
    reply_header(d->r, "ETag", "\"%s\"", d->version);
    reply_header(d->r, "Accept-Ranges", "bytes");
    reply_header(d->r, "Cache-Control", "private, no-cache");
    reply_header(d->r, "X-Content-Type-Options", "nosniff");
    if (disposition_write(&disposition, d->file.name) == ERR_OK)
        reply_header(d->r, "Content-Disposition", "%s", buf_cstr(&disposition));
    buf_done(&disposition);
}

/* If-Range holds a strong tag or a date (RFC 9110, 13.1.5); a date is never taken for the version that is meant. */
static bool range_counts(const struct download *d)
{
    struct sv condition = req_header(d->r, "If-Range");
    if (!condition.p)
        return true;
    return !sv_starts(sv_trim(condition), SV("W/")) && etag_listed(condition, d->version);
}

/* Decides what is sent. False: answered already (304, 416). */
static MAY_YIELD bool choose_part(struct download *d)
{
    struct request *r = d->r;
    struct sv none_match = req_header(r, "If-None-Match"), range = req_header(r, "Range");
    enum range_kind kind = RANGE_NONE;
    d->status = 200;
    d->first = 0;
    d->count = (uint64_t)d->file.size;
    if (none_match.p && etag_listed(none_match, d->version)) {
        common_headers(d);
        reply_empty(r, 304);
        return false;
    }
    if (range.p && strcmp(r->method, "GET") == 0 && range_counts(d))
        kind = range_parse(range, (uint64_t)d->file.size, &d->first, &d->count);
    if (kind == RANGE_UNSATISFIABLE) {
        reply_header(r, "Content-Range", "bytes */%lld", (long long)d->file.size);
        reply_message(r, 416, "RANGE_NOT_SATISFIABLE", "The file has only %lld bytes", (long long)d->file.size);
        return false;
    }
    if (kind == RANGE_PART)
        d->status = 206;
    return true;
}

/* FAULT_CORRUPT_DOWNLOAD: a bit of the piece is flipped. */
static MAY_YIELD enum err write_corrupted(struct request *r, struct sv piece)
{
    char *copy = mem_alloc(piece.n);
    memcpy(copy, piece.p, piece.n);
    copy[piece.n / 2] ^= 1;
    enum err e = reply_write(r, copy, piece.n);
    mem_free(copy);
    return e;
}

static MAY_YIELD void send_content(struct download *d, struct content_reader *reader)
{
    struct request *r = d->r;
    struct errinfo ei = {0};
    struct sv piece = {"", 1};
    common_headers(d);
    if (d->status == 206)
        reply_header(r, "Content-Range", "bytes %llu-%llu/%lld", (unsigned long long)d->first,
                     (unsigned long long)(d->first + d->count - 1), (long long)d->file.size);
    enum err e = reply_begin(r, d->status, d->file.mime_type ? d->file.mime_type : "application/octet-stream",
                             (int64_t)d->count);
    while (e == ERR_OK && reader && piece.n > 0) {
        e = content_next(reader, &piece, &ei);
        if (e == ERR_OK && piece.n > 0 && fault_hit(r->server, FAULT_CORRUPT_DOWNLOAD))
            e = write_corrupted(r, piece);
        else if (e == ERR_OK && piece.n > 0)
            e = reply_write(r, piece.p, piece.n);
    }
    if (e != ERR_OK && e != ERR_CLOSED)
        LOGE("download", "file %s was cut: %s", d->file.id, ei.code != ERR_OK ? err_message(&ei) : err_text(e));
    reply_end(r, e == ERR_OK);
}

static MAY_YIELD void reply_unreadable(struct download *d, enum err e, const struct errinfo *ei)
{
    if (e == ERR_STORE) {
        reply_error(d->r, ei);
        return;
    }
    LOGE("download", "file %s: %s", d->file.id, err_message(ei));
    if (e == ERR_NOTFOUND)
        reply_message(d->r, 500, "CONTENT_MISSING", "The file's content is not in the store");
    else
        reply_message(d->r, 500, "CONTENT_DAMAGED", "The file's content was altered in the store");
}

/* False: the object is gone, and perhaps because the file was replaced after its row was read. */
static MAY_YIELD bool try_send(struct download *d, bool last_try)
{
    struct content_reader *reader = NULL;
    struct errinfo ei = {0};
    if (!choose_part(d))
        return true;
    bool head = strcmp(d->r->method, "HEAD") == 0;
    enum err e =
        head ? ERR_OK
             : content_open(d->r->server, d->file.path, (uint64_t)d->file.size, d->first, d->count, &reader, &ei);
    if (e == ERR_NOTFOUND && !last_try)
        return false;
    if (e != ERR_OK) {
        reply_unreadable(d, e, &ei);
        return true;
    }
    send_content(d, reader);
    content_close(&reader);
    if (!head)
        meta_touch(d->r->server, &d->who, d->file.id);
    return true;
}

static MAY_YIELD bool find(struct download *d)
{
    struct errinfo ei;
    enum err e = meta_find(d->r->server, d->who.account_id, d->r->params[0], d->r->mem, &d->file, &ei);
    if (e == ERR_NOTFOUND)
        meta_reply_refusal(d->r, "NOT_FOUND", NULL);
    else if (e != ERR_OK)
        reply_error(d->r, &ei);
    d->version = arena_printf(d->r->mem, "%lld", (long long)d->file.version);
    return e == ERR_OK;
}

static MAY_YIELD void get_download(struct request *r)
{
    struct download d = {.r = r, .who = meta_who(&r->login)};
    for (int i = 1; i <= TRIES; i++) {
        if (!find(&d))
            return;
        if (d.file.folder) {
            reply_archive(r, r->params, 1, d.file.name);
            return;
        }
        if (try_send(&d, i == TRIES))
            return;
    }
}

static MAY_YIELD void post_bulk(struct request *r)
{
    struct json *j = NULL;
    struct field_ids ids;
    if (req_json(r, &j) != ERR_OK || !field_ids(r, j, &ids))
        return;
    reply_archive(r, ids.v, ids.n, arena_printf(r->mem, "download_%lld", (long long)(wall_now().us / US_PER_MS)));
}

const struct route routes_download[] = {
    {"GET", "/api/files/:id/download", PERM(DOWNLOAD), ROUTE_NEEDS_STORE, get_download},
    {"POST", "/api/files/download/bulk", PERM(DOWNLOAD), ROUTE_NEEDS_STORE, post_bulk},
    {0},
};
