#ifndef DRIVE_CGROUP_H
#define DRIVE_CGROUP_H
/* The control groups that this process lives in, its own and all above it, of version 1 and 2 (cgroups(7)): what quota
 * of processor time they have, how often it was used up, how often their memory was. A group that a namespace or a
 * mount hides is not seen. Layer 2. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CGROUP_LEVELS = 16, CGROUP_PATH_MAX = 512 };
struct cgroup { /* the folders of one controller, the innermost first */
    char paths[CGROUP_LEVELS][CGROUP_PATH_MAX];
    size_t n;
    bool v2;
};
/* From the texts of /proc/self/cgroup and /proc/self/mountinfo; root is put before each path ("": the machine's own).
 * False: no such controller is mounted. */
bool cgroup_find(struct cgroup *g, const char *cgroups, const char *mountinfo, const char *controller,
                 const char *root);

struct cgroup_cpu {
    double quota;         /* processors' worth of time, the least of all levels; 0: none */
    int64_t throttled_us; /* periods in which a quota was used up, in time: periods times their length */
};
struct cgroup_cpu cgroup_cpu(const struct cgroup *g);
/* How often a level's memory ran against its limit (memory.events: high, max, oom, oom_kill; memory.failcnt). */
uint64_t cgroup_memory(const struct cgroup *g);
#endif
