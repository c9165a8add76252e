#ifndef SEED_CREW_H
#define SEED_CREW_H
/* Many requests at once: a crew takes items in order, each worker one at a time, and finds out how many workers pay.
 * Internal to seed/. Layer 3. */
#include "seed/seed.h"

struct crew {
    const char *what;     /* "files" */
    uint64_t units;       /* what progress counts to; 0: not known */
    uint64_t done;        /* raised by one() */
    unsigned least, most; /* at once: starts with least, tries up to most */
    MAY_YIELD void (*one)(struct seeder *s, void *arg, size_t item);
    void *arg;
    struct progress *progress; /* from here on the crew's own */
    unsigned learned;          /* how many paid last */
};
void crew_begin(struct seeder *s, struct crew *c);
/* Runs one(s, arg, 0 … items - 1), or until s->stop, as many at once as pay: measured while it runs. May be called
 * again with other items: progress goes on, and what was learned is kept. */
MAY_YIELD void crew_run(struct seeder *s, struct crew *c, size_t items);
void crew_end(struct crew *c);

#endif
