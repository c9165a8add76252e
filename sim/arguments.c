#include "sim/arguments.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <string.h>

#define WORDS_MAX 65536

/* "http://user:password@host/": up to the last '@' before the path, since a raw one may stand in the password. */
static enum err put_url(struct buf *out, const char *word, const char *authority)
{
    size_t n = strcspn(authority, "/?#");
    const char *colon = memchr(authority, ':', n), *at = NULL;
    for (size_t i = 0; i < n; i++)
        at = authority[i] == '@' ? authority + i : at;
    if (!at || !colon || colon > at)
        return buf_append_str(out, word);
    enum err e = buf_append(out, word, (size_t)(colon + 1 - word));
    if (!e)
        e = buf_append_str(out, "***");
    return e ? e : buf_append_str(out, at);
}

/* "Authorization: Bearer abc", also behind "--header=" or "-H". */
static const char *header_value(const char *word)
{
    const char *colon = strstr(word, ": ");
    return colon && !memchr(word, ' ', (size_t)(colon - word)) ? colon + 2 : NULL;
}

static enum err put_word(struct buf *out, const char *word)
{
    const char *authority = strstr(word, "://"), *value = header_value(word);
    if (authority)
        return put_url(out, word, authority + 3);
    if (!value)
        return buf_append_str(out, word);
    enum err e = buf_append(out, word, (size_t)(value - word));
    return e ? e : buf_append_str(out, "***");
}

static enum err put_all(struct buf *out, int argc, char *const *argv)
{
    enum err e = ERR_OK;
    for (int i = 1; i < argc && !e; i++) {
        const char *quote = !*argv[i] || strpbrk(argv[i], " \t\"$&;|<>*?()") ? "'" : "";
        if (i > 1)
            e = buf_append_char(out, ' ');
        if (!e)
            e = buf_append_str(out, quote);
        if (!e)
            e = put_word(out, argv[i]);
        if (!e)
            e = buf_append_str(out, quote);
    }
    return e;
}

char *arguments_tell(char *dst, size_t n, int argc, char *const *argv)
{
    struct buf words = BUF_INIT(WORDS_MAX), shown = BUF_INIT(n);
    (void)!put_all(&words, argc, argv); /* what is too long is cut anyway */
    if (words.len)
        log_redact(words.data);
    if (str_escape(&shown, sv_of(buf_cstr(&words)), n - 4) != ERR_OK)
        buf_reset(&shown);
    str_format(dst, n, "%s", buf_cstr(&shown));
    buf_done(&words);
    buf_done(&shown);
    return dst;
}
