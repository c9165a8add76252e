#ifndef BASE_MAP_H
#define BASE_MAP_H
/* A hash map from strings to pointers: keys are copied, values belong to the caller. Layer 0, one thread. */
#include "base/str.h"
struct map;
struct map *map_new(void);
void map_free(struct map **m);                           /* the values stay */
void *map_get(const struct map *m, struct sv key);       /* NULL when absent */
void map_put(struct map *m, struct sv key, void *value); /* adds or replaces; value not NULL */
void *map_take(struct map *m, struct sv key);            /* removes; NULL when it was absent */
size_t map_count(const struct map *m);
/* Calls fn for each entry, in no order; those for which it returns false are removed. fn must not change the map. */
void map_filter(struct map *m, bool (*fn)(void *arg, struct sv key, void *value), void *arg);
#endif
