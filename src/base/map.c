/* Chained buckets: removing is plain, and a walk that removes entries needs no tombstones. */
#include "base/map.h"
#include "base/hash.h"
#include "base/mem.h"
#include <string.h>

struct entry {
    struct entry *next;
    uint64_t hash;
    void *value;
    size_t n;
    char key[];
};
struct map {
    struct entry **buckets;
    size_t n_buckets, count; /* n_buckets: a power of two */
};

struct map *map_new(void)
{
    struct map *m = mem_zalloc(sizeof *m);
    m->n_buckets = 16;
    m->buckets = mem_zalloc(m->n_buckets * sizeof *m->buckets);
    return m;
}

void map_free(struct map **mp)
{
    struct map *m = *mp;
    if (!m)
        return;
    for (size_t i = 0; i < m->n_buckets; i++) {
        for (struct entry *e = m->buckets[i], *next; e; e = next) {
            next = e->next;
            mem_free(e);
        }
    }
    mem_free(m->buckets);
    MEM_FREE(*mp);
}

/* The link that points at the entry, or at the NULL where it would be. */
static struct entry **find(const struct map *m, struct sv key, uint64_t hash)
{
    struct entry **at = &m->buckets[hash & (m->n_buckets - 1)];
    while (*at && ((*at)->hash != hash || (*at)->n != key.n || memcmp((*at)->key, key.p, key.n) != 0))
        at = &(*at)->next;
    return at;
}

void *map_get(const struct map *m, struct sv key)
{
    struct entry *e = *find(m, key, hash_bytes(key.p, key.n));
    return e ? e->value : NULL;
}

static void grow(struct map *m)
{
    size_t n = m->n_buckets * 2;
    struct entry **buckets = mem_zalloc(n * sizeof(struct entry *));
    for (size_t i = 0; i < m->n_buckets; i++) {
        for (struct entry *e = m->buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = buckets[e->hash & (n - 1)];
            buckets[e->hash & (n - 1)] = e;
        }
    }
    mem_free(m->buckets);
    m->buckets = buckets;
    m->n_buckets = n;
}

void map_put(struct map *m, struct sv key, void *value)
{
    uint64_t hash = hash_bytes(key.p, key.n);
    struct entry **at = find(m, key, hash);
    if (*at) {
        (*at)->value = value;
        return;
    }
    struct entry *e = mem_alloc(sizeof *e + key.n);
    *e = (struct entry){NULL, hash, value, key.n};
    memcpy(e->key, key.p, key.n);
    *at = e;
    if (++m->count > m->n_buckets)
        grow(m);
}

void *map_take(struct map *m, struct sv key)
{
    struct entry **at = find(m, key, hash_bytes(key.p, key.n)), *e = *at;
    if (!e)
        return NULL;
    void *value = e->value;
    *at = e->next;
    mem_free(e);
    m->count--;
    return value;
}

size_t map_count(const struct map *m)
{
    return m->count;
}

void map_filter(struct map *m, bool (*fn)(void *arg, struct sv key, void *value), void *arg)
{
    for (size_t i = 0; i < m->n_buckets; i++) {
        for (struct entry **at = &m->buckets[i], *e; (e = *at) != NULL;) {
            if (fn(arg, (struct sv){e->key, e->n}, e->value)) {
                at = &e->next;
                continue;
            }
            *at = e->next;
            mem_free(e);
            m->count--;
        }
    }
}
