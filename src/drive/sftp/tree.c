/* What changes the tree: renaming, moving, copying, removing. There is no trash on this wire: what is trashed is gone.
 */

#include "drive/sftp/tree.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/path.h"
#include <stdio.h>
#include <string.h>

#define COPY_NAMES    20 /* numbers tried for a copy's name */
#define REMOVE_PASSES 3  /* while others put things into what is being removed */

/* ---- names ---- */

static MAY_YIELD enum err change_place(struct sftp_op *op, struct arena *mem, const char *id, const char *parent,
                                       const char *name)
{
    struct names *names = op->a->names;
    const char *from = sftp_path_of(op, mem, id), *to = sftp_path_in(op, mem, parent, name);
    op->reply = (struct sftp_reply){.status = SFTP_NO_SUCH_FILE};
    if (!from || !to)
        return ERR_OK;
    if (strcmp(from, to) == 0) {
        op->reply.status = SFTP_OK;
        return ERR_OK;
    }
    size_t n = strlen(from);
    if (strncmp(from, to, n) == 0 && to[n] == '/') {
        op->into_itself = true;
        op->reply.status = SFTP_BAD_MESSAGE;
        return ERR_OK;
    }
    names_expect(names, id, parent, name);
    enum err e = sftp_rename_new(op, from, to);
    if (sftp_op_ok(op, e))
        names_moved(names, id, parent, name);
    else if (e == ERR_OK)
        names_not_moved(names, id, parent, name);
    return e;
}

enum err sftp_op_rename(struct api *a, const char *id, const char *name, struct arena *mem, struct drive_file *out,
                        struct api_result *r)
{
    struct sftp_op op;
    struct sftp_attrs attrs = {0};
    const char *problem = path_name_problem_folder(sv_of(name));
    if (!sftp_op_begin(&op, a, r, true))
        return op.ei.code;
    const char *parent = a->names ? names_parent(a->names, id) : NULL;
    enum err e = ERR_OK;
    op.reply.status = SFTP_BAD_MESSAGE;
    if (!problem)
        e = change_place(&op, mem, id, parent, name);
    if (sftp_op_ok(&op, e)) {
        (void)sftp_is_there(&op, sftp_path_of(&op, mem, id), &attrs); /* others may move it meanwhile */
        sftp_fill_file(&op, mem, names_parent(a->names, id), names_name(a->names, id), &attrs, out);
    }
    e = sftp_op_end(&op, e);
    if (problem)
        sftp_op_say(r, 400, "BAD_NAME", problem);
    return e;
}

/* Does it to one entry after the other, until one fails, and ends the call. parent is for what needs it. */
static MAY_YIELD enum err each(struct sftp_op *op, const char *const *ids, size_t n, const char *parent,
                               MAY_YIELD enum err (*one)(struct sftp_op *op, struct arena *mem, const char *id,
                                                         const char *parent))
{
    struct arena *mem = arena_new(1024);
    enum err e = ERR_OK;
    op->reply.status = SFTP_OK;
    for (size_t i = 0; i < n && sftp_op_ok(op, e); i++)
        e = one(op, mem, ids[i], parent);
    e = sftp_op_end(op, e);
    arena_free(&mem);
    return e;
}

static MAY_YIELD enum err move_entry(struct sftp_op *op, struct arena *mem, const char *id, const char *parent)
{
    const char *name = op->a->names ? names_name(op->a->names, id) : NULL;
    op->reply.status = SFTP_NO_SUCH_FILE;
    return name ? change_place(op, mem, id, parent, name) : ERR_OK;
}

enum err sftp_op_move(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_result *r)
{
    struct sftp_op op;
    if (!sftp_op_begin(&op, a, r, true))
        return op.ei.code;
    enum err e = each(&op, ids, n, parent, move_entry);
    if (op.into_itself)
        sftp_op_say(r, 409, "INTO_ITSELF", "a folder cannot be moved into itself");
    return e;
}

/* ---- whole folders: level by level, so that no depth costs stack ---- */

struct walk {
    struct arena *mem;
    const char *folder; /* that is being listed */
    const char **folders, **files;
    size_t n_folders, n_files, cap_folders, cap_files;
};

static void add(const char ***list, size_t *n, size_t *cap, const char *path)
{
    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 32;
        *list = mem_realloc_array(*list, *cap, sizeof(**list));
    }
    (*list)[(*n)++] = path;
}

static bool on_entry(void *arg, struct sv name, const struct sftp_attrs *a)
{
    struct walk *w = arg;
    const char *path = arena_printf(w->mem, "%s/" SV_FMT, w->folder, SV_ARG(name));
    if (sftp_attrs_is_folder(a))
        add(&w->folders, &w->n_folders, &w->cap_folders, path);
    else
        add(&w->files, &w->n_files, &w->cap_files, path);
    return true;
}

/* All folders, parents first, and everything else below path. */
static MAY_YIELD enum err walk_tree(struct sftp_op *op, struct walk *w, const char *path)
{
    enum err e = ERR_OK;
    add(&w->folders, &w->n_folders, &w->cap_folders, path);
    for (size_t i = 0; i < w->n_folders && e == ERR_OK; i++) {
        w->folder = w->folders[i];
        e = sftp_list(op->s, w->folder, on_entry, w, &op->reply, &op->ei);
        if (e == ERR_OK && op->reply.status != SFTP_OK && (i == 0 || op->reply.status != SFTP_NO_SUCH_FILE))
            break;
        op->reply.status = SFTP_OK; /* one that went meanwhile holds nothing */
    }
    return e;
}

static void walk_done(struct walk *w)
{
    mem_free(w->folders);
    mem_free(w->files);
    arena_free(&w->mem);
}

/* What is gone already is removed. */
static MAY_YIELD enum err remove_one(struct sftp_op *op, enum sftp_change how, const char *path)
{
    enum err e = sftp_change(op->s, how, path, NULL, &op->reply, &op->ei);
    if (e == ERR_OK && op->reply.status == SFTP_NO_SUCH_FILE)
        op->reply.status = SFTP_OK;
    return e;
}

static MAY_YIELD enum err remove_pass(struct sftp_op *op, const char *path)
{
    struct walk w = {.mem = arena_new(4096)};
    enum err e = walk_tree(op, &w, path);
    for (size_t i = 0; i < w.n_files && sftp_op_ok(op, e); i++)
        e = remove_one(op, SFTP_REMOVE, w.files[i]);
    for (size_t i = w.n_folders; i-- > 0 && sftp_op_ok(op, e);)
        e = remove_one(op, SFTP_RMDIR, w.folders[i]);
    walk_done(&w);
    return e;
}

enum err sftp_remove_tree(struct sftp_op *op, const char *path)
{
    struct sftp_attrs a;
    enum err e = sftp_stat(op->s, path, &a, &op->reply, &op->ei);
    if (e != ERR_OK || op->reply.status != SFTP_OK)
        return e;
    if (!sftp_attrs_is_folder(&a))
        return sftp_change(op->s, SFTP_REMOVE, path, NULL, &op->reply, &op->ei);
    for (int pass = 0; pass < REMOVE_PASSES; pass++) {
        e = remove_pass(op, path);
        if (e != ERR_OK || op->reply.status != SFTP_FAILURE)
            break;
    }
    return e;
}

static MAY_YIELD enum err remove_entry(struct sftp_op *op, struct arena *mem, const char *id, const char *parent)
{
    const char *path = id ? sftp_path_of(op, mem, id) : NULL;
    (void)parent;
    op->reply.status = SFTP_NO_SUCH_FILE;
    if (!path)
        return ERR_OK;
    enum err e = sftp_remove_tree(op, path);
    if (sftp_op_ok(op, e))
        names_drop(op->a->names, id);
    return e;
}

enum err sftp_op_remove(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    struct sftp_op op;
    *job = (struct api_job){.done = true, .items_done = -1, .items_total = -1, .count = (int64_t)n};
    return sftp_op_begin(&op, a, r, true) ? each(&op, ids, n, NULL, remove_entry) : op.ei.code;
}

/* ---- copies ---- */

static MAY_YIELD enum err copy_folder(struct sftp_op *op, const char *from, const char *to)
{
    struct walk w = {.mem = arena_new(4096)};
    size_t cut = strlen(from);
    enum err e = walk_tree(op, &w, from);
    for (size_t i = 0; i < w.n_folders && sftp_op_ok(op, e); i++)
        e = sftp_change(op->s, SFTP_MKDIR, arena_printf(w.mem, "%s%s", to, w.folders[i] + cut), NULL, &op->reply,
                        &op->ei);
    for (size_t i = 0; i < w.n_files && sftp_op_ok(op, e); i++) {
        const char *slash = strrchr(w.files[i], '/');
        if (!sftp_name_is_ours(sv_of(slash + 1)))
            e = sftp_copy(op->s, w.files[i], arena_printf(w.mem, "%s%s", to, w.files[i] + cut), &op->reply, &op->ei);
        if (e == ERR_OK && op->reply.status == SFTP_NO_SUCH_FILE)
            op->reply.status = SFTP_OK; /* it went meanwhile */
    }
    walk_done(&w);
    return e;
}

static MAY_YIELD enum err copy_entry(struct sftp_op *op, struct arena *mem, const char *id, const char *parent)
{
    const char *from = sftp_path_of(op, mem, id), *folder = sftp_path_of(op, mem, parent);
    const char *name = names_name(op->a->names, id);
    struct sftp_attrs a;
    op->reply = (struct sftp_reply){.status = SFTP_NO_SUCH_FILE};
    if (!from || !folder || !name)
        return ERR_OK;
    enum err e = sftp_stat(op->s, from, &a, &op->reply, &op->ei);
    if (!sftp_op_ok(op, e))
        return e;
    char free_name[DRIVE_NAME_MAX + 1];
    snprintf(free_name, sizeof(free_name), "%s", name);
    const char *to = arena_printf(mem, "%s/%s", folder, free_name);
    struct sftp_attrs taken;
    for (unsigned k = 1; k <= COPY_NAMES && sftp_is_there(op, to, &taken); k++) {
        path_numbered(free_name, sizeof(free_name), name, k, DRIVE_NAME_MAX);
        to = arena_printf(mem, "%s/%s", folder, free_name);
    }
    if (sftp_attrs_is_folder(&a))
        return copy_folder(op, from, to);
    const char *temporary = sftp_temporary(mem, to);
    e = sftp_copy(op->s, from, temporary, &op->reply, &op->ei);
    if (sftp_op_ok(op, e))
        e = sftp_rename_new(op, temporary, to);
    return e;
}

enum err sftp_op_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                      struct api_result *r)
{
    struct sftp_op op;
    *job = (struct api_job){.done = true, .items_done = -1, .items_total = -1, .count = (int64_t)n};
    if (!sftp_op_begin(&op, a, r, true))
        return op.ei.code;
    bool offered = op.st->extensions & SFTP_EXT_COPY_DATA;
    enum err e = each(&op, ids, offered ? n : 0, parent, copy_entry);
    return offered ? e : api_absent(r, "copying within the server");
}
