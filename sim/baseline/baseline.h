#ifndef SIM_BASELINE_BASELINE_H
#define SIM_BASELINE_BASELINE_H
/* Layer by layer before a drive is judged: what disk, network, Postgres, Redis and object store give on their own, then
 * the same through the drive, each figure beside that of the layer it rests on. Layer 3. */
#include "base/mem.h"
#include "drive/cmd.h"
#include "drive/proc.h"

/* The figures in the order of the table: symbol, JSON key, text, unit, what it rests on (itself: nothing below). */
/* clang-format off */
#define BASE_ROWS(X) \
    X(DISK_IOPS, DISK, "disk_random_4k_iops", "4 KiB random writes, 32 at a time", "/s", DISK_IOPS) \
    X(DISK_16K, DISK, "disk_random_16k_mb_per_s", "16 KiB random writes, 32 at a time", "MB/s", DISK_16K) \
    X(DISK_1M, DISK, "disk_1m_mb_per_s", "1 MiB writes", "MB/s", DISK_1M) \
    X(DISK_FSYNC, DISK, "disk_fsyncs_per_s", "4 KiB written and synced, one at a time", "/s", DISK_FSYNC) \
    X(NET, NETWORK, "network_mb_per_s", "8 parallel streams", "MB/s", NET) \
    X(PG_ONE, POSTGRES, "postgres_commits_per_s", "commits of one row, one at a time", "/s", DISK_FSYNC) \
    X(PG_MANY, POSTGRES, "postgres_commits_8_per_s", "commits of one row, 8 at a time", "/s", DISK_FSYNC) \
    X(KV_TRIP, REDIS, "redis_round_trips_per_s", "round trips, one at a time", "/s", KV_TRIP) \
    X(KV_FAN, REDIS, "redis_fan_out_per_s", "messages to 20 subscribers, arrived", "/s", KV_FAN) \
    X(STORE_PUT, STORE, "store_put_4k_per_s", "4 KiB objects put, 8 at a time", "/s", DISK_FSYNC) \
    X(STORE_GET, STORE, "store_get_4k_per_s", "4 KiB objects read, 8 at a time", "/s", STORE_GET) \
    X(STORE_UP, STORE, "store_put_64m_mb_per_s", "64 MiB objects put", "MB/s", DISK_1M) \
    X(STORE_DOWN, STORE, "store_get_64m_mb_per_s", "64 MiB objects read", "MB/s", NET) \
    X(DRIVE_PUT, DRIVE, "drive_upload_4k_per_s", "4 KiB uploads, 8 at a time", "/s", STORE_PUT) \
    X(DRIVE_GET, DRIVE, "drive_download_4k_per_s", "4 KiB downloads, 8 at a time", "/s", STORE_GET) \
    X(DRIVE_SAVE, DRIVE, "drive_saves_per_s", "saves of 8 files, 8 at a time", "/s", STORE_PUT) \
    X(DRIVE_UP, DRIVE, "drive_upload_64m_mb_per_s", "64 MiB uploads", "MB/s", STORE_UP) \
    X(DRIVE_DOWN, DRIVE, "drive_download_64m_mb_per_s", "64 MiB downloads", "MB/s", STORE_DOWN)
/* clang-format on */
enum base_row {
#define X(sym, layer, key, text, unit, below) BASE_##sym,
    BASE_ROWS(X)
#undef X
        BASE_COUNT
};
enum base_layer { LAYER_DISK, LAYER_NETWORK, LAYER_POSTGRES, LAYER_REDIS, LAYER_STORE, LAYER_DRIVE, LAYER_COUNT };

#define BASE_LANES 8
#define BASE_SMALL 4096
#define BASE_LARGE (64u << 20)

struct baseline {
    struct cmd_ctx *ctx;
    int64_t each_us;         /* how long each figure is measured */
    const char *dir, *iperf; /* iperf NULL: a server of our own on this machine */
    struct proc tool;        /* that runs now; an interruption ends it */
    bool beside;             /* the drive is measured beside its database, Redis or store */
    double value[BASE_COUNT];
    bool known[BASE_COUNT];
    char why[LAYER_COUNT][200]; /* a layer that was not measured, or not whole; "" */
};
bool baseline_stopped(const struct baseline *b);                        /* interrupted: nothing more is begun */
void baseline_set(struct baseline *b, enum base_row row, double value); /* measured: in the row's own unit */

/* One operation again and again, in so many lanes, until the time is over or one fails; then the next row, until all
 * are measured, one failed, or nothing more is to begin. */
struct beat {
    struct baseline *b;
    void *arg;
    uint64_t done; /* in this row so far */
    /* used inside */
    bool (*once)(struct beat *k, unsigned lane, struct errinfo *ei);
    struct mono until;
    bool failed;
    struct errinfo why;
};
struct beat_row {
    enum base_row row;
    unsigned lanes;                                                  /* at most BASE_LANES */
    bool (*once)(struct beat *k, unsigned lane, struct errinfo *ei); /* may yield; false with *ei: it failed */
    double each;                                                     /* what one operation counts for */
};
MAY_YIELD enum err beat_rows(struct baseline *b, const struct beat_row *rows, size_t n, void *arg,
                             struct errinfo *ei) WARN_UNUSED;

/* Each measures its layer's rows. ERR_USAGE: there is nothing to measure, why says what to set; another error: it is
 * there and failed. */
MAY_YIELD enum err baseline_disk(struct baseline *b, struct errinfo *ei) WARN_UNUSED;
/* --iperf, before anything is there: ERR_USAGE when it is no host, or its port none. */
enum err baseline_judge_iperf(const char *text, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err baseline_network(struct baseline *b, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err baseline_postgres(struct baseline *b, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err baseline_redis(struct baseline *b, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err baseline_store(struct baseline *b, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err baseline_drive(struct baseline *b, struct errinfo *ei) WARN_UNUSED;
#endif
