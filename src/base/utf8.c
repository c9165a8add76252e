#include "base/utf8.h"

/* Bytes of the code point that the first byte begins; 0: it begins none. */
static size_t announced(unsigned char first)
{
    if (first < 0x80)
        return 1;
    return first >= 0xC2 && first <= 0xDF ? 2 : (first & 0xF0) == 0xE0 ? 3 : first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

size_t utf8_next(struct sv s)
{
    const unsigned char *p = (const unsigned char *)s.p;

    if (s.n == 0)
        return 0;
    size_t len = announced(p[0]);
    if (len < 2 || len > s.n)
        return len == 1;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xED && p[1] >= 0xA0;
    bool beyond = p[0] == 0xF4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : len;
}

uint32_t utf8_code(struct sv s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t len = announced(p[0]);
    uint32_t code = len == 1 ? p[0] : p[0] & (0xFFu >> (len + 1));

    for (size_t i = 1; i < len; i++)
        code = code << 6 | (p[i] & 0x3F);
    return code;
}

/* How far a sequence that utf8_next refuses goes well: what one replacement character stands for. */
static size_t broken_part(struct sv s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t len = announced(p[0]), n = 1;
    unsigned low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    unsigned high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;

    for (; n < len && n < s.n && p[n] >= low && p[n] <= high; n++, low = 0x80, high = 0xBF)
        ;
    return n;
}

enum err utf8_append_repaired(struct buf *out, struct sv s)
{
    enum err err = ERR_OK;

    while (s.n && !err) {
        size_t good = 0;
        for (size_t len = 1; len && good < s.n; good += len)
            len = utf8_next((struct sv){s.p + good, s.n - good});
        err = good ? buf_append(out, s.p, good) : buf_append_str(out, "\xEF\xBF\xBD");
        good = good ? good : broken_part(s);
        s = (struct sv){s.p + good, s.n - good};
    }
    return err;
}

bool utf8_valid(struct sv s)
{
    while (s.n) {
        size_t len = utf8_next(s);
        if (!len)
            return false;
        s = (struct sv){s.p + len, s.n - len};
    }
    return true;
}

bool utf8_has_controls(struct sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)s.p[i + 1] < 0xa0))
            return true;
    }
    return false;
}

size_t utf8_length(struct sv s)
{
    size_t count = 0;

    for (size_t i = 0; i < s.n; i++)
        count += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return count;
}

size_t utf8_cut(struct sv s, size_t max_bytes)
{
    if (s.n <= max_bytes)
        return s.n;
    size_t n = max_bytes;
    while (n && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return n;
}
