/* The trash-bin of Nextcloud, by its documented calls: a listing below /remote.php/dav/trashbin/USER/trash, a MOVE to
 * restore/ beside it, a DELETE. What lies there has a name of its own ("a.txt.d1700000000") but keeps its oc:fileid, so
 * that an entry has one id in the tree and in the trash. The bin belongs to the whole account: only what was deleted
 * in our place is shown and touched, but for an account that was made for us. */
#include "drive/webdav/trash.h"
#include "base/mem.h"
#include "drive/webdav/read.h"
#include <stdio.h>
#include <string.h>

static const char wanted[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                             "<D:propfind xmlns:D=\"DAV:\" xmlns:oc=\"http://owncloud.org/ns\""
                             " xmlns:nc=\"http://nextcloud.org/ns\"><D:prop>"
                             "<D:resourcetype/><D:getcontentlength/><D:getlastmodified/><oc:fileid/>"
                             "<nc:trashbin-original-location/></D:prop></D:propfind>";

struct trashed {
    const char *item, *id, *name; /* item: its name in the bin */
    bool folder, is_place;        /* is_place: not something in it */
    int64_t size;
    struct wall modified;
};
struct bin {
    struct arena *mem;
    bool unread;           /* only whether it is there is wanted */
    struct trashed *items; /* malloc'ed */
    size_t n, cap;
};

/* Where it was, below the place: "" for the place itself, NULL for what is somebody else's. */
static const char *in_place(const char *from)
{
    size_t n = strlen(API_PLACE);
    while (from && *from == '/')
        from++;
    if (!from || strncmp(from, API_PLACE, n) != 0)
        return NULL;
    return from[n] == '\0' ? "" : from[n] == '/' ? from + n + 1 : NULL;
}

static void on_item(void *arg, const char *name, const struct dav_item *item)
{
    struct bin *b = arg;
    const char *from = name ? in_place(item->trashed_from) : NULL;
    if (!from)
        return;
    if (b->n == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 32;
        b->items = mem_realloc_array(b->items, b->cap, sizeof *b->items);
    }
    const char *last = strrchr(from, '/');
    bool own = item->own_id && strlen(item->own_id) <= DRIVE_ID_MAX;
    b->items[b->n++] = (struct trashed){.item = arena_strdup(b->mem, name),
                                        .id = arena_strdup(b->mem, own ? item->own_id : name),
                                        .name = arena_strdup(b->mem, last ? last + 1 : from),
                                        .folder = item->folder,
                                        .is_place = !*from,
                                        .size = item->folder ? -1 : item->size,
                                        .modified = item->modified};
}

/* "…/trash/", or "…/trash/a.txt.d1700000000". */
static enum err bin_path(const struct api *a, const char *below, const char *item, struct buf *path)
{
    buf_init(path, DAV_PATH_MAX);
    enum err err = buf_appendf(path, "%s/%s/", dav_of(a)->trash ? dav_of(a)->trash : "", below);
    return err ? err : str_url_encode(path, sv_of(item), "");
}

static MAY_YIELD enum err read_bin(struct api *a, struct bin *b, struct api_result *r)
{
    const struct dav_children c = {.xml = wanted, .itself_alone = b->unread, .entry = on_item, .arg = b};
    struct buf path;
    if (!(a->caps & API_CAP_TRASH) || !dav_of(a)->trash)
        return api_absent(r, api_cap_text(API_CAP_TRASH));
    enum err err = bin_path(a, "trash", "", &path);
    if (!err)
        err = dav_children(a, &path, &c, r);
    else
        buf_done(&path);
    if (!err && (r->status == 404 || r->status == 405 || strcmp(r->code, API_CODE_ABSENT) == 0)) {
        a->caps &= ~(unsigned)API_CAP_TRASH; /* ownCloud, or switched off */
        return api_absent(r, api_cap_text(API_CAP_TRASH));
    }
    return err;
}

void dav_trash_probe(struct api *a)
{
    struct bin none = {.unread = true};
    struct api_result r;
    enum err err = read_bin(a, &none, &r);
    (void)err; /* without an answer it is believed to be there */
}

enum err webdav_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    struct bin b = {.mem = mem};
    *out = (struct drive_listing){0};
    enum err err = read_bin(a, &b, r);
    if (!err && r->outcome == OUT_OK) {
        out->items = arena_alloc(mem, (b.n + 1) * sizeof *out->items);
        for (size_t i = 0; i < b.n; i++) {
            const struct trashed *t = &b.items[i];
            if (!t->is_place)
                out->items[out->n++] = (struct drive_file){
                    .id = t->id, .name = t->name, .size = t->size, .folder = t->folder, .modified = t->modified};
        }
    }
    mem_free(b.items);
    return err;
}

/* ---- restore, delete ---- */

static MAY_YIELD enum err delete_item(struct api *a, const char *item, struct api_result *r)
{
    struct buf path;
    enum err err = bin_path(a, "trash", item, &path);
    (void)err; /* cut: then nothing is there */
    return dav_perform(a, &(struct dav_call){.method = "DELETE", .path = &path, .write = true}, r);
}

static MAY_YIELD enum err purge_one(struct api *a, const struct trashed *t, struct api_result *r)
{
    return delete_item(a, t->item, r);
}

/* Back to where it was: its id stands there again, unless a listing says otherwise. */
static MAY_YIELD enum err restore_one(struct api *a, const struct trashed *t, struct api_result *r)
{
    struct buf path, to, header = BUF_INIT(DAV_PATH_MAX + 300);
    enum err err = bin_path(a, "trash", t->item, &path);
    if (!err)
        err = bin_path(a, "restore", t->item, &to);
    else
        buf_init(&to, 1);
    if (!err)
        err = buf_appendf(&header, "Destination: %s%s", dav_of(a)->origin, buf_cstr(&to));
    (void)err; /* cut: then nothing is there */
    err = dav_perform(
        a, &(struct dav_call){.method = "MOVE", .path = &path, .headers = {buf_cstr(&header)}, .write = true}, r);
    const char *name = names_name(a->names, t->id);
    if (!err && r->outcome == OUT_OK && name)
        names_id(a->names, names_parent(a->names, t->id), name, t->id);
    buf_done(&to);
    buf_done(&header);
    return err;
}

static const struct trashed *find(const struct bin *b, const char *id)
{
    for (size_t i = 0; i < b->n; i++)
        if (!b->items[i].is_place && strcmp(b->items[i].id, id) == 0)
            return &b->items[i];
    return NULL;
}

static MAY_YIELD enum err each(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                               MAY_YIELD enum err (*one)(struct api *, const struct trashed *, struct api_result *),
                               struct api_result *r)
{
    struct bin b = {.mem = arena_new(8192)};
    *job = (struct api_job){.done = true, .count = -1, .items_done = -1, .items_total = -1};
    enum err err = read_bin(a, &b, r);
    for (size_t i = 0; i < n && !err && r->outcome == OUT_OK; i++) {
        const struct trashed *t = find(&b, ids[i]);
        if (!t) {
            dav_missing(r);
            break;
        }
        err = one(a, t, r);
    }
    mem_free(b.items);
    arena_free(&b.mem);
    return err;
}

enum err webdav_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    return each(a, ids, n, job, restore_one, r);
}

enum err webdav_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    return each(a, ids, n, job, purge_one, r);
}

static bool made_for_us(const struct api *a)
{
    return sv_ends(sv_of(dav_of(a)->user), SV(DRIVE_EMAIL_DOMAIN));
}

enum err dav_trash_empty(struct api *a, struct api_result *r)
{
    struct bin b = {.mem = arena_new(8192)};
    enum err err = read_bin(a, &b, r);
    bool absent = strcmp(r->code, API_CODE_ABSENT) == 0;
    if (!err && r->outcome == OUT_OK && made_for_us(a))
        err = delete_item(a, "", r);
    for (size_t i = 0; i < b.n && !err && r->outcome == OUT_OK && !made_for_us(a); i++)
        err = delete_item(a, b.items[i].item, r);
    mem_free(b.items);
    arena_free(&b.mem);
    if (!err && absent)
        api_result_init(r); /* then deleting is for good */
    return err;
}
