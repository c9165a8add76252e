/* Counts are drawn as quantiles, not as samples: folder i of m holds the (i + 1/2)/m quantile of the distribution, and
 * chance only decides which folder that is. A tree of 22 folders then has the shape of one of 2,194, and the exact
 * totals need hardly any correction. */
#include "seed/shape.h"
#include "base/mem.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>

#define FOLDERS_AT_1 2194
#define FILES_AT_1   16787
#define OFFSET       2.36 /* of the inverse polynomial, degree 2 (Impressions, table 2) */
#define POISSON_MEAN 6.49 /* files by depth (the same table) */
#define FILES_MOST   100000

/* Random streams of one account; each use has one of its own, so that no part shifts another. */
enum stream { STREAM_PARENTS = 1, STREAM_HOT, STREAM_PLACES, STREAM_SPREAD, STREAM_SIZES };

static struct rng stream_of(uint64_t seed, uint64_t account, enum stream use)
{
    struct rng r;
    rng_init(&r, seed, account * 64 + (uint64_t)use);
    return r;
}

static uint32_t rounded(double v)
{
    return v < 1 ? 1 : (uint32_t)(v + 0.5);
}

struct shape_counts shape_counts_of(double scale)
{
    struct shape_counts c = {rounded(FOLDERS_AT_1 * scale), rounded(FILES_AT_1 * scale), 0, 0};
    c.hot_folders = rounded(c.folders / 100.0);
    c.hot_files = c.folders > c.hot_folders ? rounded(c.files / 5.0) : c.files;
    return c;
}

/* A folder's chance to be the next parent is its subfolders + 2: two tickets at birth, one more for each child, the
 * root included. Full depth is no parent: the ticket is drawn again. */
static void make_parents(struct shape *s, struct rng *r)
{
    size_t n = s->counts.folders, tickets = 2;
    uint32_t *bag = mem_alloc((2 + 3 * n) * sizeof *bag);
    bag[0] = bag[1] = SHAPE_ROOT;
    for (uint32_t i = 0; i < n;) {
        uint32_t parent = bag[rng_below(r, tickets)];
        unsigned depth = parent == SHAPE_ROOT ? 1 : s->folders[parent].depth + 1u;
        if (depth > SHAPE_DEPTH_MAX)
            continue;
        s->folders[i] = (struct shape_folder){.parent = parent, .depth = (uint8_t)depth};
        if (depth > s->depth)
            s->depth = depth;
        bag[tickets++] = parent;
        bag[tickets++] = i;
        bag[tickets++] = i;
        i++;
    }
    mem_free(bag);
}

static double weight(unsigned n)
{
    return 1 / ((n + OFFSET) * (n + OFFSET));
}

/* The m quantiles of P(n) cut at most; returns their sum. */
static uint64_t quantiles(uint32_t *counts, size_t m, unsigned most)
{
    double total = 0, below = weight(0);
    uint64_t sum = 0;
    unsigned n = 0;
    for (unsigned i = 0; i <= most; i++)
        total += weight(i);
    for (size_t i = 0; i < m; i++) {
        while (n < most && below < (i + 0.5) / (double)m * total)
            below += weight(++n);
        counts[i] = n;
        sum += n;
    }
    return sum;
}

/* Counts of the ordinary folders, ascending, with the exact total and none above most. The cut of the distribution is
 * the largest that does not exceed the total; what is still missing goes one by one to random folders. */
static void ordinary_counts(uint32_t *counts, size_t m, uint64_t total, unsigned most, struct rng *r)
{
    unsigned low = 0, high = most;
    while (low < high) {
        unsigned mid = low + (high - low + 1) / 2;
        if (quantiles(counts, m, mid) <= total)
            low = mid;
        else
            high = mid - 1;
    }
    uint64_t sum = quantiles(counts, m, low);
    bool room = (uint64_t)m * most >= total;
    while (sum < total) {
        size_t i = rng_below(r, m);
        if (room && counts[i] >= most)
            continue;
        counts[i]++;
        sum++;
    }
}

struct pool { /* folders of one depth that have no files assigned yet */
    uint32_t *members;
    size_t n;
    double need; /* files still wanted at this depth */
};

/* Gives counts (largest last) to folders so that the files a depth follow the study's Poisson distribution: the largest
 * first, each to a depth drawn by what it still needs. */
static void place_counts(struct shape *s, const uint32_t *counts, size_t n, struct pool *pools, bool hot, struct rng *r)
{
    for (size_t i = n; i-- > 0;) {
        double w[SHAPE_DEPTH_MAX + 1] = {0};
        bool any = false;
        for (unsigned d = 1; d <= s->depth; d++) {
            if (pools[d].n && pools[d].need > 0 && counts[i] > 0)
                w[d] = pools[d].need;
            any = any || w[d] > 0;
        }
        for (unsigned d = 1; d <= s->depth && !any; d++)
            w[d] = (double)pools[d].n;
        unsigned d = rng_weighted(r, w, SHAPE_DEPTH_MAX + 1);
        size_t pick = rng_below(r, pools[d].n);
        uint32_t folder = pools[d].members[pick];
        pools[d].members[pick] = pools[d].members[--pools[d].n];
        pools[d].need -= counts[i];
        s->folders[folder].files = counts[i];
        s->folders[folder].hot = hot;
    }
}

static void make_pools(const struct shape *s, struct pool *pools)
{
    double share[SHAPE_DEPTH_MAX + 1];
    shape_file_depth_target(s->depth, share);
    for (unsigned d = 0; d <= SHAPE_DEPTH_MAX; d++)
        pools[d] = (struct pool){.need = share[d] * s->counts.files};
    for (uint32_t i = 0; i < s->counts.folders; i++)
        pools[s->folders[i].depth].n++;
    for (unsigned d = 0; d <= SHAPE_DEPTH_MAX; d++) {
        pools[d].members = mem_alloc((pools[d].n + 1) * sizeof(uint32_t));
        pools[d].n = 0;
    }
    for (uint32_t i = 0; i < s->counts.folders; i++) {
        struct pool *p = &pools[s->folders[i].depth];
        p->members[p->n++] = i;
    }
}

/* The hot folders are equal to one file, and no ordinary one is as large as the smallest of them. */
static void make_files(struct shape *s, uint64_t seed, uint64_t account)
{
    struct rng places = stream_of(seed, account, STREAM_PLACES), spread = stream_of(seed, account, STREAM_SPREAD);
    const struct shape_counts *c = &s->counts;
    struct pool pools[SHAPE_DEPTH_MAX + 1];
    size_t ordinary = c->folders - c->hot_folders;
    uint32_t *counts = mem_zalloc((c->folders + 1) * sizeof *counts);
    make_pools(s, pools);
    for (uint32_t i = 0; i < c->hot_folders; i++)
        counts[i] = c->hot_files / c->hot_folders + (i < c->hot_files % c->hot_folders);
    unsigned smallest_hot = c->hot_files / c->hot_folders;
    place_counts(s, counts, c->hot_folders, pools, true, &places);
    if (ordinary) {
        ordinary_counts(counts, ordinary, c->files - c->hot_files, smallest_hot > 1 ? smallest_hot - 1 : 1, &spread);
        place_counts(s, counts, ordinary, pools, false, &places);
    }
    for (unsigned d = 0; d <= SHAPE_DEPTH_MAX; d++)
        mem_free(pools[d].members);
    mem_free(counts);
}

void shape_make(struct shape *s, double scale, uint64_t seed, uint64_t account)
{
    struct rng parents = stream_of(seed, account, STREAM_PARENTS);
    *s = (struct shape){.counts = shape_counts_of(scale)};
    s->folders = mem_zalloc(s->counts.folders * sizeof *s->folders);
    make_parents(s, &parents);
    make_files(s, seed, account);
}

void shape_done(struct shape *s)
{
    MEM_FREE(s->folders);
    s->counts = (struct shape_counts){0};
}

/* ---- sizes ---- */

struct preset {
    const char *name;
    double mu, sigma, cap;
};
static const struct preset presets[] = {
    /* Median 12.5 KiB, most under 1 MB; the cap and the spread make scale 1 about 1 GiB. */
    [SHAPE_DRIVE] = {"drive", 9.46, 1.80, 16.0 * 1024 * 1024},
    /* Impressions' body (table 2) without its Pareto tail from 512 MB on. */
    [SHAPE_DESKTOP] = {"desktop", 9.48, 2.4566, 64.0 * 1024 * 1024},
};

bool shape_preset_parse(const char *name, enum shape_preset *out)
{
    for (size_t i = 0; i < ARRAY_LEN(presets); i++) {
        if (strcmp(presets[i].name, name) == 0) {
            *out = (enum shape_preset)i;
            return true;
        }
    }
    return false;
}

/* The normal distribution's quantile by Acklam's rational approximation (relative error 1.15e-9). */
static double normal_quantile(double p)
{
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                               1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                               6.680131188771972e+01, -1.328068155288572e+01};
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                               -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00};
    if (p > 0.5)
        return -normal_quantile(1 - p);
    if (p < 0.02425) {
        double q = sqrt(-2 * log(p));
        return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
               ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    }
    double q = p - 0.5, r = q * q;
    return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
           (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

static double size_quantile(enum shape_preset preset, double bytes_scale, double p)
{
    const struct preset *s = &presets[preset];
    double bytes = exp(s->mu + s->sigma * normal_quantile(p));
    return (bytes < s->cap ? bytes : s->cap) * bytes_scale;
}

void shape_sizes(uint64_t *sizes, size_t n, enum shape_preset preset, double bytes_scale, uint64_t seed,
                 uint64_t account)
{
    struct rng r = stream_of(seed, account, STREAM_SIZES);
    for (size_t i = 0; i < n; i++) {
        double p = ((double)i + rng_unit(&r)) / (double)n;
        double bytes = size_quantile(preset, bytes_scale, p < 1e-9 ? 1e-9 : p);
        sizes[i] = i % 200 == 100 ? 0 : bytes < 1 ? 1 : (uint64_t)bytes;
    }
    for (size_t i = n; i > 1; i--) {
        size_t j = rng_below(&r, i);
        uint64_t t = sizes[i - 1];
        sizes[i - 1] = sizes[j];
        sizes[j] = t;
    }
}

/* ---- targets ---- */

double shape_size_below(enum shape_preset preset, double bytes_scale, double bytes)
{
    const struct preset *s = &presets[preset];
    double body = bytes / bytes_scale;
    return body >= s->cap ? 1 : 0.5 * erfc((s->mu - log(body)) / (s->sigma * sqrt(2)));
}

double shape_files_probability(unsigned n)
{
    static double total;
    if (total == 0) {
        for (unsigned i = 0; i < FILES_MOST; i++)
            total += weight(i);
        total += 1 / (FILES_MOST + OFFSET); /* the rest of the series, nearly */
    }
    return weight(n) / total;
}

/* The tickets of all folders together are known at each step, so the expectation follows exactly, but for the cut,
 * whose tickets are taken at their own expectation. */
void shape_depth_expected(uint32_t folders, double expected[SHAPE_DEPTH_MAX + 1])
{
    memset(expected, 0, (SHAPE_DEPTH_MAX + 1) * sizeof *expected);
    expected[0] = 1;
    for (uint32_t i = 0; i < folders; i++) {
        double tickets[SHAPE_DEPTH_MAX] = {0}, all = 0;
        for (unsigned d = 0; d < SHAPE_DEPTH_MAX; d++) {
            tickets[d] = 2 * expected[d] + expected[d + 1];
            all += tickets[d];
        }
        for (unsigned d = 0; d < SHAPE_DEPTH_MAX; d++)
            expected[d + 1] += tickets[d] / all;
    }
}

void shape_file_depth_target(unsigned deepest, double share[SHAPE_DEPTH_MAX + 1])
{
    double p = exp(-POISSON_MEAN), total = 0;
    share[0] = 0;
    for (unsigned d = 1; d <= SHAPE_DEPTH_MAX; d++) {
        p *= POISSON_MEAN / d;
        share[d] = d <= deepest ? p : 0;
        total += share[d];
    }
    for (unsigned d = 1; d <= SHAPE_DEPTH_MAX; d++)
        share[d] /= total;
}
