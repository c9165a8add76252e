/* All is asked of open descriptors, so that what was judged is what is emptied, whatever is put in its place meanwhile.
 * The mark goes last: a removal that was interrupted is taken up again. */
#include "base/own_tree.h"
#include "base/mem.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX  256  /* open at once; what lies deeper is lifted to the top first */
#define MARK_MAX   8192 /* text and owner */
#define LIFTED_MAX 48

static const char mark_text[] = "Made by drivesim, which removes this folder with all that is in it.\n";

/* ---- the mark ---- */

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A plain file of ours with our text, after which the owner stands; "" when there is no such. */
static bool read_mark(int folder, char text[MARK_MAX])
{
    struct stat st;
    int fd = openat(folder, OWN_TREE_MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = -1;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0))
        n = read(fd, text, MARK_MAX - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strncmp(text, mark_text, strlen(mark_text)) == 0;
}

static bool has_mark(int folder)
{
    char text[MARK_MAX];
    return read_mark(folder, text);
}

static enum err write_mark(int folder, const char *path, const char *owner, struct errinfo *ei)
{
    unlinkat(folder, OWN_TREE_MARK, 0); /* half of one, of a process that was killed */
    int fd = openat(folder, OWN_TREE_MARK, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && dprintf(fd, "%s%s", mark_text, owner ? owner : "") > 0;
    if (fd >= 0 && close(fd) < 0)
        ok = false;
    if (ok)
        return ERR_OK;
    enum err e = err_sys(ei, ERR_IO, "cannot write %s/" OWN_TREE_MARK, path);
    if (fd >= 0)
        unlinkat(folder, OWN_TREE_MARK, 0); /* half a mark would stand in the way of a whole one */
    return e;
}

static enum err not_ours(const char *path, struct errinfo *ei)
{
    return err_set(ei, ERR_SAFETY,
                   "%s was not made by this drivesim (no mark in it), and is left alone: if nothing in it is needed, "
                   "remove it by hand",
                   path);
}

static enum err open_own(const char *path, int *out, struct errinfo *ei)
{
    int fd = open_folder(AT_FDCWD, path);
    if (fd < 0 && errno == ENOENT)
        return err_set(ei, ERR_NOTFOUND, "%s is not there", path);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return err_set(ei, ERR_SAFETY,
                       "%s is a link or a file where drivesim keeps a folder, and is left alone: move it away", path);
    if (fd < 0)
        return err_sys(ei, ERR_IO, "cannot open %s", path);
    *out = fd;
    return ERR_OK;
}

enum err own_tree_check(const char *path, struct errinfo *ei)
{
    int fd = -1;
    enum err e = open_own(path, &fd, ei);
    if (e != ERR_OK)
        return e;
    if (!has_mark(fd))
        e = not_ours(path, ei);
    close(fd);
    return e;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* But for what may be half a mark. */
static bool is_empty(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry = NULL;
    while (d && (entry = readdir(d)) && (is_dots(entry->d_name) || strcmp(entry->d_name, OWN_TREE_MARK) == 0))
        ;
    bool empty = d && !entry;
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return empty;
}

enum err own_tree_mark(const char *path, struct errinfo *ei)
{
    int fd = -1;
    enum err e = open_own(path, &fd, ei);
    if (e != ERR_OK)
        return e;
    if (!has_mark(fd))
        e = write_mark(fd, path, NULL, ei);
    close(fd);
    return e;
}

enum err own_tree_make(const char *path, mode_t mode, struct errinfo *ei)
{
    bool made = mkdir(path, mode) == 0;
    if (!made && errno != EEXIST)
        return err_sys(ei, ERR_IO, "cannot make %s", path);
    int fd = -1;
    enum err e = open_own(path, &fd, ei);
    if (e != ERR_OK)
        return e;
    if (made && fchmod(fd, mode) < 0) /* whatever the umask */
        e = err_sys(ei, ERR_IO, "cannot make %s", path);
    else if (made || is_empty(fd))
        e = write_mark(fd, path, NULL, ei);
    else if (!has_mark(fd))
        e = not_ours(path, ei);
    close(fd);
    return e;
}

enum err own_tree_make_temporary(char *template, const char *owner, struct errinfo *ei)
{
    int fd = -1;
    if (!mkdtemp(template))
        return err_sys(ei, ERR_IO, "cannot make %s", template);
    enum err e = open_own(template, &fd, ei);
    if (e == ERR_OK) {
        e = write_mark(fd, template, owner, ei);
        close(fd);
    }
    if (e != ERR_OK)
        rmdir(template);
    return e;
}

bool own_tree_belongs(const char *path, const char *owner)
{
    char text[MARK_MAX];
    int fd = open_folder(AT_FDCWD, path);
    bool does = fd >= 0 && read_mark(fd, text) && strcmp(text + strlen(mark_text), owner) == 0;
    if (fd >= 0)
        close(fd);
    return does;
}

/* ---- removing ---- */

struct entry {
    ino_t inode;
    char *name;
};
struct level {
    int fd;
    char *name; /* within the level above; NULL: the top */
    struct entry *entries;
    size_t n, at;
};
struct removal {
    const char *path;
    struct level levels[DEPTH_MAX];
    size_t depth;           /* levels in use */
    unsigned lifted, taken; /* folders brought to the top: not taken up yet, before */
    bool mounted;           /* something is, within: it stays */
    enum err err;
    struct errinfo *ei;
};

/* In the order of the disk, not of a folder's hash table: with tens of thousands of objects in one folder that is many
 * times as fast. */
static int by_inode(const void *a, const void *b)
{
    ino_t x = ((const struct entry *)a)->inode, y = ((const struct entry *)b)->inode;
    return x < y ? -1 : x > y;
}

static void fail(struct removal *r, const char *name)
{
    if (r->err == ERR_OK)
        r->err = err_sys(r->ei, ERR_IO, "cannot remove %s (at '%.60s')", r->path, name);
}

/* What is in it now. The top's mark is not among it. */
static void read_level(struct removal *r, struct level *l)
{
    int fd = openat(l->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    size_t cap = 0;
    if (!d) {
        fail(r, l->name ? l->name : ".");
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));) {
        if (is_dots(e->d_name) || (!l->name && strcmp(e->d_name, OWN_TREE_MARK) == 0))
            continue;
        if (l->n == cap) {
            cap = cap ? cap * 2 : 64;
            l->entries = mem_realloc_array(l->entries, cap, sizeof(*l->entries));
        }
        l->entries[l->n++] = (struct entry){e->d_ino, mem_strdup(e->d_name)};
    }
    closedir(d);
    if (l->n > 1)
        qsort(l->entries, l->n, sizeof(*l->entries), by_inode);
}

static void forget_entries(struct level *l)
{
    for (size_t i = 0; i < l->n; i++)
        mem_free(l->entries[i].name);
    MEM_FREE(l->entries);
    l->n = l->at = 0;
}

static void enter(struct removal *r, int fd, const char *name)
{
    struct level *l = &r->levels[r->depth++];
    *l = (struct level){.fd = fd, .name = name ? mem_strdup(name) : NULL};
    read_level(r, l);
}

static void leave(struct removal *r)
{
    struct level *l = &r->levels[--r->depth];
    forget_entries(l);
    close(l->fd);
    MEM_FREE(l->name);
}

/* Another file system begins here, or one is bound to here. */
static bool is_mounted(int parent, int fd)
{
    struct statx x;
    struct stat above, here;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) == 0 && (x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return (x.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    return fstat(parent, &above) < 0 || fstat(fd, &here) < 0 || above.st_dev != here.st_dev;
}

static void lifted_name(char dst[LIFTED_MAX], unsigned i)
{
    snprintf(dst, LIFTED_MAX, OWN_TREE_MARK "-%d-%u", (int)getpid(), i);
}

/* So that any depth can be emptied with a bounded number of open folders. */
static void lift(struct removal *r, int parent, const char *name)
{
    char to[LIFTED_MAX];
    lifted_name(to, ++r->lifted + r->taken);
    if (renameat2(parent, name, r->levels[0].fd, to, RENAME_NOREPLACE) < 0)
        fail(r, name);
}

/* A folder that forbids itself to us. By the way round /proc, as chmod would follow what may have become a link. */
static bool open_up(int parent, const char *name)
{
    char by[32];
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    snprintf(by, sizeof(by), "/proc/self/fd/%d", fd);
    bool done = fd >= 0 && chmod(by, 0700) == 0;
    if (fd >= 0)
        close(fd);
    return done;
}

static void descend(struct removal *r, struct level *l, const char *name)
{
    int fd = open_folder(l->fd, name);
    if (fd < 0 && errno == EACCES && open_up(l->fd, name))
        fd = open_folder(l->fd, name);
    if (fd < 0) {
        if (errno != ENOENT && unlinkat(l->fd, name, 0) < 0) /* no folder any more */
            fail(r, name);
        return;
    }
    if (is_mounted(l->fd, fd)) {
        r->mounted = true;
        close(fd);
    } else if (r->depth == DEPTH_MAX) {
        close(fd);
        lift(r, l->fd, name);
    } else {
        enter(r, fd, name);
    }
}

/* A folder that forbids writing holds its entries fast. */
static int unlink_in(int folder, const char *name, int flags)
{
    struct stat st;
    int done = unlinkat(folder, name, flags);
    if (done < 0 && errno == EACCES && fstat(folder, &st) == 0 && fchmod(folder, st.st_mode | 0700) == 0)
        done = unlinkat(folder, name, flags);
    return done;
}

static void remove_next(struct removal *r)
{
    struct level *l = &r->levels[r->depth - 1];
    const char *name = l->entries[l->at++].name;
    if (unlink_in(l->fd, name, 0) == 0 || errno == ENOENT)
        return;
    if (errno == EISDIR || errno == EPERM) /* Linux, POSIX: a folder */
        descend(r, l, name);
    else
        fail(r, name);
}

static void finish_level(struct removal *r)
{
    struct level *l = &r->levels[r->depth - 1];
    char *name = l->name;
    l->name = NULL;
    leave(r);
    if (unlink_in(r->levels[r->depth - 1].fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT && !r->mounted)
        fail(r, name);
    mem_free(name);
}

/* Then they are entries of the top. */
static void take_lifted(struct removal *r, struct level *l)
{
    char name[LIFTED_MAX];
    forget_entries(l);
    l->entries = mem_alloc(r->lifted * sizeof(*l->entries));
    for (unsigned i = 1; i <= r->lifted; i++) {
        lifted_name(name, i + r->taken);
        l->entries[l->n++] = (struct entry){0, mem_strdup(name)};
    }
    r->taken += r->lifted;
    r->lifted = 0;
}

/* All but the top's mark. */
static void empty_top(struct removal *r)
{
    while (r->err == ERR_OK) {
        struct level *l = &r->levels[r->depth - 1];
        if (l->at < l->n) {
            remove_next(r);
        } else if (r->depth > 1) {
            finish_level(r);
        } else if (r->lifted) {
            take_lifted(r, l);
        } else {
            break;
        }
    }
    while (r->depth > 1)
        leave(r);
    if (r->err == ERR_OK && r->mounted)
        r->err = err_set(r->ei, ERR_SAFETY,
                         "something is mounted in %s, which drivesim leaves alone: unmount it and try again", r->path);
}

/* path: open as fd, which is taken over. only: of what is in it, that name and no other; NULL: all, and the mark. */
static enum err empty(const char *path, int fd, const char *only, struct errinfo *ei)
{
    struct removal *r = mem_zalloc(sizeof(*r));
    r->path = path;
    r->ei = ei;
    if (only) {
        r->levels[r->depth++] = (struct level){.fd = fd, .entries = mem_alloc(sizeof(struct entry)), .n = 1};
        r->levels[0].entries[0] = (struct entry){0, mem_strdup(only)};
    } else {
        enter(r, fd, NULL);
    }
    empty_top(r);
    if (!only && r->err == ERR_OK && unlinkat(fd, OWN_TREE_MARK, 0) < 0 && errno != ENOENT)
        fail(r, OWN_TREE_MARK);
    leave(r);
    enum err e = r->err;
    mem_free(r);
    return e;
}

/* NOTFOUND: nothing there that has to go. */
static enum err open_marked(const char *path, int *out, struct errinfo *ei)
{
    enum err e = open_own(path, out, ei);
    if (e != ERR_OK || has_mark(*out))
        return e;
    e = is_empty(*out) ? ERR_NOTFOUND : not_ours(path, ei);
    close(*out);
    return e;
}

enum err own_tree_remove(const char *path, struct errinfo *ei)
{
    struct stat before, now;
    int fd = -1;
    enum err e = open_marked(path, &fd, ei);
    if (e != ERR_OK)
        return e == ERR_NOTFOUND ? ERR_OK : e;
    bool known = fstat(fd, &before) == 0;
    e = empty(path, fd, NULL, ei);
    if (e == ERR_OK && known && lstat(path, &now) == 0 && now.st_dev == before.st_dev && now.st_ino == before.st_ino &&
        rmdir(path) < 0 && errno != ENOENT)
        e = err_sys(ei, ERR_IO, "cannot remove %s", path);
    return e;
}

enum err own_tree_remove_part(const char *path, const char *name, struct errinfo *ei)
{
    int fd = -1;
    enum err e = open_marked(path, &fd, ei);
    if (e != ERR_OK)
        return e == ERR_NOTFOUND ? ERR_OK : e;
    return empty(path, fd, name, ei);
}
