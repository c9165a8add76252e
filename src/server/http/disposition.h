#ifndef SERVER_HTTP_DISPOSITION_H
#define SERVER_HTTP_DISPOSITION_H
/* Headers of downloads that are worth testing by themselves: the file's name, and which bytes are wanted. Pure.
 * Layer 3. */
#include "base/str.h"

/* Content-Disposition (RFC 6266): an ASCII form for old readers, what it cannot say shown as '_', and the name itself
 * as filename* in UTF-8. */
enum err disposition_write(struct buf *out, const char *name) WARN_UNUSED;

enum range_kind {
    RANGE_NONE, /* absent, malformed, or several: the whole file is the answer (RFC 9110, 14.2) */
    RANGE_PART,
    RANGE_UNSATISFIABLE
};
/* One range of Range: bytes=a-b, a-, -n. first and count are set for RANGE_PART. */
enum range_kind range_parse(struct sv header, uint64_t size, uint64_t *first, uint64_t *count);

/* If-None-Match, by weak comparison: "*" or a tag that is `"version"` or `W/"version"`. */
bool etag_listed(struct sv header, const char *version);
#endif
