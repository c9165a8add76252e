/* Free lists of the system's own blocks, one for each size that malloc has: what is kept may go to free() at any time,
 * and a block costs not a byte more than malloc's. Under the sanitizers nothing is kept: they want to see each block
 * freed. */
#include "base/recycle.h"

#include "base/mem.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The room in a block of glibc's is 24, 40, 56, … bytes. Another's may differ: then less is found in the lists. */
enum { STEP = 16, LEAST = 24, LISTS = 1280, ROOM_MOST = LEAST + STEP * (LISTS - 1), KEPT_MOST = 1 << 20 };

struct block {
    struct block *next;
};

static __thread bool keeps;
static __thread size_t kept_bytes;
static __thread struct block *kept[LISTS];

void recycle_here(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    keeps = true;
#endif
}

void *recycle_alloc(size_t n)
{
    size_t list = n <= LEAST ? 0 : (n - LEAST + STEP - 1) / STEP;
    struct block *b = list < LISTS ? kept[list] : NULL;
    if (b == NULL)
        return mem_alloc(n);
    kept[list] = b->next;
    kept_bytes -= LEAST + list * STEP;
    return b;
}

void recycle_free(void *p)
{
    if (p == NULL)
        return;
    size_t room = keeps ? malloc_usable_size(p) : 0, list = (room - LEAST) / STEP;
    if (room < LEAST || room > ROOM_MOST || kept_bytes + room > KEPT_MOST) {
        mem_free(p);
        return;
    }
    struct block *b = p;
    b->next = kept[list];
    kept[list] = b;
    kept_bytes += LEAST + list * STEP;
}

void *recycle_zalloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        abort();
    return memset(recycle_alloc(bytes), 0, bytes);
}

void *recycle_realloc(void *p, size_t n)
{
    size_t room = p != NULL ? malloc_usable_size(p) : 0;
    if (!keeps || n > ROOM_MOST || room > ROOM_MOST)
        return mem_realloc(p, n);
    if (n <= room && p != NULL)
        return p;
    void *q = recycle_alloc(n);
    if (room > 0)
        memcpy(q, p, room);
    recycle_free(p);
    return q;
}

char *recycle_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(recycle_alloc(n), s, n);
}
