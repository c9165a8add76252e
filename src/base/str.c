#include "base/str.h"
#include "base/utf8.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sv sv_of(const char *s)
{
    return s ? (struct sv){s, strlen(s)} : (struct sv){"", 0};
}

bool sv_eq(struct sv a, struct sv b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool sv_eq_cstr(struct sv a, const char *b)
{
    return sv_eq(a, sv_of(b));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool sv_ieq(struct sv a, struct sv b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

bool sv_starts(struct sv s, struct sv prefix)
{
    return s.n >= prefix.n && sv_eq((struct sv){s.p, prefix.n}, prefix);
}

bool sv_ends(struct sv s, struct sv suffix)
{
    return s.n >= suffix.n && sv_eq((struct sv){s.p + (s.n - suffix.n), suffix.n}, suffix);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct sv sv_trim(struct sv s)
{
    while (s.n && is_space(s.p[0]))
        s = (struct sv){s.p + 1, s.n - 1};
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* An exhausted rest is {NULL, 0}; an empty one with a pointer still holds one empty field ("a," is "a" and ""). */
bool sv_split(struct sv *rest, char sep, struct sv *head)
{
    if (!rest->p)
        return false;
    const char *at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
    if (!at) {
        *head = *rest;
        *rest = (struct sv){NULL, 0};
        return true;
    }
    *head = (struct sv){rest->p, (size_t)(at - rest->p)};
    *rest = (struct sv){at + 1, rest->n - head->n - 1};
    return true;
}

bool sv_to_u64(struct sv s, uint64_t *out)
{
    uint64_t v = 0;

    if (!s.n)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

bool sv_to_i64(struct sv s, int64_t *out)
{
    uint64_t v;
    bool minus = s.n && s.p[0] == '-';

    if (minus)
        s = (struct sv){s.p + 1, s.n - 1};
    if (!sv_to_u64(s, &v) || v > (uint64_t)INT64_MAX + minus)
        return false;
    *out = minus ? (int64_t)-v : (int64_t)v;
    return true;
}

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale_made;

static void make_c_locale(void)
{
    c_locale_made = newlocale(LC_ALL_MASK, "C", NULL);
}

/* Numbers are read and written in this locale, whatever the process or a library has set. */
static locale_t c_locale(void)
{
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale_made;
}

bool sv_to_f64(struct sv s, double *out)
{
    char text[64], *end;

    if (!s.n || s.n >= sizeof text)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!memchr("0123456789.eE+-", s.p[i], 15)) /* keeps out white space, hex, inf and nan */
            return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    double v = strtod_l(text, &end, c_locale());
    if (*end || end == text || text[0] == '+' || !isfinite(v))
        return false;
    *out = v;
    return true;
}

int str_vformat(char *dst, size_t n, const char *fmt, va_list ap)
{
    locale_t before = uselocale(c_locale());
    int len = vsnprintf(dst, n, fmt, ap);

    uselocale(before);
    return len;
}

int str_format(char *dst, size_t n, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int len = str_vformat(dst, n, fmt, ap);
    va_end(ap);
    return len;
}

static bool unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

enum err str_url_encode(struct buf *out, struct sv s, const char *keep)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < s.n && !err; i++) {
        char c = s.p[i];
        if (unreserved(c) || (keep && c && strchr(keep, c)))
            err = buf_append_char(out, c);
        else
            err = buf_appendf(out, "%%%02X", (unsigned char)c);
    }
    return err;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

enum err str_url_decode(struct buf *out, struct sv s)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < s.n && !err; i++) {
        if (s.p[i] != '%') {
            err = buf_append_char(out, s.p[i]);
            continue;
        }
        int high = s.n - i > 2 ? hex_value(s.p[i + 1]) : -1, low = high < 0 ? -1 : hex_value(s.p[i + 2]);
        if (low < 0)
            return ERR_PARSE;
        err = buf_append_char(out, (char)(high << 4 | low));
        i += 2;
    }
    return err;
}

/* C1 controls (U+0080..U+009F) act on terminals as ESC does; U+2028/2029 end lines for some readers; bidirectional
 * overrides (U+202A..202E, U+2066..2069) can make a line read as another. */
static bool dangerous(const unsigned char *p, size_t len)
{
    if (len == 1)
        return p[0] < 0x20 || p[0] == 0x7F;
    if (len == 2)
        return p[0] == 0xC2 && p[1] < 0xA0;
    return len == 3 && p[0] == 0xE2 &&
           ((p[1] == 0x80 && p[2] >= 0xA8 && p[2] <= 0xAE) || (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9));
}

enum err str_escape(struct buf *out, struct sv s, size_t max_bytes)
{
    size_t start = out->len;
    enum err err = ERR_OK;

    while (s.n && !err) {
        const unsigned char *p = (const unsigned char *)s.p;
        size_t len = utf8_next(s), take = len ? len : 1;
        bool hide = !len || dangerous(p, len);
        size_t width = hide ? take * 4 : take;
        if (out->len - start + width > max_bytes)
            return buf_append_str(out, "…");
        if (!hide)
            err = buf_append(out, p, take);
        for (size_t i = 0; hide && i < take && !err; i++)
            err = buf_appendf(out, "\\x%02x", p[i]);
        s = (struct sv){s.p + take, s.n - take};
    }
    return err;
}

char *str_shown(char *dst, size_t n, struct sv s)
{
    struct buf shown = BUF_INIT(n);

    if (str_escape(&shown, s, n - sizeof("…")) != ERR_OK)
        buf_reset(&shown);
    snprintf(dst, n, "%s", buf_cstr(&shown));
    buf_done(&shown);
    return dst;
}

bool str_fit(char *dst, size_t n, const char *src)
{
    size_t len = strlen(src);

    if (len >= n) {
        dst[0] = '\0';
        return false;
    }
    memcpy(dst, src, len + 1);
    return true;
}

char *str_bytes(char *dst, size_t n, uint64_t bytes)
{
    static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes / 1024;
    unsigned unit = 0;

    if (bytes < 1024) {
        str_format(dst, n, "%u B", (unsigned)bytes);
        return dst;
    }
    while (v >= 1023.95 && unit < 5) {
        v /= 1024;
        unit++;
    }
    str_format(dst, n, "%.1f %s", v, units[unit]);
    return dst;
}

char *str_thousands(char *dst, size_t n, uint64_t value)
{
    char digits[24], out[32];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value), used = 0;

    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    snprintf(dst, n, "%s", out);
    return dst;
}

/* "entry" and "copy", but not "day"; "process" and "box". */
static const char *plural_ending(struct sv *noun)
{
    struct sv s = *noun;
    char last = s.n ? s.p[s.n - 1] : '\0', before = s.n > 1 ? s.p[s.n - 2] : '\0';

    if (last == 'y' && !memchr("aeiou", before, 5)) {
        noun->n--;
        return "ies";
    }
    return last == 's' || last == 'x' || sv_ends(s, SV("ch")) || sv_ends(s, SV("sh")) ? "es" : "s";
}

char *str_count(char *dst, size_t n, uint64_t value, const char *noun)
{
    struct sv stem = sv_of(noun);
    const char *ending = value == 1 ? "" : plural_ending(&stem);
    char number[32];

    snprintf(dst, n, "%s " SV_FMT "%s", str_thousands(number, sizeof number, value), SV_ARG(stem), ending);
    return dst;
}

#define DAY_S  86400u
#define YEAR_S 31556952u /* the mean Gregorian one */

char *str_duration(char *dst, size_t n, int64_t us)
{
    const char *sign = us < 0 ? "-" : "";
    uint64_t v = us < 0 ? -(uint64_t)us : (uint64_t)us, s = (v + 500000) / 1000000;

    if (v < 1000)
        str_format(dst, n, "%s%u µs", sign, (unsigned)v);
    else if (v < 10000)
        str_format(dst, n, "%s%.1f ms", sign, (double)v / 1e3);
    else if (v < 999500)
        str_format(dst, n, "%s%u ms", sign, (unsigned)((v + 500) / 1000));
    else if (v < 59950000)
        str_format(dst, n, "%s%.1f s", sign, (double)v / 1e6);
    else if (s < 3600)
        str_format(dst, n, "%s%u min %u s", sign, (unsigned)(s / 60), (unsigned)(s % 60));
    else if (s < 2 * DAY_S)
        str_format(dst, n, "%s%u h %u min", sign, (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
    else if (s < 2 * YEAR_S)
        str_format(dst, n, "%s%u days", sign, (unsigned)(s / DAY_S));
    else
        str_format(dst, n, "%s%s years", sign, str_thousands((char[32]){""}, 32, s / YEAR_S));
    return dst;
}
