#include "base/file.h"
#include "base/str.h"

#include <stdio.h>

enum err file_read(const char *path, struct buf *out, enum err failure, struct errinfo *ei)
{
    char piece[16384], most[32];
    enum err e = ERR_OK;
    size_t n;
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_sys(ei, failure, "cannot read %s", path);
    while (e == ERR_OK && (n = fread(piece, 1, sizeof(piece), f)) > 0)
        e = buf_append(out, piece, n);
    if (e != ERR_OK)
        e = err_set(ei, failure, "%s is larger than %s", path, str_bytes(most, sizeof(most), out->max));
    else if (ferror(f))
        e = err_sys(ei, failure, "cannot read %s", path);
    fclose(f);
    return e;
}
