#ifndef SERVER_HTTP_PAGE_H
#define SERVER_HTTP_PAGE_H
/* Pages of a listing by keyset: a cursor holds where the page before ended (kind, sort key and id of its last item), so
 * that a page costs the same wherever it lies and items that come or go elsewhere move nothing. Opaque to clients, and
 * tied to the listing it came from. Pure. Layer 3. */
#include "server/http/http.h"

#define PAGE_CURSOR_MAX 600 /* a name of 255 bytes and two ids, encoded */

struct page_mark {
    const char *listing; /* "name.asc" … : what the cursor is of */
    const char *type;    /* "folder" or "file" */
    const char *key, *id;
};
/* The cursor as text in mem. */
const char *page_cursor_make(struct arena *mem, const struct page_mark *mark);
/* False when the text is no cursor, or of another listing than `listing`. */
bool page_cursor_read(struct arena *mem, const char *text, const char *listing, struct page_mark *out);
#endif
