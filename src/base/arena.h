#ifndef BASE_ARENA_H
#define BASE_ARENA_H
/* Memory for one action or request: allocate freely, free it all at once. It has no limit of its own: what
 * is put into it was bounded where it came in. Owned by one coroutine or thread. Layer 0. */
#include "base/str.h"
struct arena;
struct arena *arena_new(size_t first_block);
void arena_free(struct arena **a);
void arena_reset(struct arena *a);                  /* keeps the first block */
void *arena_alloc(struct arena *a, size_t n);       /* 16-aligned, zeroed */
char *arena_strdup(struct arena *a, const char *s); /* NULL stays NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
#endif
