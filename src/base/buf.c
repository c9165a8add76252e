#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define FIRST_CAP 64

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void buf_done(struct buf *b)
{
    mem_free(b->data);
    buf_init(b, b->max);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

enum err buf_reserve(struct buf *b, size_t extra)
{
    if (extra > b->max || b->len > b->max - extra)
        return ERR_LIMIT;
    size_t need = b->len + extra + 1;
    if (need <= b->cap)
        return ERR_OK;
    /* The first room is what was asked for: often all that is ever needed. Growth doubles. */
    size_t cap = b->cap ? b->cap : need > FIRST_CAP ? need : FIRST_CAP;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    if (cap - 1 > b->max)
        cap = b->max + 1;
    b->data = mem_realloc(b->data, cap);
    b->cap = cap;
    b->data[b->len] = '\0';
    return ERR_OK;
}

enum err buf_append(struct buf *b, const void *p, size_t n)
{
    enum err err = n < b->cap - b->len ? ERR_OK : buf_reserve(b, n);

    if (err)
        return err;
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
    return ERR_OK;
}

enum err buf_append_str(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

enum err buf_append_char(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

/* Into the room that there is; once more when it was too little. */
enum err buf_vappendf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    size_t room = b->cap - b->len;

    va_copy(again, ap);
    int n = str_vformat(b->data ? b->data + b->len : NULL, room, fmt, again);
    va_end(again);
    enum err err = n < 0 ? ERR_PARSE : buf_reserve(b, (size_t)n);
    if (err) {
        if (room)
            b->data[b->len] = '\0';
        return err;
    }
    if ((size_t)n >= room)
        str_vformat(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return ERR_OK;
}

enum err buf_appendf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    enum err err = buf_vappendf(b, fmt, ap);
    va_end(ap);
    return err;
}

void buf_consume(struct buf *b, size_t n)
{
    if (n >= b->len) {
        buf_reset(b);
        return;
    }
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

char *buf_take(struct buf *b, size_t *len)
{
    char *data = b->data ? b->data : mem_strdup("");

    if (len)
        *len = b->len;
    buf_init(b, b->max);
    return data;
}

const char *buf_cstr(const struct buf *b)
{
    return b->data ? b->data : "";
}
