#include "base/rng.h"
#include <math.h>

/* splitmix64: Steele, Lea, Flood 2014; the constants of Vigna's public-domain splitmix64.c. */
uint64_t rng_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

void rng_init(struct rng *r, uint64_t seed, uint64_t stream)
{
    /* The stream is mixed first: neighbours 1, 2, 3 must not give related states. */
    uint64_t x = seed ^ rng_mix64(stream + GOLDEN);

    for (unsigned i = 0; i < 4; i++)
        r->s[i] = rng_mix64(x += GOLDEN);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

/* Lemire, "Fast Random Integer Generation in an Interval", 2019. */
uint64_t rng_below(struct rng *r, uint64_t n)
{
    unsigned __int128 m = (unsigned __int128)rng_u64(r) * n;

    if ((uint64_t)m < n) {
        uint64_t floor = -n % n;
        while ((uint64_t)m < floor)
            m = (unsigned __int128)rng_u64(r) * n;
    }
    return (uint64_t)(m >> 64);
}

double rng_unit(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_exp(struct rng *r, double mean)
{
    return -mean * log1p(-rng_unit(r));
}

/* Box and Muller, without keeping the second value: the state stays four words and replays exactly. */
double rng_normal(struct rng *r)
{
    double radius = sqrt(-2 * log1p(-rng_unit(r)));

    return radius * cos(2 * M_PI * rng_unit(r));
}

double rng_lognormal(struct rng *r, double mu, double sigma)
{
    return exp(mu + sigma * rng_normal(r));
}

unsigned rng_weighted(struct rng *r, const double *weights, unsigned n)
{
    double sum = 0;
    unsigned last = 0;

    for (unsigned i = 0; i < n; i++) {
        sum += weights[i];
        if (weights[i] > 0)
            last = i;
    }
    double at = rng_unit(r) * sum;
    for (unsigned i = 0; i < n; i++) {
        if (at < weights[i])
            return i;
        at -= weights[i];
    }
    return last; /* rounding: never an index of weight 0 */
}
