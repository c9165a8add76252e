#include "base/utf8.h"

size_t utf8_next(struct sv s)
{
    const unsigned char *p = (const unsigned char *)s.p;

    if (s.n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t len = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
    if (!len || len > s.n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xED && p[1] >= 0xA0;
    bool beyond = p[0] == 0xF4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : len;
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
