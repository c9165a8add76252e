/* What makes and replaces files. A body goes to a temporary name first, so that no reader ever sees half of it, and
 * takes its name in one step. SFTP says FAILURE for a name that is taken as for anything else: what is there decides.
 */

#include "drive/sftp/write.h"
#include "drive/path.h"
#include <string.h>

static void fill(void *arg, uint64_t offset, char *dst, size_t n)
{
    content_fill(arg, offset, dst, n);
}

/* mtime is 32 bits on this wire: what lies outside is left to the server. */
static uint32_t seconds_of(struct wall t)
{
    int64_t s = t.us / US_PER_S;
    return s > 0 && s <= UINT32_MAX ? (uint32_t)s : 0;
}

static MAY_YIELD enum err put(struct sftp_op *op, const char *path, const struct content *c, struct wall modified,
                              uint64_t *taken)
{
    struct content copy = *c;
    const struct sftp_source from = {
        .size = c->size, .fill = fill, .arg = &copy, .taken = taken, .mtime_s = seconds_of(modified)};
    return sftp_put(op->s, path, &from, &op->reply, &op->ei);
}

/* The first verdict stays: that the rest could not be tidied up as well adds nothing. */
static MAY_YIELD void remove_quietly(struct sftp_op *op, const char *path)
{
    struct sftp_reply ignored;
    (void)!sftp_change(op->s, SFTP_REMOVE, path, NULL, &ignored, NULL);
}

static void taken_name(struct sftp_op *op)
{
    op->reply = (struct sftp_reply){.status = SFTP_EXISTS, .text = ""};
}

/* Some servers' plain rename replaces its target: so it is looked for first. OpenSSH's fails, which covers the moment
 * in between. */
enum err sftp_rename_new(struct sftp_op *op, const char *from, const char *to)
{
    struct sftp_attrs a;
    if (sftp_is_there(op, to, &a)) {
        taken_name(op);
        return ERR_OK;
    }
    enum err e = sftp_change(op->s, SFTP_RENAME, from, to, &op->reply, &op->ei);
    if (e == ERR_OK && op->reply.status == SFTP_FAILURE && sftp_is_there(op, to, &a))
        taken_name(op);
    return e;
}

/* ---- new ones ---- */

static void stat_made(struct sftp_op *op, struct arena *mem, const char *parent, const char *name, bool folder,
                      uint64_t size, struct wall modified, struct drive_file *out)
{
    const struct sftp_attrs a = {.has_size = !folder,
                                 .size = size,
                                 .has_mode = true,
                                 .mode = folder ? 0040000 : 0100000,
                                 .has_times = modified.us > 0,
                                 .mtime_s = seconds_of(modified)};
    sftp_fill_file(op, mem, parent, name, &a, out);
}

enum err sftp_op_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                               struct drive_file *out, struct api_result *r)
{
    struct sftp_op op;
    struct sftp_attrs there;
    const char *problem = path_name_problem_folder(sv_of(name));
    if (!sftp_op_begin(&op, a, r, true))
        return op.ei.code;
    const char *path = problem ? NULL : sftp_path_in(&op, mem, parent, name);
    enum err e = ERR_OK;
    op.reply.status = problem ? SFTP_BAD_MESSAGE : SFTP_NO_SUCH_FILE;
    if (path)
        e = sftp_change(op.s, SFTP_MKDIR, path, NULL, &op.reply, &op.ei);
    if (e == ERR_OK && op.reply.status == SFTP_FAILURE && sftp_is_there(&op, path, &there))
        taken_name(&op);
    if (sftp_op_ok(&op, e))
        stat_made(&op, mem, parent, name, true, 0, wall_now(), out);
    e = sftp_op_end(&op, e);
    if (problem)
        sftp_op_say(r, 400, "BAD_NAME", problem);
    return e;
}

enum err sftp_op_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                        struct api_result *r)
{
    struct sftp_op op;
    const char *problem = path_name_problem_file(sv_of(u->name));
    if (!sftp_op_begin(&op, a, r, true))
        return op.ei.code;
    const char *path = problem ? NULL : sftp_path_in(&op, mem, u->parent_id, u->name);
    enum err e = ERR_OK;
    op.reply.status = problem ? SFTP_BAD_MESSAGE : SFTP_NO_SUCH_FILE;
    if (path) {
        const char *temporary = sftp_temporary(mem, path);
        e = put(&op, temporary, u->content, u->modified, u->taken);
        if (sftp_op_ok(&op, e)) {
            e = sftp_rename_new(&op, temporary, path);
            if (e == ERR_OK && op.reply.status != SFTP_OK)
                remove_quietly(&op, temporary);
        }
    }
    if (sftp_op_ok(&op, e))
        stat_made(&op, mem, u->parent_id, u->name, false, u->content->size, u->modified, out);
    e = sftp_op_end(&op, e);
    if (problem)
        sftp_op_say(r, 400, "BAD_NAME", problem);
    return e;
}

/* ---- replacing ---- */

/* Where the server has no rename that replaces: the old one steps aside, and comes back when the new one cannot take
 * its place. Between the two renames the name is free: this is what such a server can do. */
static MAY_YIELD enum err replace_aside(struct sftp_op *op, struct arena *mem, const char *temporary, const char *path)
{
    const char *aside = sftp_temporary(mem, path);
    struct sftp_reply back;
    enum err e = sftp_change(op->s, SFTP_RENAME, path, aside, &op->reply, &op->ei);
    if (e != ERR_OK || op->reply.status != SFTP_OK)
        return e;
    e = sftp_rename_new(op, temporary, path);
    if (sftp_op_ok(op, e))
        remove_quietly(op, aside);
    else if (e == ERR_OK)
        e = sftp_change(op->s, SFTP_RENAME, aside, path, &back, &op->ei);
    return e;
}

static MAY_YIELD enum err put_in_place(struct sftp_op *op, struct arena *mem, const char *temporary, const char *path)
{
    struct sftp_attrs a;
    if (!sftp_is_there(op, path, &a)) { /* trashed or renamed while the body was sent: it is not brought back */
        op->reply = (struct sftp_reply){.status = SFTP_NO_SUCH_FILE, .text = ""};
        return ERR_OK;
    }
    if (op->st->extensions & SFTP_EXT_POSIX_RENAME)
        return sftp_change(op->s, SFTP_POSIX_RENAME, temporary, path, &op->reply, &op->ei);
    return replace_aside(op, mem, temporary, path);
}

enum err sftp_op_replace(struct api *a, const char *id, const char *name, const char *version, const char *lock_id,
                         const struct content *c, struct arena *mem, struct drive_file *out, struct api_result *r)
{
    struct sftp_op op;
    struct sftp_attrs there = {0};
    (void)name;
    (void)version; /* no versions and no locks on this wire */
    (void)lock_id;
    if (!sftp_op_begin(&op, a, r, true))
        return op.ei.code;
    const char *path = sftp_path_of(&op, mem, id);
    enum err e = ERR_OK;
    op.reply.status = SFTP_NO_SUCH_FILE;
    if (path)
        e = sftp_stat(op.s, path, &there, &op.reply, &op.ei);
    if (path && sftp_op_ok(&op, e)) {
        const char *temporary = sftp_temporary(mem, path);
        e = put(&op, temporary, c, wall_now(), NULL);
        if (sftp_op_ok(&op, e)) {
            e = put_in_place(&op, mem, temporary, path);
            if (e == ERR_OK && op.reply.status != SFTP_OK)
                remove_quietly(&op, temporary);
        }
    }
    if (sftp_op_ok(&op, e))
        stat_made(&op, mem, names_parent(a->names, id), names_name(a->names, id), false, c->size, wall_now(), out);
    return sftp_op_end(&op, e);
}
