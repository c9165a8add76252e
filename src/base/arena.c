#include "base/arena.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

#define ALIGN     16
#define BLOCK_MIN 256
#define BLOCK_MAX (256u << 10) /* blocks double up to here; a larger wish gets a block of its own */

struct block {
    struct block *next; /* older */
    size_t used, size;
    _Alignas(ALIGN) char data[];
};

struct arena {
    struct block *head; /* the block being filled; the first one is last in the list */
};

static struct block *block_new(size_t size, struct block *next)
{
    struct block *b = mem_alloc(sizeof *b + size);

    *b = (struct block){.next = next, .size = size};
    return b;
}

struct arena *arena_new(size_t first_block)
{
    struct arena *a = mem_alloc(sizeof *a);

    a->head = block_new(first_block < BLOCK_MIN ? BLOCK_MIN : first_block, NULL);
    return a;
}

void arena_reset(struct arena *a)
{
    while (a->head->next) {
        struct block *older = a->head->next;
        mem_free(a->head);
        a->head = older;
    }
    a->head->used = 0;
}

void arena_free(struct arena **a)
{
    if (!*a)
        return;
    arena_reset(*a);
    mem_free((*a)->head);
    MEM_FREE(*a);
}

void *arena_alloc(struct arena *a, size_t n)
{
    size_t rounded = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);

    if (rounded < n)
        mem_realloc_array(NULL, SIZE_MAX, 2); /* aborts as any impossible wish does */
    if (a->head->size - a->head->used < rounded) {
        size_t size = a->head->size < BLOCK_MAX ? a->head->size * 2 : a->head->size;
        a->head = block_new(size < rounded ? rounded : size, a->head);
    }
    void *p = a->head->data + a->head->used;
    a->head->used += rounded;
    return memset(p, 0, rounded);
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = n ? strnlen(s, n) : 0; /* an empty one may have no address */
    char *copy = arena_alloc(a, len + 1);

    if (len)
        memcpy(copy, s, len);
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = str_vformat(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    char *text = arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    str_vformat(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}
