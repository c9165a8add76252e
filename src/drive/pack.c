/* The doubtful decision: no tar. What it would take to read somebody else's safely (links, devices, absolute paths,
 * sparse and extended headers) is more than this whole format, which can only say what a store's folder holds. */
#include "drive/pack.h"
#include "base/mem.h"
#include "base/own_tree.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC     "DSPACK1\n"
#define MAGIC_LEN 8
#define PATH_MOST 1024
#define DEEP_MOST 32
#define ROOM      (1u << 20)

enum kind { KIND_FILE = 'F', KIND_FOLDER = 'D', KIND_END = 'E' };
struct entry { /* as it stands in the pack: little endian, then the path */
    unsigned char kind;
    unsigned char path_n[2], size[8], modified_us[8];
};

struct pack {
    const char *name; /* of the pack, for messages */
    int fd;
    bool writes;
    unsigned char *room;
    size_t at, n; /* read or to be written: room[at..n) */
    struct digest *digest;
    const atomic_bool *stop;
    struct pack_sum *sum;
    uint64_t entries; /* that it may hold */
};

static void put(unsigned char *p, size_t n, uint64_t v)
{
    for (size_t i = 0; i < n; i++, v >>= 8)
        p[i] = (unsigned char)v;
}

static uint64_t get(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

static enum err open_pack(struct pack *p, const char *file, bool writes, const atomic_bool *stop, struct pack_sum *sum,
                          struct errinfo *ei)
{
    struct stat st;
    *sum = (struct pack_sum){0};
    *p = (struct pack){.name = file, .writes = writes, .stop = stop, .sum = sum};
    p->fd = writes ? open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                   : open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (p->fd < 0)
        return err_sys(ei, ERR_IO, "cannot %s %s", writes ? "write" : "read", file);
    if (fstat(p->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(p->fd);
        p->fd = -1;
        return err_set(ei, ERR_PARSE, "%s is no plain file", file);
    }
    p->room = mem_alloc(ROOM);
    p->digest = digest_new();
    return ERR_OK;
}

static void close_pack(struct pack *p)
{
    if (p->fd < 0)
        return;
    digest_final(p->digest, p->sum->sha256);
    digest_free(&p->digest);
    mem_free(p->room);
    close(p->fd);
}

static enum err stopped(const struct pack *p, struct errinfo *ei)
{
    return p->stop && *p->stop ? err_set(ei, ERR_INTERRUPTED, "interrupted") : ERR_OK;
}

/* ---- bytes in and out ---- */

static enum err flush(struct pack *p, struct errinfo *ei)
{
    enum err err = stopped(p, ei);
    digest_update(p->digest, p->room, p->n);
    p->sum->size += p->n;
    while (!err && p->at < p->n) {
        ssize_t w = write(p->fd, p->room + p->at, p->n - p->at);
        if (w < 0 && errno != EINTR)
            err = err_sys(ei, ERR_IO, "cannot write %s", p->name);
        p->at += w > 0 ? (size_t)w : 0;
    }
    p->at = p->n = 0;
    return err;
}

static enum err write_bytes(struct pack *p, const void *data, size_t n, struct errinfo *ei)
{
    enum err err = ERR_OK;
    for (const char *from = data; n > 0 && !err;) {
        size_t part = ROOM - p->n < n ? ROOM - p->n : n;
        memcpy(p->room + p->n, from, part);
        p->n += part;
        from += part;
        n -= part;
        if (p->n == ROOM)
            err = flush(p, ei);
    }
    return err;
}

/* The next bytes, at least one; *n 0 at the end. */
static enum err fill(struct pack *p, struct errinfo *ei)
{
    enum err err = stopped(p, ei);
    ssize_t r = -1;
    while (!err && r < 0) {
        r = read(p->fd, p->room, ROOM);
        if (r < 0 && errno != EINTR)
            err = err_sys(ei, ERR_IO, "cannot read %s", p->name);
    }
    p->at = 0;
    p->n = err ? 0 : (size_t)r;
    p->sum->size += p->n;
    digest_update(p->digest, p->room, p->n);
    return err;
}

static enum err damaged(const struct pack *p, const char *why, struct errinfo *ei)
{
    return err_set(ei, ERR_PARSE, "%s is damaged: %s", p->name, why);
}

static enum err read_bytes(struct pack *p, void *data, size_t n, struct errinfo *ei)
{
    for (char *to = data; n > 0;) {
        enum err err = p->at == p->n ? fill(p, ei) : ERR_OK;
        if (err || p->n == 0)
            return err ? err : damaged(p, "it ends too early", ei);
        size_t part = p->n - p->at < n ? p->n - p->at : n;
        memcpy(to, p->room + p->at, part);
        p->at += part;
        to += part;
        n -= part;
    }
    return ERR_OK;
}

/* ---- making ---- */

static enum err write_entry(struct pack *p, enum kind kind, const char *path, const struct stat *st, struct errinfo *ei)
{
    struct entry e = {.kind = (unsigned char)kind};
    size_t n = strlen(path);
    put(e.path_n, sizeof e.path_n, n);
    put(e.size, sizeof e.size, kind == KIND_FILE ? (uint64_t)st->st_size : 0);
    if (st)
        put(e.modified_us, sizeof e.modified_us, (uint64_t)(st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000));
    p->sum->entries += kind != KIND_END;
    enum err err = write_bytes(p, &e, sizeof e, ei);
    return err ? err : write_bytes(p, path, n, ei);
}

/* Straight into the room: what is read is what is written. */
static enum err write_content(struct pack *p, const char *path, int fd, uint64_t size, struct errinfo *ei)
{
    enum err err = ERR_OK;
    while (size > 0 && !err) {
        size_t room = ROOM - p->n < size ? ROOM - p->n : (size_t)size;
        ssize_t r = read(fd, p->room + p->n, room);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_sys(ei, ERR_IO, "cannot read %s", path);
        if (r == 0)
            return err_set(ei, ERR_ENV, "%s became shorter while it was read", path);
        p->n += (size_t)r;
        size -= (uint64_t)r;
        if (p->n == ROOM)
            err = flush(p, ei);
    }
    return err;
}

static enum err put_file(struct pack *p, const char *full, const char *path, struct errinfo *ei)
{
    struct stat st;
    int fd = open(full, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        enum err err = err_sys(ei, ERR_IO, "cannot read %s", full);
        if (fd >= 0)
            close(fd);
        return err;
    }
    enum err err = write_entry(p, KIND_FILE, path, &st, ei);
    if (!err)
        err = write_content(p, full, fd, (uint64_t)st.st_size, ei);
    close(fd);
    p->sum->files++;
    p->sum->bytes += (uint64_t)st.st_size;
    return err;
}

static enum err put_found(struct pack *p, const FTSENT *f, size_t root_n, struct errinfo *ei)
{
    if (f->fts_level == 0 && f->fts_info != FTS_DNR && f->fts_info != FTS_NS)
        return ERR_OK;
    const char *path = f->fts_path + root_n + 1;
    if (f->fts_level == 1 && strcmp(f->fts_name, OWN_TREE_MARK) == 0) /* of the folder, not of what it holds */
        return ERR_OK;
    switch (f->fts_info) {
    case FTS_DP:
        return ERR_OK;
    case FTS_D:
        if (f->fts_pathlen - root_n > PATH_MOST || f->fts_level > DEEP_MOST)
            return err_set(ei, ERR_ENV, "%s lies too deep to be packed", f->fts_path);
        return write_entry(p, KIND_FOLDER, path, f->fts_statp, ei);
    case FTS_F:
        if (f->fts_pathlen - root_n > PATH_MOST)
            return err_set(ei, ERR_ENV, "%s lies too deep to be packed", f->fts_path);
        return put_file(p, f->fts_accpath, path, ei);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        errno = f->fts_errno;
        return err_sys(ei, ERR_IO, "cannot read %s", f->fts_path);
    default:
        return err_set(ei, ERR_ENV, "%s is neither a file nor a folder", f->fts_path);
    }
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static enum err put_folder(struct pack *p, const char *folder, struct errinfo *ei)
{
    char root[PATH_MAX];
    char *const roots[] = {root, NULL};
    str_format(root, sizeof root, "%s", folder);
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!fts)
        return err_sys(ei, ERR_IO, "cannot read %s", folder);
    enum err err = ERR_OK;
    FTSENT *f = NULL;
    while (!err && (errno = 0, f = fts_read(fts)))
        err = put_found(p, f, strlen(root), ei);
    if (!err && errno)
        err = err_sys(ei, ERR_IO, "cannot read %s", folder);
    fts_close(fts);
    return err;
}

enum err pack_make(const char *folder, const char *file, const atomic_bool *stop, struct pack_sum *out,
                   struct errinfo *ei)
{
    struct pack p;
    enum err err = open_pack(&p, file, true, stop, out, ei);
    if (!err)
        err = write_bytes(&p, MAGIC, MAGIC_LEN, ei);
    if (!err)
        err = put_folder(&p, folder, ei);
    if (!err)
        err = write_entry(&p, KIND_END, "", NULL, ei);
    if (!err)
        err = flush(&p, ei);
    if (!err && fsync(p.fd) < 0)
        err = err_sys(ei, ERR_IO, "cannot write %s", file);
    close_pack(&p);
    return err;
}

/* ---- unfolding ---- */

/* "a/b c": every part a plain name. */
static bool path_is_safe(struct sv path)
{
    struct sv part;
    unsigned deep = 0;
    if (path.n == 0 || memchr(path.p, '\0', path.n))
        return false;
    if (path.p[0] == '/' || path.p[path.n - 1] == '/')
        return false;
    while (sv_split(&path, '/', &part))
        if (part.n == 0 || sv_eq(part, SV(".")) || sv_eq(part, SV("..")) || ++deep > DEEP_MOST)
            return false;
    return true;
}

static enum err take_content(struct pack *p, int fd, const char *path, uint64_t size, struct errinfo *ei)
{
    while (size > 0) {
        enum err err = p->at == p->n ? fill(p, ei) : ERR_OK;
        if (err || p->n == 0)
            return err ? err : damaged(p, "it ends too early", ei);
        size_t part = p->n - p->at < size ? p->n - p->at : (size_t)size;
        ssize_t w = write(fd, p->room + p->at, part);
        if (w < 0 && errno != EINTR)
            return err_sys(ei, ERR_IO, "cannot write %s", path);
        p->at += w > 0 ? (size_t)w : 0;
        size -= w > 0 ? (uint64_t)w : 0;
    }
    return ERR_OK;
}

static enum err take_file(struct pack *p, int dir, const char *path, const struct entry *e, struct errinfo *ei)
{
    int64_t us = (int64_t)get(e->modified_us, sizeof e->modified_us);
    const struct timespec at = {us / 1000000, us % 1000000 * 1000}, times[] = {at, at};
    uint64_t size = get(e->size, sizeof e->size);
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(ei, errno == EEXIST || errno == ENOENT || errno == ENOTDIR ? ERR_PARSE : ERR_IO,
                       "cannot make %s out of %s", SHOWN(sv_of(path)), p->name);
    enum err err = take_content(p, fd, SHOWN(sv_of(path)), size, ei);
    if (!err && us >= 0 && futimens(fd, times) < 0)
        err = err_sys(ei, ERR_IO, "cannot set the time of %s", SHOWN(sv_of(path)));
    if (close(fd) < 0 && !err)
        err = err_sys(ei, ERR_IO, "cannot write %s", SHOWN(sv_of(path)));
    p->sum->files++;
    p->sum->bytes += size;
    return err;
}

static enum err take_entry(struct pack *p, int dir, bool *end, struct errinfo *ei)
{
    struct entry e = {0};
    char path[PATH_MOST + 1];
    enum err err = read_bytes(p, &e, sizeof e, ei);
    size_t n = (size_t)get(e.path_n, sizeof e.path_n);
    if (!err && n >= sizeof path)
        return damaged(p, "a path is too long", ei);
    if (!err)
        err = read_bytes(p, path, n, ei);
    if (err)
        return err;
    path[n] = '\0';
    *end = e.kind == KIND_END && n == 0;
    if (*end)
        return ERR_OK;
    if (!path_is_safe((struct sv){path, n}))
        return damaged(p, "a path leads elsewhere", ei);
    if (p->sum->entries++ >= p->entries)
        return damaged(p, "it holds more than it should", ei);
    if (e.kind == KIND_FILE)
        return take_file(p, dir, path, &e, ei);
    if (e.kind != KIND_FOLDER)
        return damaged(p, "an entry is neither file nor folder", ei);
    if (mkdirat(dir, path, 0700) < 0)
        return err_sys(ei, errno == ENOSPC || errno == EDQUOT ? ERR_IO : ERR_PARSE, "cannot make %s out of %s",
                       SHOWN(sv_of(path)), p->name);
    return ERR_OK;
}

static enum err take_all(struct pack *p, int dir, struct errinfo *ei)
{
    char magic[MAGIC_LEN];
    bool end = false;
    enum err err = read_bytes(p, magic, sizeof magic, ei);
    if (!err && memcmp(magic, MAGIC, MAGIC_LEN) != 0)
        err = err_set(ei, ERR_PARSE, "%s is no pack", p->name);
    while (!err && !end)
        err = take_entry(p, dir, &end, ei);
    if (!err && p->at == p->n)
        err = fill(p, ei);
    return err || p->at == p->n ? err : damaged(p, "something follows its end", ei);
}

enum err pack_unfold(const char *file, const char *folder, uint64_t entries, const atomic_bool *stop,
                     struct pack_sum *out, struct errinfo *ei)
{
    struct pack p;
    int dir = -1;
    enum err err = open_pack(&p, file, false, stop, out, ei);
    p.entries = entries;
    if (!err && mkdir(folder, 0700) < 0)
        err = err_sys(ei, ERR_IO, "cannot make %s", folder);
    if (!err)
        err = own_tree_mark(folder, ei);
    if (!err && (dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        err = err_sys(ei, ERR_IO, "cannot open %s", folder);
    if (!err)
        err = take_all(&p, dir, ei);
    if (dir >= 0)
        close(dir);
    close_pack(&p);
    return err;
}

enum err pack_digest(const char *file, const atomic_bool *stop, struct pack_sum *out, struct errinfo *ei)
{
    struct pack p;
    enum err err = open_pack(&p, file, false, stop, out, ei);
    if (!err)
        err = fill(&p, ei);
    while (!err && p.n > 0)
        err = fill(&p, ei);
    close_pack(&p);
    return err;
}
