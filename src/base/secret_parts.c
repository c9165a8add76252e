/* Where secrets stand in the lines that hold them: headers, URLs, settings of a database. */
#include "base/digest.h"
#include "base/mem.h"
#include "base/secret_int.h"
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 64

/* ---- what to add of a line ---- */

/* "ann:ann@": a password that is the name is known to whoever sees the name, which has to be seen. */
static bool is_the_name(struct sv word, struct sv value)
{
    size_t before = (size_t)(value.p - word.p);
    return before > value.n + 1 && value.p[-1] == ':' && value.p[-2 - (ptrdiff_t)value.n] == '/' &&
           memcmp(value.p - 1 - value.n, value.p, value.n) == 0;
}

/* As it stands, and what it stands for. */
static void add_coded(struct sv value)
{
    struct buf plain = BUF_INIT(SECRET_MAX);
    secret_add(value);
    if (str_url_decode(&plain, value) == ERR_OK && plain.len != value.n)
        secret_add((struct sv){buf_cstr(&plain), plain.len});
    buf_done(&plain);
}

void secret_add_basic(struct sv user, struct sv password)
{
    struct buf pair = BUF_INIT(SECRET_MAX), coded = BUF_INIT(2 * SECRET_MAX);
    if (buf_append(&pair, user.p, user.n) == ERR_OK && buf_append_char(&pair, ':') == ERR_OK &&
        buf_append(&pair, password.p, password.n) == ERR_OK &&
        digest_base64(&coded, buf_cstr(&pair), pair.len) == ERR_OK) {
        secret_add((struct sv){buf_cstr(&pair), pair.len});
        secret_add((struct sv){buf_cstr(&coded), coded.len});
    }
    if (!sv_eq(user, password)) /* whoever knows the name knows it */
        secret_add(password.n ? password : user);
    buf_done(&pair);
    buf_done(&coded);
}

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = memchr(digits, c == '-' ? '+' : c == '_' ? '/' : c, sizeof digits - 1);
    return at ? (int)(at - digits) : -1;
}

static void add_pair_of(struct sv coded)
{
    struct buf pair = BUF_INIT(SECRET_MAX);
    unsigned bits = 0, n = 0;
    bool fits = true;
    for (size_t i = 0; i < coded.n && coded.p[i] != '=' && fits; i++) {
        int v = base64_value(coded.p[i]);
        bits = bits << 6 | ((unsigned)v & 63);
        n += 6;
        fits = v >= 0;
        if (fits && n >= 8) {
            n -= 8;
            fits = buf_append_char(&pair, (char)(bits >> n)) == ERR_OK;
        }
    }
    struct sv rest = {buf_cstr(&pair), pair.len}, user;
    if (fits && sv_split(&rest, ':', &user))
        secret_add_basic(user, rest);
    buf_done(&pair);
}

/* "a=b; c=\"d\"": what stands behind each "=". */
static void add_parameters(struct sv value)
{
    struct sv word, name;
    for (size_t i = 0; i < value.n;) {
        size_t n = 0;
        while (i + n < value.n && value.p[i + n] != ';' && value.p[i + n] != ',')
            n++;
        word = (struct sv){value.p + i, n};
        i += n + 1;
        if (!memchr(word.p, '=', word.n) || !sv_split(&word, '=', &name))
            continue;
        word = sv_trim(word);
        if (word.n >= 2 && word.p[0] == '"' && word.p[word.n - 1] == '"')
            word = (struct sv){word.p + 1, word.n - 2};
        add_coded(word);
    }
}

static bool harmless(struct sv name)
{
    static const char *const names[] = {"Accept",
                                        "Accept-Charset",
                                        "Accept-Encoding",
                                        "Accept-Language",
                                        "Accept-Ranges",
                                        "Cache-Control",
                                        "Connection",
                                        "Content-Encoding",
                                        "Content-Type",
                                        "Content-Length",
                                        "Content-Range",
                                        "Content-Disposition",
                                        "Date",
                                        "Depth",
                                        "Expect",
                                        "Host",
                                        "If-Match",
                                        "If-None-Match",
                                        "If-Modified-Since",
                                        "Origin",
                                        "Overwrite",
                                        "Pragma",
                                        "Range",
                                        "TE",
                                        "Upgrade",
                                        "User-Agent",
                                        "Via"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (sv_ieq(name, sv_of(names[i])))
            return true;
    return false;
}

void secret_add_header(struct sv name, struct sv value)
{
    struct sv rest = sv_trim(value), scheme;
    if (harmless(sv_trim(name)))
        return;
    secret_add(value);
    add_parameters(rest);
    size_t n = 0;
    while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '\t')
        n++;
    if (n == rest.n)
        return;
    scheme = (struct sv){rest.p, n};
    rest = sv_trim((struct sv){rest.p + n, rest.n - n});
    secret_add(rest);
    if (sv_ieq(scheme, SV("Basic")))
        add_pair_of(rest);
}

/* ---- where they stand in a word ---- */

struct parts {
    struct sv *at;
    size_t n, max;
};

static void put(struct parts *p, const char *from, const char *to)
{
    if (from < to && p->n < p->max)
        p->at[p->n++] = (struct sv){from, (size_t)(to - from)};
}

static const char *find(struct sv in, const char *what)
{
    return in.n ? memmem(in.p, in.n, what, strlen(what)) : NULL;
}

/* The end of a value among settings: quotes of libpq keep blanks in it. */
static const char *setting_end(const char *p, const char *end)
{
    if (p < end && *p == '\'') {
        for (p++; p < end && *p != '\''; p++)
            if (*p == '\\' && p + 1 < end)
                p++;
        return p;
    }
    while (p < end && *p != ' ' && *p != '&' && *p != '\t' && *p != '\n')
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    return p;
}

/* "password = 'it is'", "sslpassword=x", "PGPASSWORD=x" */
static void put_settings(struct parts *p, struct sv word)
{
    const char *end = word.p + word.n, *at = word.p;
    while (at < end) {
        struct sv rest = {at, (size_t)(end - at)};
        const char *low = find(rest, "password"), *high = find(rest, "PASSWORD");
        at = !low || (high && high < low) ? high : low;
        if (!at)
            return;
        at += strlen("password");
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (at == end || *at != '=')
            continue;
        for (at++; at < end && (*at == ' ' || *at == '\t');)
            at++;
        const char *stop = setting_end(at, end);
        put(p, at + (at < end && *at == '\''), stop);
        at = stop;
    }
}

/* "?a=1&b", "#c=2": whatever a name is given, and what has no name. */
static void put_query(struct parts *p, const char *at, const char *end)
{
    while (at < end) {
        const char *stop = at, *equals = NULL;
        for (; stop < end && *stop != '&' && *stop != ';' && *stop != '#' && *stop != '?'; stop++)
            equals = !equals && *stop == '=' ? stop : equals;
        put(p, equals ? equals + 1 : at, stop);
        at = stop + 1;
    }
}

/* "http://user:password@host/?token=x". A raw '@' may stand in the password. One '/' and '?' too, by mistake, but then
 * nobody can tell: an '@' of a path is believed to be its own, unless no host stands before it. */
static void put_url(struct parts *p, struct sv word, const char *authority)
{
    const char *end = word.p + word.n, *stop = authority;
    while (stop < end && !memchr("/?#", *stop, 3))
        stop++;
    const char *at = stop > authority ? memrchr(authority, '@', (size_t)(stop - authority)) : NULL;
    const char *colon = memchr(authority, ':', (size_t)((at ? at : stop) - authority));
    struct sv port = {colon ? colon + 1 : stop, colon ? (size_t)(stop - colon) - 1 : 0};
    uint64_t number;
    if (!at && colon && *authority != '[' && !sv_to_u64(port, &number) &&
        (at = memrchr(stop, '@', (size_t)(end - stop))))
        stop = at; /* "u:pa/ss@host" */
    if (at)
        put(p, colon && colon < at ? colon + 1 : authority, at);
    while (stop < end && *stop != '?' && *stop != '#')
        stop++;
    if (stop < end)
        put_query(p, stop + 1, end);
}

/* "X-Api-Key:value", also behind "--header=" or "-H". */
static void put_header(struct parts *p, struct sv word)
{
    const char *end = word.p + word.n, *colon = memchr(word.p, ':', word.n);
    if (!colon)
        return;
    for (colon++; colon < end && (*colon == ' ' || *colon == '\t');)
        colon++;
    put(p, colon, end);
}

static int by_place(const void *a, const void *b)
{
    const struct sv *x = a, *y = b;
    return x->p < y->p ? -1 : x->p > y->p;
}

size_t secret_parts(struct sv word, bool header, struct sv *parts, size_t max)
{
    struct parts p = {parts, 0, max};
    const char *scheme = find(word, "://");
    if (header)
        put_header(&p, word);
    else if (scheme)
        put_url(&p, word, scheme + 3);
    if (!header)
        put_settings(&p, word);
    qsort(parts, p.n, sizeof *parts, by_place);
    return p.n;
}

/* A URL that is none may have its password anywhere before an '@': every piece of that is taken for one. */
static void add_broken(struct sv text)
{
    const char *at = text.n ? memrchr(text.p, '@', text.n) : NULL, *scheme = find(text, "//");
    const char *from = scheme && at && scheme < at ? scheme + 2 : text.p, *colon;
    if (!at || at == from)
        return;
    struct sv info = {from, (size_t)(at - from)};
    add_coded(info);
    if (info.n && (colon = memchr(info.p, ':', info.n)))
        add_coded((struct sv){colon + 1, (size_t)(at - colon) - 1});
}

/* Who reads a URL with a raw '/' in its password takes what stands before that for a port, and says so. */
static void add_with_pieces(struct sv value)
{
    add_coded(value);
    for (size_t i = 0, from = 0; i <= value.n; i++)
        if (i == value.n ? from > 0 : memchr("/?#:@", value.p[i], 5) != NULL) {
            add_coded((struct sv){value.p + from, i - from});
            from = i + 1;
        }
}

void secret_add_url(const char *text)
{
    struct sv parts[PARTS_MAX], word = sv_of(text);
    size_t n = secret_parts(word, false, parts, PARTS_MAX);
    for (size_t i = 0; i < n; i++)
        if (!is_the_name(word, parts[i]))
            add_with_pieces(parts[i]);
    if (n == 0)
        add_broken(word);
}
