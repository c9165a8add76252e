#ifndef BASE_FILE_H
#define BASE_FILE_H
/* Whole files into memory. Layer 0. */
#include "base/buf.h"

/* Appends what the file holds. Whatever goes wrong is `failure`, with a sentence; ei->os_errno is ENOENT when there is
 * no such file, 0 when it is larger than out may grow. */
enum err file_read(const char *path, struct buf *out, enum err failure, struct errinfo *ei) WARN_UNUSED;
#endif
