/* What `sim report` is given: a result as JSON, or the course that a killed run left. Every form can be made of
 * whatever is taken for one. */
#include "drive/result/rendering.h"
#include "drive/result/series.h"
#include "fuzz.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void render(const char *path)
{
    struct doc *d = NULL;
    struct errinfo ei = {0};
    if (doc_load(path, &d, &ei) != ERR_OK) {
        MUST(!d && ei.msg[0]);
        return;
    }
    for (unsigned i = 0; i < RENDERING_COUNT; i++) {
        struct buf out = BUF_INIT(64u << 20);
        enum err e = rendering_make((enum rendering)i, d, &out);
        MUST(e == ERR_OK || e == ERR_LIMIT);
        MUST(i != RENDERING_HTML || e || !strstr(out.data, "<script"));
        buf_done(&out);
    }
    doc_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[] = "/tmp/drivesim-fuzz-XXXXXX", path[80];
    MUST(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/" SERIES_FILE, dir);
    put(path, data, size);
    render(path);
    render(dir);
    unlink(path);
    rmdir(dir);
    return 0;
}
