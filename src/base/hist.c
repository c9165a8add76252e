/* Values below 256 have a bucket each; every octave above is cut into 256 buckets, so that a bucket is at most 1/256 of
 * its lower end wide. Octaves are allocated when first hit: a usual histogram holds under ten of them (4 KiB each).
 * A bucket keeps its count and the sum of what lies above its lower end: the value told for it is the mean of its
 * samples, which is exact when all of them are equal. */
#include "base/hist.h"
#include "base/mem.h"
#include "base/str.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SUB_BITS 8
#define SUB      (1u << SUB_BITS)
#define OCTAVES  (64 - SUB_BITS) /* one for 0..255, then one for each leading bit 8..62 */

struct octave {
    uint64_t n[SUB];
    uint64_t above[SUB]; /* sum of (value - low end) */
};

struct hist {
    struct octave *octaves[OCTAVES];
    uint64_t count;
    __int128 sum;
    int64_t min, max;
};

struct hist *hist_new(void)
{
    return mem_zalloc(sizeof(struct hist));
}

void hist_free(struct hist **h)
{
    if (!*h)
        return;
    for (unsigned o = 0; o < OCTAVES; o++)
        mem_free((*h)->octaves[o]);
    MEM_FREE(*h);
}

/* An octave's bucket i covers [low, low + (1 << shift)). */
static unsigned octave_shift(unsigned octave)
{
    return octave ? octave - 1 : 0;
}

static int64_t bucket_low(unsigned octave, unsigned i)
{
    return (int64_t)(octave ? SUB + i : i) << octave_shift(octave);
}

static struct octave *octave_at(struct hist *h, unsigned octave)
{
    if (!h->octaves[octave])
        h->octaves[octave] = mem_zalloc(sizeof(struct octave));
    return h->octaves[octave];
}

void hist_record(struct hist *h, int64_t us)
{
    hist_record_n(h, us, 1);
}

void hist_record_n(struct hist *h, int64_t us, uint64_t n)
{
    if (!n)
        return;
    uint64_t v = us < 0 ? 0 : (uint64_t)us;
    unsigned octave = v < SUB ? 0 : 64 - SUB_BITS - (unsigned)__builtin_clzll(v);
    unsigned i = (unsigned)(v >> octave_shift(octave)) & (SUB - 1);
    struct octave *o = octave_at(h, octave);

    o->n[i] += n;
    o->above[i] += n * (v - (uint64_t)bucket_low(octave, i));
    if (!h->count || (int64_t)v < h->min)
        h->min = (int64_t)v;
    if (!h->count || (int64_t)v > h->max)
        h->max = (int64_t)v;
    h->sum += (__int128)v * (__int128)n;
    h->count += n;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    if (!from->count)
        return;
    for (unsigned k = 0; k < OCTAVES; k++) {
        if (!from->octaves[k])
            continue;
        struct octave *o = octave_at(into, k);
        for (unsigned i = 0; i < SUB; i++) {
            o->n[i] += from->octaves[k]->n[i];
            o->above[i] += from->octaves[k]->above[i];
        }
    }
    if (!into->count || from->min < into->min)
        into->min = from->min;
    if (!into->count || from->max > into->max)
        into->max = from->max;
    into->sum += from->sum;
    into->count += from->count;
}

void hist_reset(struct hist *h)
{
    for (unsigned o = 0; o < OCTAVES; o++)
        if (h->octaves[o])
            memset(h->octaves[o], 0, sizeof *h->octaves[o]);
    h->count = 0;
    h->sum = h->min = h->max = 0;
}

uint64_t hist_count(const struct hist *h)
{
    return h->count;
}

static int64_t bucket_value(const struct octave *o, unsigned octave, unsigned i)
{
    return bucket_low(octave, i) + (int64_t)((o->above[i] + o->n[i] / 2) / o->n[i]);
}

/* ceil(pct/100*n) without the rounding errors of the product: 95 % of 20 is rank 19, not 20. */
static uint64_t nearest_rank(double pct, uint64_t n)
{
    long double exact = (long double)pct * (long double)n / 100, down = floorl(exact);
    uint64_t rank = (uint64_t)(exact - down > 1e-9L ? down + 1 : down);

    return rank < 1 ? 1 : rank > n ? n : rank;
}

int64_t hist_percentile(const struct hist *h, double pct)
{
    if (!h->count)
        return -1;
    if (pct <= 0)
        return h->min;
    uint64_t rank = pct >= 100 ? h->count : nearest_rank(pct, h->count), seen = 0;
    if (rank == h->count)
        return h->max;
    for (unsigned k = 0; k < OCTAVES; k++) {
        const struct octave *o = h->octaves[k];
        for (unsigned i = 0; o && i < SUB; i++) {
            seen += o->n[i];
            if (seen >= rank)
                return bucket_value(o, k, i);
        }
    }
    return h->max;
}

double hist_percentile_ms(const struct hist *h, double pct)
{
    int64_t us = h ? hist_percentile(h, pct) : -1;
    return us < 0 ? -1 : (double)us / 1e3;
}

int64_t hist_max(const struct hist *h)
{
    return h->count ? h->max : -1;
}

double hist_mean(const struct hist *h)
{
    return h->count ? (double)((long double)h->sum / (long double)h->count) : 0;
}

/* From the buckets, in a second pass: no cancellation, and within the buckets' error. */
double hist_stddev(const struct hist *h)
{
    double mean = hist_mean(h), squares = 0;

    if (!h->count)
        return 0;
    for (unsigned k = 0; k < OCTAVES; k++)
        for (unsigned i = 0; h->octaves[k] && i < SUB; i++)
            if (h->octaves[k]->n[i]) {
                double off = (double)bucket_value(h->octaves[k], k, i) - mean;
                squares += off * off * (double)h->octaves[k]->n[i];
            }
    return sqrt(squares / (double)h->count);
}

static bool in_bucket(int64_t v, int64_t low, unsigned octave)
{
    return v >= low && v - low < INT64_C(1) << octave_shift(octave);
}

/* One bucket. The least and the most of the whole are known exactly, so they come for themselves. */
static void each_of(const struct hist *h, unsigned octave, unsigned i, hist_fn fn, void *arg)
{
    uint64_t n = h->octaves[octave]->n[i], above = h->octaves[octave]->above[i];
    int64_t low = bucket_low(octave, i);

    if (in_bucket(h->min, low, octave)) {
        fn(arg, h->min, 1);
        above -= (uint64_t)(h->min - low);
        n--;
    }
    bool most = n && in_bucket(h->max, low, octave);
    if (most) {
        above -= (uint64_t)(h->max - low);
        n--;
    }
    if (n)
        fn(arg, low + (int64_t)((above + n / 2) / n), n);
    if (most)
        fn(arg, h->max, 1);
}

void hist_each(const struct hist *h, hist_fn fn, void *arg)
{
    for (unsigned k = 0; k < OCTAVES; k++)
        for (unsigned i = 0; h->octaves[k] && i < SUB; i++)
            if (h->octaves[k]->n[i])
                each_of(h, k, i, fn, arg);
}
