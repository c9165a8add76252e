#include "base/mem.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p, size_t n)
{
    if (!p) {
        fprintf(stderr, "out of memory (%zu bytes wanted)\n", n);
        abort();
    }
    return p;
}

void *mem_alloc(size_t n)
{
    return checked(malloc(n ? n : 1), n);
}

void *mem_zalloc(size_t n)
{
    return checked(calloc(1, n ? n : 1), n);
}

void *mem_realloc(void *p, size_t n)
{
    return checked(realloc(p, n ? n : 1), n);
}

void *mem_realloc_array(void *p, size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        checked(NULL, SIZE_MAX);
    return mem_realloc(p, total);
}

char *mem_strdup(const char *s)
{
    return s ? mem_dup(s, strlen(s) + 1) : NULL;
}

char *mem_strndup(const char *s, size_t n)
{
    size_t len = n ? strnlen(s, n) : 0; /* an empty one may have no address */
    char *copy = mem_alloc(len + 1);

    if (len)
        memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

void *mem_dup(const void *p, size_t n)
{
    void *copy = mem_alloc(n);

    if (n)
        memcpy(copy, p, n);
    return copy;
}

void mem_free(void *p)
{
    free(p);
}
