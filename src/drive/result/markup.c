#include "drive/result/markup.h"
#include <stdbool.h>
#include <string.h>

void markup_init(struct markup *m, struct buf *out)
{
    *m = (struct markup){.out = out};
}

void markup_put(struct markup *m, const char *raw)
{
    if (!m->err)
        m->err = buf_append_str(m->out, raw);
}

void markup_putf(struct markup *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!m->err)
        m->err = buf_vappendf(m->out, fmt, ap);
    va_end(ap);
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* U+FFFE and U+FFFF are well-formed UTF-8, but no characters of XML. */
static bool is_noncharacter(const char *p, size_t n)
{
    return n >= 3 && memcmp(p, "\xef\xbf", 2) == 0 && (unsigned char)p[2] >= 0xbe;
}

static enum err put_shown(struct buf *out, const char *p, size_t n)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < n && !e; i++) {
        const char *known = entity(p[i]);
        if (is_noncharacter(p + i, n - i)) {
            e = buf_appendf(out, "\\xef\\xbf\\x%02x", (unsigned char)p[i + 2]);
            i += 2;
        } else {
            e = known ? buf_append_str(out, known) : buf_append_char(out, p[i]);
        }
    }
    return e;
}

void markup_text(struct markup *m, const char *text)
{
    struct buf shown = BUF_INIT(m->out->max);
    if (!m->err)
        m->err = str_escape(&shown, sv_of(text), SIZE_MAX);
    if (!m->err)
        m->err = put_shown(m->out, buf_cstr(&shown), shown.len);
    buf_done(&shown);
}

void markup_attribute(struct markup *m, const char *name, const char *value)
{
    markup_putf(m, " %s=\"", name);
    markup_text(m, value);
    markup_put(m, "\"");
}

void markup_element(struct markup *m, const char *tag, const char *text)
{
    markup_putf(m, "<%s>", tag);
    markup_text(m, text);
    markup_putf(m, "</%s>", tag);
}
