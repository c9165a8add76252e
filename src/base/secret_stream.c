/* stdio over descriptors, with the search in between. */
#include "base/file.h"
#include "base/mem.h"
#include "base/secret_int.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct stream {
    int fd;
    bool revealed, owned;
    struct buf held; /* may be the beginning of one */
};

static struct stream out_stream = {.fd = STDOUT_FILENO, .held = BUF_INIT(SECRET_TEXT_MAX)};
static struct stream err_stream = {.fd = STDERR_FILENO, .held = BUF_INIT(SECRET_TEXT_MAX)};

/* Writes what is sure of what is held; all of it when no more will come. */
static bool let_go(struct stream *s, bool more)
{
    struct buf told = BUF_INIT(SECRET_TEXT_MAX);
    struct sv text = {buf_cstr(&s->held), s->held.len};
    size_t done = text.n;
    enum err err = s->revealed ? buf_append(&told, text.p, text.n) : secret_hide_begun(&told, text, more, &done);
    buf_consume(&s->held, done);
    bool good = !err && file_write_all(s->fd, (struct sv){buf_cstr(&told), told.len});
    buf_done(&told);
    return good;
}

static ssize_t stream_write(void *arg, const char *p, size_t n)
{
    struct stream *s = arg;
    return buf_append(&s->held, p, n) == ERR_OK && let_go(s, true) ? (ssize_t)n : 0;
}

static int stream_close(void *arg)
{
    struct stream *s = arg;
    bool good = let_go(s, false);
    int rc = close(s->fd);
    buf_done(&s->held);
    mem_free(s);
    return good ? rc : -1;
}

static FILE *stream_of(struct stream *s, bool owned)
{
    const cookie_io_functions_t calls = {.write = stream_write, .close = owned ? stream_close : NULL};
    return fopencookie(s, "w", calls);
}

void secret_guard_streams(void)
{
    FILE *out = stream_of(&out_stream, false), *err = stream_of(&err_stream, false);
    if (out)
        stdout = out;
    if (err)
        stderr = err;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stderr, NULL, _IOLBF, 0);
}

bool secret_flush(void)
{
    bool good = fflush(stdout) == 0;
    fflush(stderr);
    let_go(&err_stream, false);
    return let_go(&out_stream, false) && good;
}

void secret_reveal(bool on)
{
    fflush(stdout);
    out_stream.revealed = on;
}

FILE *secret_fopen(const char *path, const char *mode)
{
    int how = strchr(mode, 'x') ? O_EXCL : *mode == 'a' ? O_APPEND : O_TRUNC;
    bool private = strchr(mode, 'p') != NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how | (private ? O_NOFOLLOW : 0), private ? 0600 : 0666);
    if (fd < 0)
        return NULL;
    struct stream *s = mem_zalloc(sizeof *s);
    s->fd = fd;
    buf_init(&s->held, SECRET_TEXT_MAX);
    FILE *f = stream_of(s, true);
    if (!f) {
        close(fd);
        mem_free(s);
    }
    return f;
}
