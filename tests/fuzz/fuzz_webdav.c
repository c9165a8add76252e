/* What a WebDAV server answers: a multi-status whole and in pieces gives the same items; challenges and error bodies
 * are read without harm. */
#include "drive/api/http_auth.h"
#include "drive/webdav/xml.h"
#include "fuzz.h"

static bool note(void *arg, const struct dav_item *it)
{
    struct buf *log = arg;
    MUST(it->href);
    MUST(!buf_appendf(log, "%s %d %d %lld %s|", it->href, it->status, it->folder, (long long)it->size,
                      it->etag ? it->etag : ""));
    return true;
}

/* step 0: all at once; else pieces of 1..step bytes. */
static enum err feed(const char *p, size_t n, size_t step, struct buf *log)
{
    buf_init(log, 64 << 20);
    struct dav_multistatus *m = dav_multistatus_new(note, log);
    enum err err = ERR_OK;
    for (size_t at = 0; at < n && !err;) {
        size_t piece = step ? 1 + at % step : n;
        if (piece > n - at)
            piece = n - at;
        err = dav_multistatus_feed(m, p + at, piece);
        at += piece;
    }
    if (!err)
        err = dav_multistatus_end(m);
    dav_multistatus_free(&m);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv text = {(const char *)data, size};
    struct buf whole, split;
    struct http_auth auth = {0};
    char sentence[200];
    enum err err = feed(text.p, size, 0, &whole);
    bool same = feed(text.p, size, 5, &split) == err;
    /* Of a broken answer libxml2 may show more or less before it finds the fault. */
    MUST(same && (err || (whole.len == split.len && memcmp(buf_cstr(&whole), buf_cstr(&split), whole.len) == 0)));
    buf_done(&whole);
    buf_done(&split);
    dav_error_text(text, sentence, sizeof sentence);
    http_auth_challenge(&auth, text);
    return 0;
}
