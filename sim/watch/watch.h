#ifndef SIM_WATCH_WATCH_H
#define SIM_WATCH_WATCH_H
/* The server watched while load runs: its machine (by /proc, here or over ssh), its processes, Postgres and Redis by
 * their own statistics. A sample a second, on the run's time axis; the newest, the averages of a lap, and the worst of
 * the whole. Nothing is installed on the other machine: ssh runs a loop of cat. One loop's thread. Layer 3. */
#include "drive/cmd.h"

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

struct watch;
/* what: "local", "pid:N", "docker:NAME", "ssh:HOST"; NULL: this machine when the server is on it, else only services.
 * Also watches the Postgres and Redis of the target, where given. ERR_USAGE for what is none of these, ERR_ENV with a
 * sentence when it cannot be watched (waited for, at most 15 s). */
MAY_YIELD enum err watch_new(struct watch **out, struct cmd_ctx *ctx, const char *what, struct errinfo *ei) WARN_UNUSED;
/* From now on each sample is a line of this CSV file. */
enum err watch_log(struct watch *w, const char *file, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD void watch_free(struct watch **w);
const struct watch_values *watch_latest(const struct watch *w);
enum watch_lap { WATCH_LAP_REPORT, WATCH_LAP_INTERVAL, WATCH_LAPS }; /* each with a course of its own */
/* Folded over the samples since the last lap of this course; begins anew. */
void watch_lap(struct watch *w, enum watch_lap which, struct watch_values *out);
void watch_whole(const struct watch *w, struct watch_values *out);
/* What is known, "CPU 43 %, run queue 2.0, …"; "" when nothing is. turn: what stands between machine and services, and
 * where a line would get too long. */
char *watch_line(const struct watch_values *v, const char *turn, char *dst, size_t n);
struct jsonw;
void watch_json(const struct watch_values *v, const char *key, struct jsonw *w); /* an object of what is known */
/* The whole as the JSON's "watch". */
void watch_result(const struct watch *w, struct result *r);
/* The option of every command that watches; it fills a const char *. */
#define WATCH_OPT(type, field)                                                                                         \
    {                                                                                                                  \
        "watch", 0, "WHAT", OPT_STR, offsetof(type, field), 0, 0,                                                      \
            "the server's machine: local, pid:N, docker:NAME or ssh:HOST\n(default: local for a server on this "       \
            "machine; "                                                                                                \
            "Postgres and\nRedis are asked where their URLs are set)"                                                  \
    }
/* Why samples stopped coming ("ssh to h ended: …"); "" while they come. */
const char *watch_problem(const struct watch *w);
#endif
