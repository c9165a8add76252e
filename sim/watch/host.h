#ifndef SIM_WATCH_HOST_H
#define SIM_WATCH_HOST_H
/* The counters of a Linux machine, out of the text of some files of /proc, each under a line "== NAME"; and what two
 * sets of counters say of the time between them. The same text comes from here and over ssh. Layer 3, pure. */
#include "sim/watch/figures.h"

#define HOST_SNAPSHOT_MAX (1u << 20) /* bytes of such a text */

extern const char *const host_files[]; /* below /proc; ends with NULL */

struct host_counters {
    uint64_t cpu_busy, cpu_total; /* ticks, all processors together */
    uint64_t running;             /* processes on or waiting for a processor */
    uint64_t mem_used_kib, swap_used_kib, swap_pages;
    uint64_t disk_ios, disk_ms, disk_writes, disk_write_ms, disk_weighted_ms, disk_sectors;
    uint64_t net_bytes, tcp_in_use, open_files;
};
/* False: the text is none of these files. */
bool host_parse(struct sv text, struct host_counters *out);
/* elapsed_us > 0. first: the counters when watching began. Sets the host's figures. */
void host_figures(const struct host_counters *before, const struct host_counters *now,
                  const struct host_counters *first, int64_t elapsed_us, struct watch_values *out);

/* A process and all its descendants. */
struct tree_counters {
    uint64_t cpu_ticks, pss_kib, open_files;
};
bool tree_read(int64_t pid, struct tree_counters *out); /* false: the process is gone */
#endif
