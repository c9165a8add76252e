/* The reading calls of the webdav dialect. Only the properties that are needed are asked for; a listing is read item by
 * item while it comes. */
#include "drive/webdav/read.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/api/ranged.h"
#include "drive/webdav/feed.h"
#include "drive/webdav/trash.h"
#include "drive/wire.h"
#include <stdio.h>
#include <string.h>

static const char wanted[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                             "<D:propfind xmlns:D=\"DAV:\" xmlns:oc=\"http://owncloud.org/ns\"><D:prop>"
                             "<D:resourcetype/><D:getcontentlength/><D:getetag/><D:getlastmodified/>"
                             "<oc:fileid/></D:prop></D:propfind>";
static const char wanted_plain[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                                   "<D:propfind xmlns:D=\"DAV:\"><D:prop>"
                                   "<D:resourcetype/><D:getcontentlength/><D:getetag/><D:getlastmodified/>"
                                   "</D:prop></D:propfind>";
static const char wanted_alone[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                                   "<D:propfind xmlns:D=\"DAV:\" xmlns:oc=\"http://owncloud.org/ns\"><D:prop>"
                                   "<D:resourcetype/><D:getcontentlength/><D:getetag/><D:getlastmodified/>"
                                   "<D:quota-used-bytes/><D:quota-available-bytes/>"
                                   "<oc:fileid/><oc:size/><oc:checksums/></D:prop></D:propfind>";

/* ---- hrefs ---- */

/* "//a///b/" is "/a/b": no name holds a slash. */
static void plain_slashes(struct buf *path)
{
    size_t n = 0;
    for (size_t i = 0; i < path->len; i++) {
        if (path->data[i] != '/' || n == 0 || path->data[n - 1] != '/')
            path->data[n++] = path->data[i];
    }
    while (n > 1 && path->data[n - 1] == '/')
        n--;
    path->len = n;
    if (path->data)
        path->data[n] = '\0';
}

/* The path of an href, decoded exactly once and without the slashes at its end. What is not encoded as it should be is
 * taken as it stands: a '%' that begins no escape is a '%'. */
static enum err href_path(const char *href, struct buf *out)
{
    struct sv s = sv_of(href), scheme_end = {strstr(href, "://"), 3};
    if (href[0] != '/' && scheme_end.p) {
        const char *slash = strchr(scheme_end.p + 3, '/');
        s = sv_of(slash ? slash : "/");
    }
    enum err err = str_url_decode(out, s);
    if (err == ERR_PARSE) {
        buf_reset(out);
        err = buf_append(out, s.p, s.n);
    }
    plain_slashes(out);
    return err;
}

/* ---- one entry ---- */

struct looking {
    struct dav_look *out;
    bool first; /* seen: an answer of depth 0 has one item */
};

static bool on_look(void *arg, const struct dav_item *item)
{
    struct looking *l = arg;
    struct dav_look *out = l->out;
    if (l->first || item->status >= 400)
        return true;
    l->first = true;
    *out = (struct dav_look){.found = true,
                             .folder = item->folder,
                             .size = item->size,
                             .total = item->total,
                             .used = item->used,
                             .available = item->available,
                             .modified = item->modified};
    if (item->etag)
        dav_etag(item->etag, out->version, sizeof out->version, &out->weak);
    if (item->checksum && !str_fit(out->checksums, sizeof out->checksums, item->checksum))
        out->checksums[0] = '\0';
    if (item->own_id && !str_fit(out->own_id, sizeof out->own_id, item->own_id))
        out->own_id[0] = '\0';
    return true;
}

enum err dav_look(struct api *a, struct buf *path, struct dav_look *out, struct api_result *r)
{
    struct looking l = {.out = out};
    *out = (struct dav_look){.size = -1, .total = -1, .used = -1, .available = -1};
    const struct dav_call c = {
        .method = "PROPFIND", .path = path, .headers = {"Depth: 0"}, .xml = wanted_alone, .item = on_look, .arg = &l};
    enum err err = dav_perform(a, &c, r);
    if (!err && r->outcome == OUT_OK && !out->found)
        err = api_wrong(r, "the answer is not the multi-status that was asked for");
    return err;
}

/* The id of what stands at a place; a server's own ids count where it has them. */
static const char *id_of(struct api *a, const char *parent, const char *name, const char *own_id, bool folder)
{
    const char *id = names_id(a->names, parent, name, own_id && *own_id ? own_id : NULL);
    names_note_folder(a->names, id, folder);
    return id;
}

static void fill(struct drive_file *out, const struct dav_look *look, struct arena *mem)
{
    out->folder = look->folder;
    out->size = look->folder ? -1 : look->size;
    out->version = look->version[0] && !look->folder ? arena_strdup(mem, look->version) : NULL;
    out->modified = look->modified;
}

struct dav_look dav_look_at_new(struct api *a, const char *parent, const char *name, bool folder, struct arena *mem,
                                struct drive_file *out)
{
    struct dav_look look = {.size = -1};
    struct api_result r;
    struct buf path;
    bool asked = !folder || dav_of(a)->own_cloud; /* of a folder only an id of the server's own is worth a request */
    if (asked && dav_path(a, parent, true, &path, &r)) {
        enum err err = str_url_encode(&path, sv_of(name), "");
        (void)err; /* cut: then nothing is found */
        err = dav_look(a, &path, &look, &r);
        (void)err; /* not seen: then it is without version and size */
    }
    const char *id = id_of(a, parent, name, look.own_id, folder || look.folder);
    if (!out)
        return look;
    *out = (struct drive_file){.id = arena_strdup(mem, id), .name = arena_strdup(mem, name), .size = -1};
    out->parent_id = arena_strdup(mem, parent);
    fill(out, &look, mem);
    out->folder = folder;
    return look;
}

enum err webdav_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out,
                     struct api_totals *totals, struct api_result *r)
{
    struct dav_look look;
    struct buf path;
    if (!dav_path(a, id, false, &path, r))
        return ERR_OK;
    enum err err = dav_look(a, &path, &look, r);
    const char *name = names_name(a->names, id), *parent = names_parent(a->names, id);
    if (totals)
        *totals = (struct api_totals){look.total, -1, -1};
    if (err || r->outcome != OUT_OK || !out)
        return err;
    *out = (struct drive_file){.id = arena_strdup(mem, id), .name = arena_strdup(mem, name ? name : "")};
    out->parent_id = arena_strdup(mem, parent);
    fill(out, &look, mem);
    return ERR_OK;
}

enum err webdav_storage(struct api *a, struct api_storage *out, struct api_result *r)
{
    struct dav_look look;
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    *out = (struct api_storage){-1, -1, -1};
    if (!(a->caps & API_CAP_STORAGE))
        return api_absent(r, api_cap_text(API_CAP_STORAGE));
    enum err err = buf_appendf(&path, "%s/", dav_of(a)->files ? dav_of(a)->files : "");
    if (!err)
        err = dav_look(a, &path, &look, r);
    if (err || r->outcome != OUT_OK)
        return err;
    if (look.used < 0) {
        a->caps &= ~(unsigned)API_CAP_STORAGE;
        return api_absent(r, api_cap_text(API_CAP_STORAGE));
    }
    if (dav_of(a)->own_cloud && look.total >= 0)
        look.used = look.total; /* what they tell as quota may be five minutes old (seen on Nextcloud 24) */
    *out = (struct api_storage){look.used, look.available < 0 ? -1 : look.used + look.available, look.available};
    return ERR_OK;
}

enum err webdav_probe(struct api *a, struct api_result *r)
{
    struct api_storage storage;
    dav_trash_probe(a);
    return webdav_storage(a, &storage, r);
}

/* ---- what is in a folder ---- */

struct children {
    const struct dav_children *c;
    struct buf own, href; /* the folder's path and an item's, decoded */
    bool self, elsewhere, any;
};

/* Whether a path is that of an entry right in the folder `own`: nothing that leads out of it again, or that a zero byte
 * would make another one. */
static bool is_entry(struct sv path, struct sv own)
{
    if (!sv_starts(path, own) || path.n == own.n || path.p[own.n] != '/')
        return false;
    struct sv name = {path.p + own.n + 1, path.n - own.n - 1};
    return !memchr(name.p, '/', name.n) && !memchr(name.p, '\0', name.n) && !sv_eq(name, SV(".")) &&
           !sv_eq(name, SV(".."));
}

static bool on_child(void *arg, const struct dav_item *item)
{
    struct children *l = arg;
    buf_reset(&l->href);
    if (item->status >= 400)
        return true; /* one that may not be looked at */
    if (href_path(item->href, &l->href))
        return false;
    struct sv path = {buf_cstr(&l->href), l->href.len}, own = {buf_cstr(&l->own), l->own.len};
    if (sv_eq(path, own)) {
        l->self = true;
        l->c->entry(l->c->arg, NULL, item);
        return true;
    }
    if (!is_entry(path, own)) {
        l->elsewhere = true;
        return true;
    }
    l->any = true;
    l->c->entry(l->c->arg, path.p + own.n + 1, item);
    return true;
}

enum err dav_children(struct api *a, struct buf *path, const struct dav_children *c, struct api_result *r)
{
    struct children l = {.c = c, .own = BUF_INIT(DAV_PATH_MAX), .href = BUF_INIT(DAV_PATH_MAX)};
    enum err err = href_path(buf_cstr(path), &l.own);
    const struct dav_call call = {.method = "PROPFIND",
                                  .path = path,
                                  .headers = {c->itself_alone ? "Depth: 0" : "Depth: 1"},
                                  .xml = c->xml,
                                  .item = on_child,
                                  .arg = &l};
    err = dav_perform(a, &call, r);
    if (!err && r->outcome == OUT_OK && !l.self && (l.elsewhere || !l.any))
        err = api_wrong(r, "the answer lists another folder than was asked for");
    else if (!err && l.elsewhere)
        LOGW("webdav", "a listing names entries that are not in its folder: they are left out");
    buf_done(&l.own);
    buf_done(&l.href);
    return err;
}

/* ---- a listing ---- */

struct listing {
    struct api *a;
    const char *folder; /* id; NULL: the top */
    struct arena *mem;
    struct drive_file *items; /* malloc'ed while it grows */
    size_t n, cap;
    uint64_t tag; /* the folder's own */
    bool untagged;
};

static struct drive_file *room(struct listing *l)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 32;
        l->items = mem_realloc_array(l->items, l->cap, sizeof *l->items);
    }
    return &l->items[l->n++];
}

static void on_listed(void *arg, const char *name, const struct dav_item *item)
{
    struct listing *l = arg;
    char version[DRIVE_ID_MAX + 1] = "";
    bool weak = false;
    if (!name) {
        l->tag = dav_feed_tag(item);
        return;
    }
    if (!l->folder && strcmp(name, API_MARKER) == 0)
        return;
    const char *own_id = item->own_id && strlen(item->own_id) <= DRIVE_ID_MAX ? item->own_id : NULL;
    struct drive_file *f = room(l);
    *f = (struct drive_file){.id = arena_strdup(l->mem, id_of(l->a, l->folder, name, own_id, item->folder)),
                             .name = arena_strdup(l->mem, name),
                             .parent_id = arena_strdup(l->mem, l->folder),
                             .size = item->folder ? -1 : item->size,
                             .modified = item->modified,
                             .folder = item->folder};
    if (!item->folder && item->etag && dav_etag(item->etag, version, sizeof version, &weak))
        f->version = arena_strdup(l->mem, version);
    l->untagged |= !item->folder && !f->version;
}

static void finish(struct listing *l, struct drive_listing *out)
{
    if (l->untagged)
        l->a->caps &= ~(unsigned)API_CAP_VERSIONS;
    dav_feed_listed(l->a, l->folder, l->tag);
    out->items = arena_alloc(l->mem, (l->n + 1) * sizeof *out->items);
    if (l->n)
        memcpy(out->items, l->items, l->n * sizeof *out->items);
    out->n = l->n;
}

enum err webdav_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out,
                     struct api_result *r)
{
    struct listing l = {.a = a, .folder = folder, .mem = mem};
    const struct dav_children c = {.xml = dav_of(a)->own_cloud ? wanted : wanted_plain, .entry = on_listed, .arg = &l};
    struct buf path;
    *out = (struct drive_listing){0};
    if (!dav_path(a, folder, true, &path, r))
        return ERR_OK;
    enum err err = dav_children(a, &path, &c, r);
    if (!err && r->outcome == OUT_OK)
        finish(&l, out);
    mem_free(l.items);
    return err;
}

/* ---- content ---- */

enum err webdav_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                         int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out,
                         size_t version_n, struct api_result *r)
{
    struct http_resp resp = {0};
    struct ranged d = ranged_of(offset, length, &resp, sink, arg);
    struct buf path, etag = BUF_INIT(1024);
    char range[80];
    bool weak = false;
    if (version_out && version_n)
        version_out[0] = '\0';
    if (!dav_path(a, id, false, &path, r))
        return ERR_OK;
    struct dav_call c = {.method = "GET", .path = &path, .sink = ranged_sink, .arg = &d, .resp = &resp};
    c.transfer_bytes = length ? length : UINT64_C(1) << 30; /* the size is not known here */
    if (d.ranged) {
        ranged_header(range, sizeof range, offset, length);
        c.headers[0] = range;
    }
    enum err err = dav_perform(a, &c, r);
    if (!err && d.ranged && resp.status == 200)
        a->caps &= ~(unsigned)API_CAP_RANGES;
    struct sv tag = http_resp_header(&resp, "ETag");
    if (version_out && version_n && !err && r->outcome == OUT_OK && !buf_append(&etag, tag.p, tag.n))
        (void)dav_etag(buf_cstr(&etag), version_out, version_n, &weak);
    buf_done(&etag);
    http_resp_done(&resp);
    return err;
}
