/* What `sim report` is given: a result as JSON, or the course that a killed run left. Every form can be made of
 * whatever is taken for one. */
#include "drive/result/rendering.h"
#include "drive/result/series.h"
#include "folder.h"

static void render(const char *path, enum rendering kind)
{
    struct doc *d = NULL;
    struct errinfo ei = {0};
    if (doc_load(path, &d, &ei) != ERR_OK) {
        MUST(!d && ei.msg[0]);
        return;
    }
    struct buf out = BUF_INIT(64u << 20);
    enum err e = rendering_make(kind, d, &out);
    MUST(e == ERR_OK || e == ERR_LIMIT);
    MUST(kind != RENDERING_HTML || e || !strstr(out.data, "<script"));
    buf_done(&out);
    doc_free(&d);
}

/* The first byte says which form, and whether the rest is a result or the course in a run's folder. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *file = folder_write(SERIES_FILE, data + 1, size - 1);
    render(data[0] & 0x80 ? folder : file, (enum rendering)((data[0] & 0x7f) % RENDERING_COUNT));
    return 0;
}
