/* All is asked of open descriptors, so that what was judged is what is used: nobody can swap a file between the two. */
#include "base/private_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS (S_IRWXG | S_IRWXO)

const char *private_home(void)
{
    const char *home = getenv("HOME");
    return home && home[0] == '/' && access(home, W_OK) == 0 ? home : NULL;
}

bool private_folder_of_user(char *dst, size_t n, const char *xdg, const char *below)
{
    const char *base = getenv(xdg), *home = private_home();
    int len = -1;
    if (base && base[0] == '/')
        len = snprintf(dst, n, "%s/drivesim", base);
    else if (home)
        len = snprintf(dst, n, "%s/%s/drivesim", home, below);
    return len > 0 && (size_t)len < n;
}

static enum err ours_alone(int fd, mode_t type, const char *path, struct errinfo *ei)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(ei, ERR_IO, "cannot read %s", path);
    if ((st.st_mode & S_IFMT) != type)
        return err_set(ei, ERR_SAFETY, "%s is not a %s", path, type == S_IFDIR ? "folder" : "file");
    if (st.st_uid != geteuid())
        return err_set(ei, ERR_SAFETY, "%s belongs to another user", path);
    if (st.st_mode & OTHERS)
        return err_set(ei, ERR_SAFETY, "%s is open to others (mode %03o)", path, (unsigned)(st.st_mode & 0777));
    return ERR_OK;
}

static enum err open_failed(const char *path, struct errinfo *ei)
{
    if (errno == ENOENT)
        return err_set(ei, ERR_NOTFOUND, "%s is not there", path);
    if (errno == ELOOP || errno == ENOTDIR)
        return err_set(ei, ERR_SAFETY, "%s is a link, or no folder", path);
    return err_sys(ei, ERR_IO, "cannot open %s", path);
}

static enum err open_folder(const char *folder, int *out, struct errinfo *ei)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return open_failed(folder, ei);
    enum err err = ours_alone(fd, S_IFDIR, folder, ei);
    if (err)
        close(fd);
    else
        *out = fd;
    return err;
}

enum err private_folder_make(const char *folder, struct errinfo *ei)
{
    char *at = mem_strdup(folder);
    bool made = true;
    for (char *slash = at + 1; made && (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        made = mkdir(at, 0700) == 0 || errno == EEXIST;
    }
    made = made && (mkdir(at, 0700) == 0 || errno == EEXIST);
    enum err err = made ? ERR_OK : err_sys(ei, ERR_IO, "cannot make %s", at);
    mem_free(at);
    return err;
}

static enum err read_all(int fd, const char *name, struct buf *out, struct errinfo *ei)
{
    char piece[8192];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(ei, ERR_IO, "cannot read %s", name);
        if (buf_append(out, piece, (size_t)n))
            return err_set(ei, ERR_LIMIT, "%s is too large", name);
    }
    return ERR_OK;
}

enum err private_file_read(const char *folder, const char *name, struct buf *out, struct errinfo *ei)
{
    int dir = -1, fd = -1;
    enum err err = open_folder(folder, &dir, ei);
    if (err)
        return err;
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* a pipe must not hold us up */
    err = fd < 0 ? open_failed(name, ei) : ours_alone(fd, S_IFREG, name, ei);
    if (!err)
        err = read_all(fd, name, out, ei);
    if (fd >= 0)
        close(fd);
    close(dir);
    return err;
}

enum err private_file_replace(const char *folder, const char *name, struct sv text, struct errinfo *ei)
{
    char next[256], random[9];
    int dir;
    enum err err = private_folder_make(folder, ei);
    if (!err)
        err = open_folder(folder, &dir, ei);
    if (err)
        return err;
    digest_random_id(random, sizeof random - 1);
    snprintf(next, sizeof next, "%.200s.%s", name, random);
    int fd = openat(dir, next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    err = fd >= 0 && file_write_all(fd, text) ? ERR_OK : ERR_IO;
    if (fd >= 0 && close(fd) < 0)
        err = ERR_IO;
    if (!err && renameat(dir, next, dir, name) < 0)
        err = ERR_IO;
    if (err) {
        err_sys(ei, err, "cannot write %s/%s", folder, name);
        unlinkat(dir, next, 0);
    }
    close(dir);
    return err;
}

void private_file_remove(const char *folder, const char *name)
{
    int dir;
    struct errinfo ei;
    if (open_folder(folder, &dir, &ei))
        return;
    unlinkat(dir, name, 0);
    close(dir);
}
