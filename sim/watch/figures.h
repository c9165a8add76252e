#ifndef SIM_WATCH_FIGURES_H
#define SIM_WATCH_FIGURES_H
/* The figures of a watched server: their table, how several samples of one become one, and how they are told. Layer 3,
 * pure. */
#include "base/str.h"

struct jsonw;

/* symbol, key (of JSON, CSV and stop conditions), text, decimals, what of several samples counts: their mean or most */
/* clang-format off */
#define WATCH_FIGURES(X) \
    X(CPU, "cpu_pct", "CPU %", 0, MEAN) \
    X(RUN_QUEUE, "run_queue", "run queue", 1, MEAN) \
    X(MEMORY, "memory_mib", "memory MiB", 0, MOST) \
    X(SWAP, "swap_mib", "swap MiB", 0, MOST) /* above what was in use when we came */ \
    X(SWAP_IO, "swap_pages_per_s", "swap pages/s", 0, MOST) \
    X(DISK_QUEUE, "disk_queue", "disk queue", 1, MEAN) \
    X(DISK_AWAIT, "disk_await_ms", "disk await ms", 1, MEAN) \
    X(DISK_WRITE, "disk_write_ms", "disk write ms", 1, MEAN) \
    X(DISK_BYTES, "disk_mb_per_s", "disk MB/s", 1, MEAN) \
    X(NET, "net_mb_per_s", "net MB/s", 1, MEAN) \
    X(CONNECTIONS, "connections", "connections", 0, MOST) \
    X(OPEN_FILES, "open_files", "open files", 0, MOST) \
    X(PROC_CPU, "process_cpu_pct", "process CPU %", 0, MEAN) \
    X(PROC_PSS, "process_pss_mib", "process MiB", 1, MOST) /* of it and its children, shared pages counted once */ \
    X(PROC_FILES, "process_open_files", "process files", 0, MOST) \
    X(PG_CONNECTIONS, "pg_connections", "PG connections", 0, MOST) \
    X(PG_COMMITS, "pg_commits_per_s", "PG commits/s", 1, MEAN) \
    X(PG_WAITING, "pg_locks_waited", "PG locks waited for", 0, MOST) \
    X(PG_HITS, "pg_cache_hit_pct", "PG cache hits %", 1, MEAN) \
    X(KV_CLIENTS, "redis_clients", "Redis clients", 0, MOST) \
    X(KV_OPS, "redis_ops_per_s", "Redis ops/s", 0, MEAN) \
    X(KV_MEMORY, "redis_memory_mib", "Redis MiB", 1, MOST) \
    X(STORE_CPU, "store_cpu_pct", "store CPU %", 0, MEAN) /* the stack's own */ \
    X(STORE_PSS, "store_pss_mib", "store MiB", 1, MOST)
/* clang-format on */
enum watch_figure {
#define X(sym, key, text, decimals, fold) WATCH_##sym,
    WATCH_FIGURES(X)
#undef X
        WATCH_COUNT
};
const char *watch_key(enum watch_figure f);
/* Name, value and unit: "memory 2156 MiB". */
char *watch_amount(enum watch_figure f, double value, char *dst, size_t n);
int watch_decimals(enum watch_figure f);
bool watch_find(struct sv key, enum watch_figure *out);

#define WATCH_UNKNOWN (-1.0)
struct watch_values {
    double v[WATCH_COUNT]; /* WATCH_UNKNOWN: not watched, or no two samples yet */
};

/* Samples of some time put together. Zero is its initial state. */
struct watch_fold {
    double sum[WATCH_COUNT], most[WATCH_COUNT];
    uint64_t n[WATCH_COUNT];
};
void watch_unknown(struct watch_values *v);                                /* nothing is known */
void watch_fold_in(struct watch_fold *k, const struct watch_values *v);    /* one more sample */
void watch_fold_out(const struct watch_fold *k, struct watch_values *out); /* each figure's mean or most */

/* What is known, "CPU 43 %, run queue 2.0, …"; "" when nothing is. turn: what stands between machine and services, and
 * where a line would get too long. */
char *watch_line(const struct watch_values *v, const char *turn, char *dst, size_t n);
void watch_json(const struct watch_values *v, const char *key, struct jsonw *w); /* an object of what is known */
#endif
