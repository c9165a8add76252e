#ifndef BASE_BUF_H
#define BASE_BUF_H
/* A growing byte buffer with a hard maximum. data is always NUL-terminated once anything was appended (the NUL is not
 * counted in len). The owner calls buf_done. Not shared between threads. Layer 0. */
#include "base/err.h"
#include <stddef.h>

struct buf {
    char *data; /* NULL until the first append */
    size_t len, cap, max;
};
#define BUF_INIT(max_)                                                                                                 \
    {                                                                                                                  \
        NULL, 0, 0, (max_)                                                                                             \
    }

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);  /* frees, leaves an empty buffer with the same max */
void buf_reset(struct buf *b); /* len = 0, keeps the memory */
enum err buf_append(struct buf *b, const void *p, size_t n) WARN_UNUSED; /* ERR_LIMIT past max: nothing appended */
enum err buf_append_str(struct buf *b, const char *s) WARN_UNUSED;
enum err buf_append_char(struct buf *b, char c) WARN_UNUSED;
enum err buf_appendf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3) WARN_UNUSED;
enum err buf_vappendf(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0) WARN_UNUSED;
enum err buf_reserve(struct buf *b, size_t extra) WARN_UNUSED; /* room for extra bytes + NUL */
void buf_consume(struct buf *b, size_t n);                     /* drops the first n bytes */
char *buf_take(struct buf *b, size_t *len); /* moves the memory out (mem_free it); "" when empty; len may be NULL */
const char *buf_cstr(const struct buf *b);  /* "" when empty */
#endif
