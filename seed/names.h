#ifndef SEED_NAMES_H
#define SEED_NAMES_H
/* Names as people give them: several scripts, spaces, dates, emoji, a few very long. Every name keeps path.h's policy
 * and is in Unicode's composed form; within one folder no two names are equal, even with ASCII case folded. Layer 3. */
#include "base/arena.h"
#include "base/rng.h"

/* The names given so far in one folder. */
struct names {
    uint64_t *taken; /* hashes of folded names, open addressing; 0: empty */
    size_t n, cap;
};
void names_init(struct names *s, size_t expected);
void names_done(struct names *s);
const char *names_folder(struct names *s, struct rng *r, struct arena *mem);
/* max_bytes: 0, or what is longer loses the end of its stem. *ext: the name's extension, static; "" for a few. */
const char *names_file(struct names *s, struct rng *r, struct arena *mem, size_t max_bytes, const char **ext);
#endif
