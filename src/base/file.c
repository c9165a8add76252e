#include "base/file.h"
#include "base/str.h"

#include <stdio.h>
#include <unistd.h>

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

enum err file_replace(const char *path, const struct buf *text, struct errinfo *ei)
{
    char temporary[4096];
    if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
        return err_set(ei, ERR_IO, "the path of %.60s… is too long", path);
    FILE *f = fopen(temporary, "wbe");
    if (!f)
        return err_sys(ei, ERR_IO, "cannot write %s", path);
    bool ok = fwrite(buf_cstr(text), 1, text->len, f) == text->len && fflush(f) == 0;
    enum err e = ok ? ERR_OK : err_sys(ei, ERR_IO, "cannot write %s", path);
    if (fclose(f) != 0 && e == ERR_OK)
        e = err_sys(ei, ERR_IO, "cannot write %s", path);
    if (e == ERR_OK && rename(temporary, path) != 0)
        e = err_sys(ei, ERR_IO, "cannot write %s", path);
    if (e != ERR_OK)
        unlink(temporary);
    return e;
}

enum err file_close(FILE **f, const char *path, struct errinfo *ei)
{
    bool bad = ferror(*f) != 0;
    bool last = fclose(*f) != 0;
    *f = NULL;
    if (last)
        return err_sys(ei, ERR_IO, "cannot write %s", path);
    return bad ? err_set(ei, ERR_IO, "cannot write all of %s", path) : ERR_OK;
}
