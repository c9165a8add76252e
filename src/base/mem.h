#ifndef BASE_MEM_H
#define BASE_MEM_H
/* Allocation that aborts when memory is out: every buffer fed from outside has a limit of its own instead. Layer 0. */
#include <stddef.h>
void *mem_alloc(size_t n); /* uninitialised; n may be 0 */
void *mem_zalloc(size_t n);
void *mem_realloc(void *p, size_t n);
void *mem_realloc_array(void *p, size_t n, size_t size); /* aborts on overflow of n*size */
char *mem_strdup(const char *s);                         /* NULL stays NULL */
char *mem_strndup(const char *s, size_t n);
void *mem_dup(const void *p, size_t n);
void mem_free(void *p);
/* Frees *p and sets it to NULL. */
#define MEM_FREE(p)                                                                                                    \
    do {                                                                                                               \
        mem_free(p);                                                                                                   \
        (p) = NULL;                                                                                                    \
    } while (0)
#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#endif
