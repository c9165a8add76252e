#include "server/http/page.h"
#include "base/digest.h"
#include "base/utf8.h"
#include <string.h>

#define SEPARATOR '\x1f' /* stands in no name: control characters are barred */

static const char *join(struct arena *mem, const struct page_mark *m)
{
    return arena_printf(mem, "%s%c%s%c%s%c%s", m->listing, SEPARATOR, m->type, SEPARATOR, m->id, SEPARATOR, m->key);
}

const char *page_cursor_make(struct arena *mem, const struct page_mark *mark)
{
    struct buf text = BUF_INIT(PAGE_CURSOR_MAX * 2);
    const char *plain = join(mem, mark);
    char *out = NULL;
    if (digest_base64(&text, plain, strlen(plain)) == ERR_OK) {
        out = arena_strndup(mem, buf_cstr(&text), text.len);
        for (char *p = out; *p; p++) /* the URL alphabet, unpadded: a cursor needs no escaping in a query */
            *p = *p == '+' ? '-' : *p == '/' ? '_' : *p == '=' ? '\0' : *p;
    }
    buf_done(&text);
    return out;
}

bool page_cursor_read(struct arena *mem, const char *text, const char *listing, struct page_mark *out)
{
    struct buf plain = BUF_INIT(PAGE_CURSOR_MAX);
    const char *parts[4];
    size_t n = 0;
    bool ok = strlen(text) <= PAGE_CURSOR_MAX && digest_unbase64(&plain, sv_of(text)) == ERR_OK &&
              utf8_valid((struct sv){buf_cstr(&plain), plain.len}) && !memchr(buf_cstr(&plain), 0, plain.len);
    struct sv rest = {buf_cstr(&plain), plain.len}, part;
    while (ok && n < 4 && sv_split(&rest, SEPARATOR, &part))
        parts[n++] = arena_strndup(mem, part.p, part.n);
    ok = ok && n == 4 && !sv_split(&rest, SEPARATOR, &part) && strcmp(parts[0], listing) == 0 &&
         (strcmp(parts[1], "folder") == 0 || strcmp(parts[1], "file") == 0);
    if (ok)
        *out = (struct page_mark){parts[0], parts[1], parts[3], parts[2]};
    buf_done(&plain);
    return ok;
}
