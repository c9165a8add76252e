#include "base/sorted.h"

size_t sorted_place(const void *key, const void *array, size_t n, size_t size,
                    int (*compare)(const void *, const void *))
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare((const char *)array + middle * size, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
