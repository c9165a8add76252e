/* Calls that need one answer: folders, names, attributes. */
#include "base/mem.h"
#include "net/sftp_int.h"

#include <string.h>

struct sv sftp_handle_sv(const struct sftp_handle *h)
{
    return (struct sv){h->bytes, h->n};
}

enum err sftp_read_handle(const struct sftp_call *c, struct sftp_handle *out, struct errinfo *ei)
{
    struct sftp_in in = {.rest = {c->body.data, c->body.len}};
    struct sv h = sftp_in_text(&in);
    if (in.bad || h.n == 0 || h.n > sizeof(out->bytes))
        return err_set(ei, ERR_PROTO, "sftp: malformed handle");
    memcpy(out->bytes, h.p, h.n);
    out->n = h.n;
    return ERR_OK;
}

static MAY_YIELD enum err take_handle(struct sftp *s, struct sftp_call *c, struct sftp_out *o, struct sftp_handle *out,
                                      struct sftp_reply *r, struct errinfo *ei)
{
    out->n = 0;
    enum err e = sftp_ask(s, c, o, SFTP_T_HANDLE, r, ei);
    if (e == ERR_OK && r->status == SFTP_OK)
        e = sftp_read_handle(c, out, ei);
    sftp_forget(c);
    return e;
}

enum err sftp_open_file(struct sftp *s, const char *path, unsigned flags, struct sftp_handle *out, struct sftp_reply *r,
                        struct errinfo *ei)
{
    struct sftp_call c;
    struct sftp_out o;
    sftp_begin(s, &c, &o, SFTP_T_OPEN);
    sftp_out_text(&o, sv_of(path));
    sftp_out_u32(&o, flags);
    sftp_out_u32(&o, 0);
    return take_handle(s, &c, &o, out, r, ei);
}

enum err sftp_close_handle(struct sftp *s, struct sftp_handle *h, struct sftp_reply *r, struct errinfo *ei)
{
    struct sftp_call c;
    struct sftp_out o;
    sftp_begin(s, &c, &o, SFTP_T_CLOSE);
    sftp_out_text(&o, sftp_handle_sv(h));
    h->n = 0;
    enum err e = sftp_ask(s, &c, &o, SFTP_T_STATUS, r, ei);
    sftp_forget(&c);
    return e;
}

/* ---- listing ---- */

struct listing {
    bool (*entry)(void *arg, struct sv name, const struct sftp_attrs *a);
    void *arg;
};

static enum err read_entries(const struct sftp_call *c, const struct listing *l, bool *more, struct errinfo *ei)
{
    struct sftp_in in = {.rest = {c->body.data, c->body.len}};
    uint32_t n = sftp_in_u32(&in);
    for (uint32_t i = 0; i < n && *more; i++) {
        struct sv name;
        struct sftp_attrs a;
        if (!sftp_in_entry(&in, &name, &a))
            break;
        if (!sv_eq(name, SV(".")) && !sv_eq(name, SV("..")))
            *more = l->entry(l->arg, name, &a);
    }
    return in.bad ? err_set(ei, ERR_PROTO, "sftp: malformed listing") : ERR_OK;
}

static MAY_YIELD enum err read_folder(struct sftp *s, const struct sftp_handle *h, const struct listing *l,
                                      struct sftp_reply *r, struct errinfo *ei)
{
    enum err e = ERR_OK;
    while (e == ERR_OK) {
        struct sftp_call c;
        struct sftp_out o;
        sftp_begin(s, &c, &o, SFTP_T_READDIR);
        sftp_out_text(&o, sftp_handle_sv(h));
        e = sftp_ask(s, &c, &o, SFTP_T_NAME, r, ei);
        bool more = e == ERR_OK && r->status == SFTP_OK;
        if (more)
            e = read_entries(&c, l, &more, ei);
        sftp_forget(&c);
        if (!more)
            break;
    }
    if (e == ERR_OK && r->status == SFTP_EOF)
        *r = (struct sftp_reply){.status = SFTP_OK};
    return e;
}

enum err sftp_list(struct sftp *s, const char *path,
                   bool (*entry)(void *arg, struct sv name, const struct sftp_attrs *a), void *arg,
                   struct sftp_reply *r, struct errinfo *ei)
{
    const struct listing l = {entry, arg};
    struct sftp_handle h;
    struct sftp_reply closed;
    struct sftp_call c;
    struct sftp_out o;
    sftp_begin(s, &c, &o, SFTP_T_OPENDIR);
    sftp_out_text(&o, sv_of(path));
    enum err e = take_handle(s, &c, &o, &h, r, ei);
    if (e != ERR_OK || r->status != SFTP_OK)
        return e;
    e = read_folder(s, &h, &l, r, ei);
    if (e == ERR_OK)
        e = sftp_close_handle(s, &h, &closed, ei);
    return e;
}

/* ---- names and attributes ---- */

enum err sftp_stat(struct sftp *s, const char *path, struct sftp_attrs *out, struct sftp_reply *r, struct errinfo *ei)
{
    struct sftp_call c;
    struct sftp_out o;
    sftp_begin(s, &c, &o, SFTP_T_LSTAT);
    sftp_out_text(&o, sv_of(path));
    enum err e = sftp_ask(s, &c, &o, SFTP_T_ATTRS, r, ei);
    if (e == ERR_OK && r->status == SFTP_OK) {
        struct sftp_in in = {.rest = {c.body.data, c.body.len}};
        *out = sftp_in_attrs(&in);
        if (in.bad)
            e = err_set(ei, ERR_PROTO, "sftp: malformed attributes");
    }
    sftp_forget(&c);
    return e;
}

enum err sftp_real_path(struct sftp *s, const char *path, struct buf *out, struct sftp_reply *r, struct errinfo *ei)
{
    struct sftp_call c;
    struct sftp_out o;
    sftp_begin(s, &c, &o, SFTP_T_REALPATH);
    sftp_out_text(&o, sv_of(path));
    enum err e = sftp_ask(s, &c, &o, SFTP_T_NAME, r, ei);
    if (e == ERR_OK && r->status == SFTP_OK) {
        struct sftp_in in = {.rest = {c.body.data, c.body.len}};
        uint32_t n = sftp_in_u32(&in);
        struct sv name = sftp_in_text(&in);
        if (in.bad || n != 1 || buf_append(out, name.p, name.n) != ERR_OK)
            e = err_set(ei, ERR_PROTO, "sftp: malformed path");
    }
    sftp_forget(&c);
    return e;
}

enum err sftp_change(struct sftp *s, enum sftp_change what, const char *path, const char *to, struct sftp_reply *r,
                     struct errinfo *ei)
{
    static const enum sftp_type types[] = {SFTP_T_MKDIR, SFTP_T_RMDIR, SFTP_T_REMOVE, SFTP_T_RENAME};
    struct sftp_call c;
    struct sftp_out o;
    if (what == SFTP_POSIX_RENAME)
        sftp_extended(s, &c, &o, "posix-rename@openssh.com");
    else
        sftp_begin(s, &c, &o, types[what]);
    sftp_out_text(&o, sv_of(path));
    if (what == SFTP_RENAME || what == SFTP_POSIX_RENAME)
        sftp_out_text(&o, sv_of(to));
    if (what == SFTP_MKDIR)
        sftp_out_u32(&o, 0); /* no attributes: the server's own */
    enum err e = sftp_ask(s, &c, &o, SFTP_T_STATUS, r, ei);
    sftp_forget(&c);
    return e;
}

/* -1: more than can be. */
static int64_t in_bytes(uint64_t unit, uint64_t blocks)
{
    int64_t bytes;
    return __builtin_mul_overflow(unit, blocks, &bytes) ? -1 : bytes;
}

enum err sftp_space(struct sftp *s, const char *path, struct sftp_space *out, struct sftp_reply *r, struct errinfo *ei)
{
    struct sftp_call c;
    struct sftp_out o;
    sftp_extended(s, &c, &o, "statvfs@openssh.com");
    sftp_out_text(&o, sv_of(path));
    enum err e = sftp_ask(s, &c, &o, SFTP_T_EXTENDED_REPLY, r, ei);
    if (e == ERR_OK && r->status == SFTP_OK) {
        struct sftp_in in = {.rest = {c.body.data, c.body.len}};
        (void)sftp_in_u64(&in); /* f_bsize; blocks are counted in f_frsize */
        uint64_t unit = sftp_in_u64(&in), blocks = sftp_in_u64(&in);
        (void)sftp_in_u64(&in); /* f_bfree: to root */
        *out = (struct sftp_space){.total = in_bytes(unit, blocks), .free = in_bytes(unit, sftp_in_u64(&in))};
        if (in.bad)
            e = err_set(ei, ERR_PROTO, "sftp: malformed answer to statvfs");
    }
    sftp_forget(&c);
    return e;
}
