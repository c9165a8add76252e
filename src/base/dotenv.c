#include "base/dotenv.h"
#include "base/file.h"
#include "base/mem.h"
#include <errno.h>
#include <string.h>

#define FILE_BYTES_MAX (256 * 1024)

static enum err read_if_there(const char *file, struct buf *text, struct errinfo *ei)
{
    struct errinfo why;
    enum err err = file_read_text(file, text, ERR_USAGE, &why);
    if (err && (why.os_errno == ENOENT || why.os_errno == ENOTDIR))
        return ERR_OK;
    return err ? err_set(ei, err, "%s", err_message(&why)) : ERR_OK;
}

/* What " # …" or "\t# …" begins is a comment, in a value without quotes and behind one with them. */
static struct sv without_comment(struct sv text)
{
    for (size_t i = 1; i < text.n; i++)
        if (text.p[i] == '#' && (text.p[i - 1] == ' ' || text.p[i - 1] == '\t'))
            return sv_trim((struct sv){text.p, i});
    return text;
}

/* NULL: done; else what is wrong. */
static const char *unquote(struct sv *value)
{
    if (value->n == 0 || (value->p[0] != '"' && value->p[0] != '\''))
        *value = without_comment(*value);
    if (value->n == 0 || (value->p[0] != '"' && value->p[0] != '\''))
        return NULL;
    const char *end = memchr(value->p + 1, value->p[0], value->n - 1);
    if (!end)
        return "the quote is not closed";
    struct sv behind = {end + 1, value->n - (size_t)(end + 1 - value->p)};
    if (behind.n && *sv_trim(behind).p != '#')
        return "something follows the closing quote";
    *value = (struct sv){value->p + 1, (size_t)(end - value->p) - 1};
    return NULL;
}

static struct sv without_export(struct sv line)
{
    if (sv_starts(line, SV("export ")) || sv_starts(line, SV("export\t")))
        return sv_trim((struct sv){line.p + 7, line.n - 7});
    return line;
}

enum err dotenv_read(const char *file, char **(*slot)(void *arg, struct sv name), void *arg, struct errinfo *ei)
{
    struct buf text = BUF_INIT(FILE_BYTES_MAX);
    enum err err = read_if_there(file, &text, ei);
    struct sv rest = {buf_cstr(&text), text.len}, line, name;

    for (int i = 1; !err && sv_split(&rest, '\n', &line); i++) {
        line = without_export(sv_trim(line));
        if (line.n == 0 || line.p[0] == '#' || !memchr(line.p, '=', line.n) || !sv_split(&line, '=', &name))
            continue;
        struct sv value = sv_trim(line);
        char **dst = slot(arg, sv_trim(name));
        if (!dst)
            continue;
        const char *wrong = unquote(&value);
        if (wrong) {
            err = err_set(ei, ERR_USAGE, "%s line %d: %s", file, i, wrong);
            continue;
        }
        mem_free(*dst);
        *dst = value.n && value.p[0] ? mem_strndup(value.p, value.n) : NULL; /* a zero byte ends it */
    }
    buf_done(&text);
    return err;
}
