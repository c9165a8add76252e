#include "base/hash.h"
#include "base/rng.h"

#include <string.h>

uint64_t hash_bytes(const void *p, size_t n)
{
    const unsigned char *at = p;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * 1099511628211u;
    return rng_mix64(h);
}

uint64_t hash_str(const char *s)
{
    return hash_bytes(s, strlen(s));
}
