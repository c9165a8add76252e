#include "sim/arguments.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/secret.h"
#include <string.h>

#define WORDS_MAX 65536
#define PARTS_MAX 32

/* ---- which words hold some ---- */

/* "--header", also with a slip or two: a mistyped option must not tell what follows it. */
static bool names_header(struct sv option)
{
    char name[16];
    if (!sv_starts(option, SV("--")) || option.n - 2 >= sizeof(name))
        return false;
    str_format(name, sizeof(name), SV_FMT, (int)option.n - 2, option.p + 2);
    return opt_distance(name, "header") <= 2;
}

/* "-H", "-kH": how many bytes up to the letter; 0: it is none. */
static size_t header_letter(const char *word)
{
    size_t n = 1;
    if (word[0] != '-' || word[1] == '-')
        return 0;
    while ((word[n] >= 'a' && word[n] <= 'z') || (word[n] >= 'A' && word[n] <= 'G'))
        n++;
    return word[n] == 'H' ? n + 1 : 0;
}

static bool is_credential(struct sv name)
{
    static const char *const marks[] = {"auth", "cookie", "key", "token", "secret", "passw", "session", "signature"};
    char low[64];
    size_t n = name.n < sizeof(low) ? name.n : 0;
    for (size_t i = 0; i < n; i++)
        low[i] = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] | 0x20) : name.p[i];
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (memmem(low, n, marks[i], strlen(marks[i])))
            return true;
    return false;
}

/* Where the header line begins in word, if it is one, by what stands before it or by its own look; else NULL. */
static const char *header_line(const char *before, const char *word)
{
    size_t name = strcspn(word, "=@"), colon = strcspn(word, ":"), letter = header_letter(word);
    size_t last = before ? header_letter(before) : 0;
    if (word[name] && names_header((struct sv){word, name}))
        return word + name + 1;
    if (letter && word[letter])
        return word + letter;
    if (before && ((last && !before[last]) || names_header(sv_of(before))))
        return word;
    if (!word[colon] || strcspn(word, " /") < colon)
        return NULL;
    return (word[colon + 1] == ' ' && colon == strcspn(word, " :")) ||
                   (word[0] != '-' && is_credential((struct sv){word, colon}))
               ? word
               : NULL;
}

/* "ann:secret@host", a URL whose scheme was forgotten; not the orders of --chaos. */
static bool lacks_scheme(const char *before, const char *word)
{
    const char *colon = strchr(word, ':'), *at = strrchr(word, '@');
    return colon && at && colon < at && word[0] != '-' && strncmp(colon, "://", 3) != 0 &&
           !(before && strncmp(before, "--", 2) == 0);
}

static size_t parts_of(const char *before, const char *word, struct sv *parts)
{
    const char *line = header_line(before, word);
    if (!line && lacks_scheme(before, word)) {
        const char *colon = strchr(word, ':') + 1;
        parts[0] = (struct sv){colon, (size_t)(strrchr(word, '@') - colon)};
        return parts[0].n > 0;
    }
    return secret_parts(sv_of(line ? line : word), line != NULL, parts, PARTS_MAX);
}

/* ---- telling ---- */

/* The word with a mark for each of its parts; false: it has none. */
static bool put_word(struct buf *out, const char *before, const char *word, enum err *e)
{
    struct sv parts[PARTS_MAX];
    size_t n = parts_of(before, word, parts);
    const char *from = word;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].p < from)
            continue; /* within the one before */
        if (!*e)
            *e = buf_append(out, from, (size_t)(parts[i].p - from));
        if (!*e)
            *e = buf_append_str(out, SECRET_MARK);
        from = parts[i].p + parts[i].n;
    }
    if (!*e)
        *e = buf_append_str(out, from);
    return n > 0;
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
        put_word(out, i > 1 ? argv[i - 1] : NULL, argv[i], &e);
        if (!e)
            e = buf_append_str(out, quote);
    }
    return e;
}

char *arguments_tell(char *dst, size_t n, int argc, char *const *argv)
{
    struct buf words = BUF_INIT(WORDS_MAX), told = BUF_INIT(2 * WORDS_MAX), shown = BUF_INIT(n);
    (void)!put_all(&words, argc, argv); /* what is too long is cut anyway */
    if (secret_hide(&told, sv_of(buf_cstr(&words))) != ERR_OK ||
        str_escape(&shown, sv_of(buf_cstr(&told)), n - 4) != ERR_OK)
        buf_reset(&shown);
    str_format(dst, n, "%s", buf_cstr(&shown));
    buf_done(&words);
    buf_done(&told);
    buf_done(&shown);
    return dst;
}

/* ---- guarding ---- */

static void register_word(const char *before, const char *word)
{
    struct sv parts[PARTS_MAX], name, rest;
    const char *line = header_line(before, word);
    size_t n = parts_of(before, word, parts);
    rest = sv_of(line);
    if (line && sv_split(&rest, ':', &name))
        secret_add_header(name, rest);
    else if (strstr(word, "//") || lacks_scheme(before, word))
        secret_add_url(word);
    else
        for (size_t i = 0; i < n; i++)
            secret_add(parts[i]);
}

/* The words one behind the other in the memory of the old ones, as the kernel shows it; what is left becomes zeros. */
static void overwrite(char *area, size_t room, const struct buf *words)
{
    size_t n = words->len < room ? words->len : room;
    memcpy(area, buf_cstr(words), n);
    memset(area + n, 0, room - n);
}

char **arguments_guard(int argc, char **argv)
{
    struct buf words = BUF_INIT(1u << 24);
    static char **copy; /* lives as long as the process, in view of whoever looks for leaks */
    copy = mem_zalloc(((size_t)argc + 1) * sizeof(*copy));
    enum err e = ERR_OK;
    bool any = false;
    for (int i = 0; i < argc; i++) {
        const char *before = i > 1 ? argv[i - 1] : NULL;
        copy[i] = mem_strdup(argv[i]);
        register_word(before, copy[i]);
        any = put_word(&words, before, copy[i], &e) || any;
        if (!e)
            e = buf_append_char(&words, '\0');
    }
    if (any)
        overwrite(argv[0], (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]), &words);
    buf_done(&words);
    return copy;
}
