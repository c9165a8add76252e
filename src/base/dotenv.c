#include "base/dotenv.h"
#include "base/file.h"
#include "base/mem.h"
#include <errno.h>
#include <string.h>

#define FILE_BYTES_MAX (256 * 1024)

enum err dotenv_read_file(const char *file, struct buf *text, struct errinfo *ei)
{
    struct errinfo why;
    enum err err = file_read(file, text, ERR_USAGE, &why);
    if (err && (why.os_errno == ENOENT || why.os_errno == ENOTDIR))
        return ERR_OK;
    return err ? err_set(ei, err, "%s", err_message(&why)) : ERR_OK;
}

static bool unquote(struct sv *value)
{
    if (value->n == 0 || (value->p[0] != '"' && value->p[0] != '\''))
        return true;
    const char *end = memchr(value->p + 1, value->p[0], value->n - 1);
    if (!end)
        return false;
    *value = (struct sv){value->p + 1, (size_t)(end - value->p) - 1};
    return true;
}

enum err dotenv_read(const char *file, char **(*slot)(void *arg, struct sv name), void *arg, struct errinfo *ei)
{
    struct buf text = BUF_INIT(FILE_BYTES_MAX);
    enum err err = dotenv_read_file(file, &text, ei);
    struct sv rest = {buf_cstr(&text), text.len}, line, name;

    for (int i = 1; !err && sv_split(&rest, '\n', &line); i++) {
        line = sv_trim(line);
        if (sv_starts(line, SV("export ")))
            line = sv_trim((struct sv){line.p + 7, line.n - 7});
        if (line.n == 0 || line.p[0] == '#' || !memchr(line.p, '=', line.n) || !sv_split(&line, '=', &name))
            continue;
        struct sv value = sv_trim(line);
        char **dst = slot(arg, sv_trim(name));
        if (!dst)
            continue;
        if (!unquote(&value)) {
            err = err_set(ei, ERR_USAGE, "%s line %d: the quote is not closed", file, i);
            continue;
        }
        mem_free(*dst);
        *dst = value.n && value.p[0] ? mem_strndup(value.p, value.n) : NULL; /* a zero byte ends it */
    }
    buf_done(&text);
    return err;
}
