#ifndef BASE_HASH_H
#define BASE_HASH_H
/* One string hash for every table in memory (FNV-1a, then splitmix64's finaliser so that low bits serve as an index).
 * Not for hostile keys. Layer 0. */
#include <stddef.h>
#include <stdint.h>
uint64_t hash_bytes(const void *p, size_t n);
uint64_t hash_str(const char *s);
#endif
