/* What reads: listings, attributes, bodies, space. */

#include "drive/sftp/read.h"
#include "base/mem.h"
#include "drive/path.h"
#include <string.h>

void sftp_fill_file(const struct sftp_op *op, struct arena *mem, const char *parent_id, const char *name,
                    const struct sftp_attrs *a, struct drive_file *out)
{
    bool folder = sftp_attrs_is_folder(a);
    *out = (struct drive_file){.id = names_id(op->a->names, parent_id, name, NULL),
                               .name = arena_strdup(mem, name),
                               .parent_id = arena_strdup(mem, parent_id),
                               .size = folder || !a->has_size ? -1 : (int64_t)a->size,
                               .modified = {a->has_times ? (int64_t)a->mtime_s * US_PER_S : 0},
                               .folder = folder};
}

/* ---- listing ---- */

struct listing {
    const struct sftp_op *op;
    struct arena *mem;
    const char *parent_id;
    struct drive_file *items; /* grows on the heap: the arena gives nothing back */
    size_t n, cap, most;
};

/* Links, sockets and the like are nobody's files; temporary names are on their way to another. */
static bool on_entry(void *arg, struct sv name, const struct sftp_attrs *a)
{
    struct listing *l = arg;
    if (sftp_name_is_ours(name) || (!sftp_attrs_is_folder(a) && !sftp_attrs_is_file(a)))
        return true;
    if (l->n == l->most) {
        l->most = 0;
        return false;
    }
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->items = mem_realloc_array(l->items, l->cap, sizeof(*l->items));
    }
    const char *text = arena_strndup(l->mem, name.p, name.n);
    sftp_fill_file(l->op, l->mem, l->parent_id, text, a, &l->items[l->n++]);
    return true;
}

enum err sftp_op_list(struct api *a, const char *id, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    struct sftp_op op;
    if (!sftp_op_begin(&op, a, r, false))
        return op.ei.code;
    struct listing l = {.op = &op, .mem = mem, .parent_id = id, .most = a->listing_most};
    const char *path = sftp_path_of(&op, mem, id);
    enum err e = ERR_OK;
    op.reply.status = SFTP_NO_SUCH_FILE;
    if (path)
        e = sftp_list(op.s, path, on_entry, &l, &op.reply, &op.ei);
    *out = (struct drive_listing){0};
    if (!l.most)
        e = err_set(&op.ei, ERR_LIMIT, API_LISTING_ENDLESS, a->listing_most);
    if (sftp_op_ok(&op, e) && l.n) {
        out->n = l.n;
        out->items = arena_alloc(mem, l.n * sizeof(*out->items));
        memcpy(out->items, l.items, l.n * sizeof(*out->items));
    }
    mem_free(l.items);
    return sftp_op_end(&op, e);
}

/* ---- attributes ---- */

bool sftp_is_there(struct sftp_op *op, const char *path, struct sftp_attrs *a)
{
    struct sftp_reply reply;
    return sftp_stat(op->s, path, a, &reply, NULL) == ERR_OK && reply.status == SFTP_OK;
}

enum err sftp_op_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out,
                      struct api_totals *totals, struct api_result *r)
{
    struct sftp_op op;
    struct sftp_attrs attrs = {0};
    if (!sftp_op_begin(&op, a, r, false))
        return op.ei.code;
    const char *path = sftp_path_of(&op, mem, id);
    enum err e = ERR_OK;
    op.reply.status = SFTP_NO_SUCH_FILE;
    if (path)
        e = sftp_stat(op.s, path, &attrs, &op.reply, &op.ei);
    if (totals)
        *totals = (struct api_totals){.bytes = -1, .files = -1, .folders = -1};
    if (out && sftp_op_ok(&op, e))
        sftp_fill_file(&op, mem, names_parent(a->names, id), names_name(a->names, id), &attrs, out);
    return sftp_op_end(&op, e);
}

/* The file system's, which others may share: what is used of it says nothing about our files. */
enum err sftp_op_storage(struct api *a, struct api_storage *out, struct api_result *r)
{
    struct sftp_op op;
    struct sftp_space space = {0};
    if (!sftp_op_begin(&op, a, r, false))
        return op.ei.code;
    bool offered = op.st->extensions & SFTP_EXT_STATVFS;
    enum err e = ERR_OK;
    op.reply.status = SFTP_OK;
    if (offered)
        e = sftp_space(op.s, op.st->root, &space, &op.reply, &op.ei);
    if (sftp_op_ok(&op, e))
        *out = (struct api_storage){.used = -1, .total = space.total, .free = space.free};
    e = sftp_op_end(&op, e);
    return offered ? e : api_absent(r, api_cap_text(API_CAP_STORAGE));
}

/* ---- bodies ---- */

enum err sftp_op_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                          int (*sink)(void *, const char *, size_t), void *arg, char *version, size_t n,
                          struct api_result *r)
{
    struct sftp_op op;
    if (version && n)
        version[0] = '\0';
    if (!sftp_op_begin(&op, a, r, false))
        return op.ei.code;
    struct arena *mem = arena_new(1024);
    const char *path = sftp_path_of(&op, mem, id);
    enum err e = ERR_OK;
    op.reply.status = SFTP_NO_SUCH_FILE;
    if (path)
        e = sftp_get(op.s, path, offset, length, sink, arg, &op.reply, &op.ei);
    e = sftp_op_end(&op, e);
    arena_free(&mem);
    return e;
}
