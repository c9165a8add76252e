#ifndef BASE_RNG_H
#define BASE_RNG_H
/* A pseudo-random stream per actor: xoshiro256** (Blackman & Vigna 2018) seeded by splitmix64 from (seed, stream), so
 * that the same seed plans the same actions whatever the interleaving. Not for secrets (digest_random is). Layer 0. */
#include <stdint.h>
struct rng {
    uint64_t s[4];
};
void rng_init(struct rng *r, uint64_t seed, uint64_t stream);
uint64_t rng_u64(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* unbiased in [0,n); n > 0 */
double rng_unit(struct rng *r);                /* [0,1) */
double rng_exp(struct rng *r, double mean);    /* exponential: the gaps of a Poisson process */
double rng_normal(struct rng *r);              /* mean 0, sd 1 */
double rng_lognormal(struct rng *r, double mu, double sigma);
/* Index drawn in proportion to weights[0..n). */
unsigned rng_weighted(struct rng *r, const double *weights, unsigned n);
uint64_t rng_mix64(uint64_t x); /* splitmix64 finaliser: a hash of x */
#endif
