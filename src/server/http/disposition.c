#include "server/http/disposition.h"

#include <string.h>

static enum err write_ascii(struct buf *out, const char *name)
{
    enum err e = ERR_OK;
    for (const unsigned char *p = (const unsigned char *)name; *p && e == ERR_OK; p++) {
        bool plain = *p >= ' ' && *p < 0x7f && *p != '"' && *p != '\\' && *p != '%';
        if (plain)
            e = buf_append_char(out, (char)*p);
        else if ((*p & 0xc0) != 0x80) /* once a character, not once a byte */
            e = buf_append_char(out, '_');
    }
    return e;
}

enum err disposition_write(struct buf *out, const char *name)
{
    enum err e = buf_append_str(out, "attachment; filename=\"");
    if (e == ERR_OK)
        e = write_ascii(out, name);
    if (e == ERR_OK)
        e = buf_append_str(out, "\"; filename*=UTF-8''");
    return e == ERR_OK ? str_url_encode(out, sv_of(name), "") : e;
}

/* Digits only; a number beyond any file stays a number beyond any file. */
static bool parse_position(struct sv s, uint64_t *out)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    if (s.n == 0)
        return false;
    if (!sv_to_u64(s, out))
        *out = UINT64_MAX;
    return true;
}

enum range_kind range_parse(struct sv header, uint64_t size, uint64_t *first, uint64_t *count)
{
    struct sv rest = sv_trim(header);
    uint64_t from = 0, to = UINT64_MAX;
    if (rest.n < 6 || !sv_ieq((struct sv){rest.p, 6}, SV("bytes=")))
        return RANGE_NONE;
    rest = sv_trim((struct sv){rest.p + 6, rest.n - 6});
    const char *dash = memchr(rest.p, '-', rest.n);
    if (!dash)
        return RANGE_NONE;
    struct sv a = sv_trim((struct sv){rest.p, (size_t)(dash - rest.p)});
    struct sv b = sv_trim((struct sv){dash + 1, (size_t)(rest.p + rest.n - dash - 1)});
    if (a.n == 0) { /* the last n bytes */
        if (!parse_position(b, &from))
            return RANGE_NONE;
        if (from == 0 || size == 0)
            return RANGE_UNSATISFIABLE;
        from = from < size ? size - from : 0;
    } else {
        if (!parse_position(a, &from) || (b.n > 0 && !parse_position(b, &to)) || to < from)
            return RANGE_NONE;
        if (from >= size)
            return RANGE_UNSATISFIABLE;
    }
    if (to >= size)
        to = size - 1;
    *first = from;
    *count = to - from + 1;
    return RANGE_PART;
}

bool etag_listed(struct sv header, const char *version)
{
    struct sv item;
    while (sv_split(&header, ',', &item)) {
        item = sv_trim(item);
        if (sv_eq(item, SV("*")))
            return true;
        if (sv_starts(item, SV("W/")))
            item = (struct sv){item.p + 2, item.n - 2};
        if (item.n >= 2 && item.p[0] == '"' && item.p[item.n - 1] == '"' &&
            sv_eq_cstr((struct sv){item.p + 1, item.n - 2}, version))
            return true;
    }
    return false;
}
