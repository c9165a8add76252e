#include "drive/result/impl.h"

static const struct {
    const char *key;
    enum err (*make)(const struct doc *d, struct buf *out);
} rows[RENDERING_COUNT] = {
    [RENDERING_JSON] = {"json", rendering_json},
    [RENDERING_CSV] = {"csv", rendering_csv},
    [RENDERING_HTML] = {"html", rendering_html},
    [RENDERING_JUNIT] = {"junit", rendering_junit},
    [RENDERING_PROMETHEUS] = {"prometheus", rendering_prometheus},
    [RENDERING_HDR] = {"hdr", rendering_hdr},
};

const char *rendering_key(enum rendering which)
{
    return rows[which].key;
}

enum err rendering_make(enum rendering which, const struct doc *d, struct buf *out)
{
    return rows[which].make(d, out);
}

bool rendering_shows_course(enum rendering which)
{
    return which == RENDERING_HTML || which == RENDERING_HDR;
}

enum err rendering_json(const struct doc *d, struct buf *out)
{
    return buf_append(out, d->text.data, d->text.len);
}
