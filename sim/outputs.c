#include "sim/outputs.h"
#include "base/file.h"
#include "base/secret.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (256u << 20)

void outputs_init(struct outputs *o, bool no_stdout)
{
    o->no_stdout = no_stdout;
    for (unsigned i = 0; i < RENDERING_COUNT; i++)
        o->of[i] = (struct output){.fd = -1};
}

/* "--json=FILE" or "--json FILE". */
static const char *named_by(const char *key, int i, int argc, char **argv)
{
    size_t n = strlen(key);
    if (strncmp(argv[i], "--", 2) != 0 || strncmp(argv[i] + 2, key, n) != 0)
        return NULL;
    if (argv[i][n + 2] == '=')
        return argv[i] + n + 3;
    return argv[i][n + 2] == '\0' && i + 1 < argc ? argv[i + 1] : NULL;
}

void outputs_find(const char *files[RENDERING_COUNT], int argc, char **argv)
{
    for (unsigned k = 0; k < RENDERING_COUNT; k++)
        for (int i = 1; i < argc && !files[k]; i++)
            files[k] = named_by(rendering_key((enum rendering)k), i, argc, argv);
}

static bool is_stdout(const struct output *o)
{
    return strcmp(o->file, "-") == 0;
}

/* "/dev/stdout" of a caller who has it in a file: whoever took its place would leave that file without the rest. */
static int standard_fd_of(const struct stat *st)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
            return fd;
    return -1;
}

/* What is a file is written aside when the result is there; what is none, a pipe or a device, is opened at once. */
static enum err open_one(const struct outputs *all, struct output *o, const char *file, struct errinfo *ei)
{
    struct stat st;
    if (!file)
        return ERR_OK;
    if (!*file)
        return err_set(ei, ERR_USAGE, "the result has no file to go to: its name is empty");
    o->file = file;
    if (is_stdout(o))
        return all->no_stdout ? err_set(ei, ERR_USAGE, "the result has nowhere to go: stdout is closed") : ERR_OK;
    o->older = stat(file, &st) == 0;
    int standard = o->older ? standard_fd_of(&st) : -1;
    if (standard >= 0) {
        o->older = false;
        o->fd = fcntl(standard, F_DUPFD_CLOEXEC, 3);
        return o->fd >= 0 ? ERR_OK : err_sys(ei, ERR_USAGE, "cannot write %s", file);
    }
    if (!o->older || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return file_replaceable(file, ERR_USAGE, ei);
    o->older = false;
    o->fd = open(file, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (o->fd < 0 && errno == ENXIO)
        return err_set(ei, ERR_USAGE, "cannot write %s: nobody reads from this pipe", file);
    if (o->fd < 0)
        return err_sys(ei, ERR_USAGE, "cannot write %s", file);
    fcntl(o->fd, F_SETFL, 0);
    return ERR_OK;
}

static const char *name_of(const struct output *o)
{
    return is_stdout(o) ? "stdout" : o->file;
}

/* The file, or where it would be made. */
static bool place_of(const char *file, char dst[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(file, '/');
    if (realpath(file, dst))
        return true;
    str_format(folder, sizeof(folder), "%.*s", slash && slash > file ? (int)(slash - file) : 1, slash ? file : ".");
    size_t n = realpath(folder, dst) ? strlen(dst) : 0;
    return n && str_format(dst + n, PATH_MAX - n, "/%s", slash ? slash + 1 : file) < (int)(PATH_MAX - n);
}

static bool same(const struct output *a, const struct output *b)
{
    char pa[PATH_MAX], pb[PATH_MAX];
    struct stat sa, sb;
    if (!a->file || !b->file || a->fd >= 0 || b->fd >= 0)
        return false;
    if (is_stdout(a) || is_stdout(b))
        return is_stdout(a) && is_stdout(b);
    if (stat(a->file, &sa) == 0 && stat(b->file, &sb) == 0)
        return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
    return place_of(a->file, pa) && place_of(b->file, pb) && strcmp(pa, pb) == 0;
}

/* Two forms in one place would be neither. */
static enum err all_apart(struct outputs *o, struct errinfo *ei)
{
    for (unsigned i = 0; i < RENDERING_COUNT; i++)
        for (unsigned k = i + 1; k < RENDERING_COUNT; k++)
            if (same(&o->of[i], &o->of[k])) {
                o->of[k].file = NULL;
                return err_set(ei, ERR_USAGE, "--%s and --%s cannot both go to %s", rendering_key((enum rendering)i),
                               rendering_key((enum rendering)k), name_of(&o->of[i]));
            }
    return ERR_OK;
}

enum err outputs_open(struct outputs *o, const char *const files[RENDERING_COUNT], struct errinfo *ei)
{
    struct errinfo why;
    enum err first = ERR_OK;
    for (unsigned i = 0; i < RENDERING_COUNT; i++) {
        enum err e = open_one(o, &o->of[i], files[i], first ? &why : ei);
        if (e != ERR_OK)
            o->of[i].file = NULL;
        first = first ? first : e;
    }
    return first ? first : all_apart(o, ei);
}

bool outputs_take_stdout(const struct outputs *o)
{
    for (unsigned i = 0; i < RENDERING_COUNT; i++)
        if (o->of[i].file && is_stdout(&o->of[i]))
            return true;
    return false;
}

/* ---- writing ---- */

static bool wanted(const struct output *o, bool refused)
{
    return o->file && !(refused && o->older);
}

static enum err make(enum rendering which, const struct doc *d, struct buf *out)
{
    struct buf whole = BUF_INIT(TEXT_MAX);
    enum err e = rendering_make(which, d, &whole);
    struct sv made = {buf_cstr(&whole), whole.len};
    if (e == ERR_OK) /* what an HDR log holds is packed: nothing in it is a text */
        e = which == RENDERING_HDR ? buf_append(out, made.p, made.n) : secret_hide(out, made);
    buf_done(&whole);
    return e;
}

static enum err write_one(struct output *o, enum rendering which, const struct doc *d, bool *reader_gone,
                          struct errinfo *ei)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    enum err e = make(which, d, &text);
    if (e != ERR_OK)
        err_set(ei, e, "the result is too large for %s", name_of(o));
    else if (!is_stdout(o) && o->fd < 0)
        e = file_replace_packed(o->file, &text, ei);
    else if (!file_write_all(is_stdout(o) ? STDOUT_FILENO : o->fd, (struct sv){buf_cstr(&text), text.len})) {
        if (errno == EPIPE && is_stdout(o))
            *reader_gone = true;
        else
            e = err_sys(ei, ERR_IO, "cannot write %s", name_of(o));
    }
    if (o->fd >= 0 && close(o->fd) != 0 && e == ERR_OK)
        e = err_sys(ei, ERR_IO, "cannot write %s", o->file);
    o->fd = -1;
    buf_done(&text);
    return e;
}

/* ---- in the folder of a run ---- */

static enum err keep(const char *dir, const char *name, const struct buf *text, struct errinfo *ei)
{
    char path[320];
    str_format(path, sizeof(path), "%s/%s", dir, name);
    return file_replace_private(path, text, ei);
}

static enum err keep_summary(const struct result *r, struct errinfo *ei)
{
    struct buf summary = BUF_INIT(TEXT_MAX);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return err_sys(ei, ERR_IO, "cannot keep the summary");
    result_print(r, f, false);
    fclose(f);
    enum err e = buf_append(&summary, text, n);
    e = e ? err_set(ei, e, "the summary is too large") : keep(r->run_dir, DOC_SUMMARY_FILE, &summary, ei);
    free(text);
    buf_done(&summary);
    return e;
}

static enum err keep_result(const struct result *r, struct errinfo *ei)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    enum err e = result_json(r, &text);
    e = e ? err_set(ei, e, "the result is too large to be kept") : keep(r->run_dir, DOC_RESULT_FILE, &text, ei);
    buf_done(&text);
    return e ? e : keep_summary(r, ei);
}

/* ---- all of it ---- */

struct complaints {
    void (*fn)(const struct errinfo *);
    struct errinfo *first;
};

static void note(const struct complaints *c, enum err e, const struct errinfo *why)
{
    if (e == ERR_OK)
        return;
    c->fn(why);
    if (!c->first->code)
        *c->first = *why;
}

static bool any(const struct outputs *o, bool refused)
{
    for (unsigned i = 0; i < RENDERING_COUNT; i++)
        if (wanted(&o->of[i], refused))
            return true;
    return false;
}

enum err outputs_write(struct outputs *o, struct result *r, bool refused, void (*complain)(const struct errinfo *),
                       struct errinfo *ei)
{
    struct complaints c = {complain, ei};
    struct errinfo why = {0};
    struct doc *own = NULL;
    const struct doc *d = r->shown;
    if (r->run_dir[0] && !d)
        note(&c, keep_result(r, &why), &why);
    if (!any(o, refused))
        return ei->code;
    if (!d) {
        note(&c, doc_of_result(r, &own, &why), &why);
        d = own;
    }
    for (unsigned i = 0; d && i < RENDERING_COUNT; i++)
        if (wanted(&o->of[i], refused))
            note(&c, write_one(&o->of[i], (enum rendering)i, d, &r->reader_gone, &why), &why);
    doc_free(&own);
    return ei->code;
}
