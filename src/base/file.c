/* What a path names may be anything: nothing here waits without an end, for a pipe that nobody writes into as little as
 * for a terminal. */
#include "base/file.h"
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { NOBODY_MS = 300, SILENT_MS = 5000, LIBRARY_MAX = 16 << 20 };

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* What holds nothing cannot keep anybody waiting, and is what people name for "none". */
static bool is_null_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* A file, or with a pipe not NULL a pipe as well, whose reads then do not block. */
static enum err open_named(const char *path, int *out, bool *pipe, enum err failure, struct errinfo *ei)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        enum err e = err_sys(ei, failure, "cannot read %s", path);
        if (fd >= 0)
            close(fd);
        return e;
    }
    if (!S_ISREG(st.st_mode) && !is_null_device(&st) && !(pipe && S_ISFIFO(st.st_mode))) {
        close(fd);
        return err_set(ei, failure, "cannot read %s: it is %s, not a file", path, kind_of(st.st_mode));
    }
    if (pipe)
        *pipe = S_ISFIFO(st.st_mode);
    *out = fd;
    return ERR_OK;
}

static bool comes_within(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    while ((n = poll(&p, 1, ms)) < 0 && errno == EINTR)
        ;
    return n > 0;
}

/* As read(2). A pipe has 0 bytes while nobody has it open for writing: at first those who will are given a moment. */
static ssize_t read_pipe(int fd, char *dst, size_t n, bool begun)
{
    if (!begun)
        comes_within(fd, NOBODY_MS);
    ssize_t got = read(fd, dst, n);
    if (got < 0 && errno == EAGAIN && comes_within(fd, SILENT_MS))
        got = read(fd, dst, n);
    return got;
}

static enum err silent(const char *path, enum err failure, struct errinfo *ei)
{
    return err_set(ei, failure, "cannot read %s: nothing comes out of this pipe", path);
}

enum err file_read(const char *path, struct buf *out, enum err failure, struct errinfo *ei)
{
    char piece[8192], most[32];
    bool pipe, begun = false;
    ssize_t n;
    int fd;
    enum err e = open_named(path, &fd, &pipe, failure, ei);
    if (e != ERR_OK)
        return e;
    while (e == ERR_OK &&
           (n = pipe ? read_pipe(fd, piece, sizeof(piece), begun) : read(fd, piece, sizeof(piece))) > 0) {
        e = buf_append(out, piece, (size_t)n);
        begun = true;
    }
    if (e != ERR_OK)
        e = err_set(ei, failure, "%s is larger than %s", path, str_bytes(most, sizeof(most), out->max));
    else if (pipe && (n < 0 ? errno == EAGAIN : !begun))
        e = silent(path, failure, ei);
    else if (n < 0)
        e = err_sys(ei, failure, "cannot read %s", path);
    close(fd);
    return e;
}

/* By its mark, or by the zero that every other byte of plain letters is. */
static bool is_utf16(struct sv text)
{
    return text.n >= 2 && (memcmp(text.p, "\xff\xfe", 2) == 0 || memcmp(text.p, "\xfe\xff", 2) == 0 ||
                           (text.p[0] == '\0') != (text.p[1] == '\0'));
}

enum err file_read_text(const char *path, struct buf *out, enum err failure, struct errinfo *ei)
{
    static const struct sv mark = {"\xef\xbb\xbf", 3};
    size_t before = out->len;
    enum err e = file_read(path, out, failure, ei);
    struct sv text = {buf_cstr(out) + before, out->len - before};
    if (e == ERR_OK && is_utf16(text))
        e = err_set(ei, failure, "%s is written in UTF-16: save it as UTF-8", path);
    if (e == ERR_OK && sv_starts(text, mark)) {
        memmove(out->data + before, out->data + before + mark.n, text.n - mark.n + 1);
        out->len -= mark.n;
    }
    return e;
}

enum err file_open(const char *path, FILE **out, enum err failure, struct errinfo *ei)
{
    bool pipe;
    int fd;
    enum err e = open_named(path, &fd, &pipe, failure, ei);
    if (e == ERR_OK && pipe && !comes_within(fd, SILENT_MS)) {
        e = silent(path, failure, ei);
        close(fd);
    }
    if (e != ERR_OK)
        return e;
    fcntl(fd, F_SETFL, 0);
    *out = fdopen(fd, "rb");
    return ERR_OK;
}

enum err file_readable(const char *path, enum err failure, struct errinfo *ei)
{
    char most[32];
    int fd;
    enum err e = open_named(path, &fd, NULL, failure, ei);
    if (e != ERR_OK)
        return e;
    if (lseek(fd, 0, SEEK_END) > LIBRARY_MAX)
        e = err_set(ei, failure, "%s is larger than %s", path, str_bytes(most, sizeof(most), LIBRARY_MAX));
    close(fd);
    return e;
}

/* Links are followed: what they lead to is replaced, not they. */
static const char *behind_links(const char *path, char real[PATH_MAX])
{
    return realpath(path, real) ? real : path;
}

static bool folder_writable(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    str_format(folder, sizeof(folder), "%.*s", slash && slash > path ? (int)(slash - path) : 1, slash ? path : ".");
    return access(folder, W_OK | X_OK) == 0;
}

enum err file_replaceable(const char *path, enum err failure, struct errinfo *ei)
{
    char real[PATH_MAX];
    struct stat st;
    const char *file = behind_links(path, real);
    if (stat(file, &st) != 0)
        return errno == ENOENT && folder_writable(file) ? ERR_OK : err_sys(ei, failure, "cannot write %s", path);
    if (S_ISDIR(st.st_mode))
        return err_set(ei, failure, "cannot write %s: it is a folder", path);
    return access(file, W_OK) == 0 ? ERR_OK : err_sys(ei, failure, "cannot write %s", path);
}

bool file_write_all(int fd, struct sv text)
{
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        text = (struct sv){text.p + n, text.n - (size_t)n};
    }
    return true;
}

static bool write_new(const char *file, int flags, mode_t mode, const struct buf *text)
{
    int fd = open(file, O_WRONLY | O_CLOEXEC | flags, mode);
    bool good = fd >= 0 && file_write_all(fd, (struct sv){buf_cstr(text), text->len});
    if (fd >= 0 && close(fd) != 0)
        good = false;
    return good;
}

/* Beside it first. What had that name is left of one that was interrupted; or a link, which is not written through. */
static bool swap(const char *file, mode_t mode, bool keep_mode, const struct buf *text)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof(beside), "%s.new", file) >= (int)sizeof(beside)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (unlink(beside) != 0 && errno != ENOENT)
        return false;
    bool good = write_new(beside, O_CREAT | O_EXCL, mode, text) && (!keep_mode || chmod(beside, mode) == 0) &&
                rename(beside, file) == 0;
    int saved = errno;
    if (!good)
        unlink(beside);
    errno = saved;
    return good;
}

/* Where nothing can stand beside it, or take its place, as with one file that a container was given, it is emptied. */
static bool replace(const char *file, const struct buf *text)
{
    struct stat st;
    bool there = stat(file, &st) == 0;
    if (there && (!S_ISREG(st.st_mode) || !folder_writable(file)))
        return write_new(file, O_TRUNC, 0, text);
    return swap(file, there ? st.st_mode & 07777 : 0666, there, text) ||
           (there && errno == EBUSY && write_new(file, O_TRUNC, 0, text));
}

enum err file_replace_packed(const char *path, const struct buf *text, struct errinfo *ei)
{
    char real[PATH_MAX];
    return replace(behind_links(path, real), text) ? ERR_OK : err_sys(ei, ERR_IO, "cannot write %s", path);
}

static enum err hide(const char *path, const struct buf *text, struct buf *told, struct errinfo *ei)
{
    enum err e = secret_hide(told, (struct sv){buf_cstr(text), text->len});
    return e ? err_set(ei, ERR_IO, "%s does not fit into memory", path) : ERR_OK;
}

enum err file_replace(const char *path, const struct buf *text, struct errinfo *ei)
{
    struct buf told = BUF_INIT(2 * text->max);
    enum err e = hide(path, text, &told, ei);
    if (!e)
        e = file_replace_packed(path, &told, ei);
    buf_done(&told);
    return e;
}

enum err file_replace_private(const char *path, const struct buf *text, struct errinfo *ei)
{
    struct buf told = BUF_INIT(2 * text->max);
    enum err e = hide(path, text, &told, ei);
    if (!e && !swap(path, 0600, true, &told))
        e = err_sys(ei, ERR_IO, "cannot write %s", path);
    buf_done(&told);
    return e;
}

enum err file_close(FILE **f, const char *path, struct errinfo *ei)
{
    bool bad = ferror(*f) != 0;
    bool last = fclose(*f) != 0;
    *f = NULL;
    if (last)
        return err_sys(ei, ERR_IO, "cannot write %s", path);
    return bad ? err_set(ei, ERR_IO, "cannot write all of %s", path) : ERR_OK;
}

bool file_line(struct sv *rest, struct sv *line)
{
    struct sv all = *rest;
    size_t n = 0;

    if (!all.p)
        return false;
    while (n < all.n && all.p[n] != '\n' && all.p[n] != '\r')
        n++;
    *line = (struct sv){all.p, n};
    if (n == all.n) {
        *rest = (struct sv){NULL, 0};
        return true;
    }
    n += all.p[n] == '\r' && n + 1 < all.n && all.p[n + 1] == '\n' ? 2 : 1;
    *rest = (struct sv){all.p + n, all.n - n};
    return true;
}
