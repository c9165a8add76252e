/* Reading an answer's header block. */
#include "net/http_resp.h"

#include <string.h>

void http_resp_done(struct http_resp *r)
{
    buf_done(&r->body);
    buf_done(&r->headers);
}

void http_resp_each_header(const struct http_resp *r, const char *name, void (*fn)(void *arg, struct sv value),
                           void *arg)
{
    struct sv rest = {buf_cstr(&r->headers), r->headers.len}, line;
    while (sv_split(&rest, '\n', &line)) {
        const char *colon = memchr(line.p, ':', line.n);
        if (colon == NULL || !sv_ieq((struct sv){line.p, (size_t)(colon - line.p)}, sv_of(name)))
            continue;
        fn(arg, sv_trim((struct sv){colon + 1, (size_t)(line.p + line.n - colon - 1)}));
    }
}

static void keep_last(void *arg, struct sv value)
{
    *(struct sv *)arg = value;
}

struct sv http_resp_header(const struct http_resp *r, const char *name)
{
    struct sv value = {NULL, 0};
    http_resp_each_header(r, name, keep_last, &value);
    return value;
}
