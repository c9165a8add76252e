#ifndef BASE_RECYCLE_H
#define BASE_RECYCLE_H
/* Memory for what takes and gives back many blocks of always the same sizes: libcurl about forty a request, a JSON text
 * one or two a value. What is given back is kept by size for the next time, at a fifth of malloc's price, by a thread
 * that has said so; the others get the system's, and any thread may free a block of any other. Aborts when memory is
 * out, as mem.h. Layer 0. */
#include <stddef.h>

void recycle_here(void); /* this thread keeps what is given back, up to 1 MiB */
void *recycle_alloc(size_t n);
void *recycle_zalloc(size_t n, size_t size);
void *recycle_realloc(void *p, size_t n);
char *recycle_strdup(const char *s);
void recycle_free(void *p); /* NULL is fine */
#endif
