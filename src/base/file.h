#ifndef BASE_FILE_H
#define BASE_FILE_H
/* Whole files, to and from memory. Layer 0. */
#include "base/buf.h"
#include <stdio.h>

/* Appends what the file holds. Whatever goes wrong is `failure`, with a sentence; ei->os_errno is ENOENT when there is
 * no such file, 0 when it is larger than out may grow. */
enum err file_read(const char *path, struct buf *out, enum err failure, struct errinfo *ei) WARN_UNUSED;
/* Writes text beside the file, as PATH.new, then puts it in its place: a full disk does not cost what is there. ERR_IO.
 */
enum err file_replace(const char *path, const struct buf *text, struct errinfo *ei) WARN_UNUSED;
/* Closes what was written through stdio, whose earlier failures left no errno behind: ERR_IO when any byte of it did
 * not get there. *f becomes NULL. */
enum err file_close(FILE **f, const char *path, struct errinfo *ei) WARN_UNUSED;
#endif
