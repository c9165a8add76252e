/* One byte at a time but for the data: each state says what may come, and where that leads. */
#include "server/http/chunked.h"

#include <string.h>

enum chunked_state {
    SIZE,  /* of the next chunk */
    BLANK, /* behind the size: only an extension may follow */
    EXTENSION,
    QUOTED, /* in it */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER, /* the first byte of a line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    ENDED,
    BROKEN,
};

#define DIGITS_MAX 32 /* zeros in front are no harm, but not without end */

static int digit_of(unsigned char b)
{
    return b >= '0' && b <= '9' ? b - '0' : (b | 0x20) >= 'a' && (b | 0x20) <= 'f' ? (b | 0x20) - 'a' + 10 : -1;
}

static bool is_blank(unsigned char b)
{
    return b == ' ' || b == '\t';
}

/* Of a field's value, a quoted string or what stands between its parts. */
static bool is_text(unsigned char b)
{
    return (b >= 0x20 && b != 0x7f) || b == '\t';
}

static bool is_name(unsigned char b)
{
    return (b >= '0' && b <= '9') || ((b | 0x20) >= 'a' && (b | 0x20) <= 'z') || (b && strchr("!#$%&'*+-.^_`|~", b));
}

static int size_byte(struct chunked *c, unsigned char b)
{
    int digit = digit_of(b);
    if (digit >= 0) {
        if (c->left >> 56 || c->digits++ == DIGITS_MAX)
            return BROKEN;
        c->left = c->left * 16 + (unsigned)digit;
        return SIZE;
    }
    if (c->digits == 0)
        return BROKEN;
    return b == ';' ? EXTENSION : b == '\r' ? SIZE_LF : is_blank(b) ? BLANK : BROKEN;
}

static bool is_aside(int state)
{
    return state == BLANK || state == EXTENSION || state == QUOTED || state == TRAILER_NAME || state == TRAILER_VALUE;
}

static int next_state(struct chunked *c, unsigned char b)
{
    if (is_aside(c->state) && c->aside++ == CHUNKED_ASIDE_MAX)
        return BROKEN;
    switch ((enum chunked_state)c->state) {
    case SIZE:
        return size_byte(c, b);
    case BLANK:
        return b == ';' ? EXTENSION : is_blank(b) ? BLANK : BROKEN;
    case EXTENSION:
        return b == '\r' ? SIZE_LF : b == '"' ? QUOTED : is_text(b) ? EXTENSION : BROKEN;
    case QUOTED:
        return b == '"' ? EXTENSION : is_text(b) ? QUOTED : BROKEN;
    case SIZE_LF:
        return b != '\n' ? BROKEN : c->left > 0 ? DATA : TRAILER;
    case DATA_CR:
        return b == '\r' ? DATA_LF : BROKEN;
    case DATA_LF:
        c->digits = 0;
        return b == '\n' ? SIZE : BROKEN;
    case TRAILER:
        return b == '\r' ? LAST_LF : is_name(b) ? TRAILER_NAME : BROKEN;
    case TRAILER_NAME:
        return b == ':' ? TRAILER_VALUE : is_name(b) ? TRAILER_NAME : BROKEN;
    case TRAILER_VALUE:
        return b == '\r' ? TRAILER_LF : is_text(b) ? TRAILER_VALUE : BROKEN;
    case TRAILER_LF:
        return b == '\n' ? TRAILER : BROKEN;
    case LAST_LF:
        return b == '\n' ? ENDED : BROKEN;
    case DATA:
    case ENDED:
    case BROKEN:
        break;
    }
    return BROKEN;
}

enum err chunked_feed(struct chunked *c, const char *p, size_t n, size_t *used, char *dst, size_t *got, bool *end)
{
    size_t at = 0;
    *got = 0;
    while (at < n && c->state != ENDED && c->state != BROKEN) {
        if (c->state == DATA) {
            size_t take = n - at < c->left ? n - at : (size_t)c->left;
            memcpy(dst + *got, p + at, take);
            *got += take;
            at += take;
            c->left -= take;
            c->state = c->left > 0 ? DATA : DATA_CR;
            continue;
        }
        c->state = next_state(c, (unsigned char)p[at++]);
    }
    *used = at;
    *end = c->state == ENDED;
    return c->state == BROKEN ? ERR_PROTO : ERR_OK;
}
