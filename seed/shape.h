#ifndef SEED_SHAPE_H
#define SEED_SHAPE_H
/* The tree's statistics, without names or content: how many folders, under whom, with how many files and of what sizes.
 * Counts are exact at every scale; distributions are Impressions' (Agrawal, Arpaci-Dusseau and Arpaci-Dusseau,
 * "Generating Realistic Impressions for File-System Benchmarking", FAST 2009). Same seed, same shape. Pure. Layer 3. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHAPE_DEPTH_MAX 10
#define SHAPE_ROOT      UINT32_MAX /* the parent of a top-level folder */
#define SHAPE_SCALE_MAX 100.0

struct shape_counts {
    uint32_t folders, files, hot_folders, hot_files;
};
/* 2,194 folders and 16,787 files times scale, rounded, at least one of each; one folder in a hundred is hot and the hot
 * ones hold a fifth of the files. */
struct shape_counts shape_counts_of(double scale);

struct shape_folder {
    uint32_t parent; /* an earlier folder, or SHAPE_ROOT */
    uint32_t files;
    uint8_t depth; /* 1: top level */
    bool hot;
};
struct shape {
    struct shape_counts counts;
    unsigned depth; /* of the deepest folder */
    struct shape_folder *folders;
};
void shape_make(struct shape *s, double scale, uint64_t seed, uint64_t account);
void shape_done(struct shape *s);

enum shape_preset { SHAPE_DRIVE, SHAPE_DESKTOP };
bool shape_preset_parse(const char *name, enum shape_preset *out);
/* Sizes of n files in random order: the distribution's quantiles, one a file, so that the total hardly depends on the
 * seed. One file in 200 is empty. */
void shape_sizes(uint64_t *sizes, size_t n, enum shape_preset preset, double bytes_scale, uint64_t seed,
                 uint64_t account);

/* The targets, for seed --explain and the tests. */
double shape_files_probability(unsigned n); /* a folder holds n files: P(n) = k (n + 2.36)^-2, unbounded */
void shape_depth_expected(uint32_t folders,
                          double expected[SHAPE_DEPTH_MAX + 1]); /* folders a depth, [0] is the root */
void shape_file_depth_target(unsigned deepest, double share[SHAPE_DEPTH_MAX + 1]);   /* files a depth, as shares of 1 */
double shape_size_below(enum shape_preset preset, double bytes_scale, double bytes); /* share of the files with bytes */
#endif
