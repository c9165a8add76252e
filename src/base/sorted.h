#ifndef BASE_SORTED_H
#define BASE_SORTED_H
/* Looking into arrays that qsort put in order: bsearch tells whether a key is there, this where it is or would be. Both
 * take the comparison that the array was sorted by, with the key's address as its one side. Layer 0. */
#include <stddef.h>

/* The place of the first element that is not below the key: where the equal ones begin, n when all are below. */
size_t sorted_place(const void *key, const void *array, size_t n, size_t size,
                    int (*compare)(const void *, const void *));
#endif
