#include "sim/app/pace.h"

#include <math.h>
#include <string.h>

/* Random streams of a run: what each is for. Each app has two of its own: the plan, and the jitter of everything else.
 */
enum { STREAM_TOTAL = 1, STREAM_SPLIT = 2, STREAM_APPS = 16 };

uint64_t pace_total(uint64_t seed, unsigned apps, double per_minute, int64_t window_us)
{
    double exact = apps * per_minute * (double)window_us / (60.0 * US_PER_S);
    struct rng r;
    rng_init(&r, seed, STREAM_TOTAL);
    return (uint64_t)floor(exact + rng_unit(&r));
}

void pace_split(uint64_t seed, uint64_t total, unsigned apps, uint32_t *counts)
{
    struct rng r;
    rng_init(&r, seed, STREAM_SPLIT);
    memset(counts, 0, apps * sizeof(*counts));
    for (uint64_t i = 0; i < total; i++)
        counts[rng_below(&r, apps)]++;
}

void pace_init(struct pace *p, uint64_t seed, unsigned app, uint32_t count, int64_t window_us)
{
    *p = (struct pace){.left = count, .window_us = window_us};
    rng_init(&p->rng, seed, STREAM_APPS + 2 * (uint64_t)app);
}

/* The least of n uniform points in (at, 1): 1 - (1 - u)^(1/n) of the way. */
bool pace_next(struct pace *p, const struct mix *m, struct planned *out)
{
    if (p->left == 0)
        return false;
    double u = rng_unit(&p->rng);
    p->at += (1 - p->at) * -expm1(log1p(-u) / (double)p->left);
    p->left--;
    int64_t at = (int64_t)(p->at * (double)p->window_us);
    *out = (struct planned){.at_us = at < p->window_us ? at : p->window_us - 1,
                            .op = mix_draw(m, &p->rng),
                            .pick = rng_u64(&p->rng),
                            .pick2 = rng_u64(&p->rng)};
    return true;
}

uint64_t pace_fingerprint(uint64_t seed, unsigned apps, const uint32_t *counts, int64_t window_us, const struct mix *m)
{
    uint64_t h = rng_mix64(seed);
    for (unsigned a = 0; a < apps; a++) {
        struct pace p;
        struct planned x;
        pace_init(&p, seed, a, counts[a], window_us);
        while (pace_next(&p, m, &x))
            h = rng_mix64(h ^ rng_mix64((uint64_t)x.at_us) ^ rng_mix64(x.pick + x.op) ^ a);
    }
    return h;
}

int64_t backoff_next_us(struct backoff *b, struct rng *r, int64_t first_us, int64_t most_us)
{
    unsigned shift = b->failures < 20 ? b->failures : 20;
    int64_t step = first_us << shift;
    b->failures++;
    if (step > most_us || step <= 0)
        step = most_us;
    return step / 2 + (int64_t)(rng_unit(r) * (double)(step / 2));
}

void backoff_reset(struct backoff *b)
{
    b->failures = 0;
}

int64_t pace_throttle_wait_us(int64_t retry_after_us, unsigned tries, struct rng *r)
{
    if (retry_after_us <= 0) { /* "at once" is what it was told already */
        struct backoff b = {.failures = tries};
        return backoff_next_us(&b, r, 1 * US_PER_S, 30 * US_PER_S);
    }
    int64_t spread = retry_after_us / 10 + 100 * US_PER_MS;
    return retry_after_us + (int64_t)(rng_unit(r) * (double)spread);
}
