#ifndef SIM_APP_PACE_H
#define SIM_APP_PACE_H
/* When an app acts, and how long it waits when it has to. Actions are a Poisson process at the app's rate. It is drawn
 * by its conditional form: the number of all apps' actions in the window is what was asked for (rate x apps x time),
 * and given their number the points of a Poisson process are independent and uniform; so each falls to an app and an
 * instant at random, while a run's rate is exact instead of good to one in the root of n. The plan knows nothing of
 * answers: think time is independent of service time. The same seed plans the same actions. Layer 3, pure. */
#include "base/clock.h"
#include "sim/app/mix.h"

/* One planned action. The picks are drawn with it, so that its targets do not depend on what else the app did. */
struct planned {
    int64_t at_us; /* from the start of the window */
    enum drive_op op;
    uint64_t pick, pick2;
};
struct pace {
    struct rng rng;
    uint64_t left; /* actions not yet drawn */
    double at;     /* of the last one, as a share of the window */
    int64_t window_us;
};

/* How many actions all apps together do; the fraction is rounded up or down at random, by the seed. */
uint64_t pace_total(uint64_t seed, unsigned apps, double per_minute, int64_t window_us);
/* Gives each app its number: counts[apps], summing to total. */
void pace_split(uint64_t seed, uint64_t total, unsigned apps, uint32_t *counts);
void pace_init(struct pace *p, uint64_t seed, unsigned app, uint32_t count, int64_t window_us);
/* False when the app has no more. Times never decrease and lie within the window. */
bool pace_next(struct pace *p, const struct mix *m, struct planned *out);
/* A fingerprint of the whole plan, for run.json: two runs of one seed can be seen to plan the same. */
uint64_t pace_fingerprint(uint64_t seed, unsigned apps, const uint32_t *counts, int64_t window_us, const struct mix *m);

/* Exponential backoff with full jitter between half and the whole of the step; a success resets it. */
struct backoff {
    unsigned failures;
};
int64_t backoff_next_us(struct backoff *b, struct rng *r, int64_t first_us, int64_t most_us);
void backoff_reset(struct backoff *b);
/* How long to wait after a 429 that said retry_after_us (-1: nothing; 0 tells no more): that, and up to a tenth more so
 * that those who were refused together do not come back together. */
int64_t pace_throttle_wait_us(int64_t retry_after_us, unsigned tries, struct rng *r);
#endif
