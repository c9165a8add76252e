#ifndef SERVER_HTTP_CHUNKED_H
#define SERVER_HTTP_CHUNKED_H
/* The chunked coding of a body (RFC 9112, 7.1), to the letter: what one reader takes for the end of a chunk and another
 * for its middle smuggles a request past one of them. Chunk extensions and trailers are read and dropped, together
 * CHUNKED_ASIDE_MAX bytes at most. Pure. Layer 3. */
#include "base/err.h"

#include <stddef.h>

#define CHUNKED_ASIDE_MAX (16 * 1024)

struct chunked {     /* zeroed before the first byte */
    int state;       /* enum chunked_state */
    uint64_t left;   /* of the chunk */
    unsigned digits; /* of its size, so far */
    size_t aside;
};
/* Takes at most n bytes, writes at most n to dst. *end once the last byte (trailers included) was taken; what is behind
 * it is left. ERR_PROTO on a syntax error, from then on. */
enum err chunked_feed(struct chunked *c, const char *p, size_t n, size_t *used, char *dst, size_t *got,
                      bool *end) WARN_UNUSED;
#endif
