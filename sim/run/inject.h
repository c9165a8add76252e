#ifndef SIM_RUN_INJECT_H
#define SIM_RUN_INJECT_H
/* What comes in the middle of a run, at a second of its window: big files, a bulk copy, all event streams broken at
 * once. The heavy work is counted apart from the apps' own operations, and the run's end waits for it. Layer 3. */
#include "sim/app/worker.h"
#include "sim/watch/server_watch.h"

struct injection {
    struct inject *owner;
    struct timer timer;
    int64_t at_us;            /* from the window's start; -1: none */
    struct mono began, ended; /* us 0: not yet */
};
struct inject {
    struct worker *w;
    struct server_watch *watch;
    struct injection bigfiles, bulk, storm;
    unsigned count; /* of big files */
    uint64_t bytes; /* of each */
    unsigned running;
    FILE *out;
};
/* bigfiles: "10x300@60", COUNTxMIB@SECOND, or NULL; bulk_us, storm_us -1: none. ERR_USAGE when it is malformed or
 * outside the window: inject_judge tells that alone, before there is anything. */
enum err inject_judge(const char *bigfiles, int64_t bulk_us, int64_t storm_us, int64_t window_us,
                      struct errinfo *ei) WARN_UNUSED;
enum err inject_init(struct inject *in, struct worker *w, const char *bigfiles, int64_t bulk_us, int64_t storm_us,
                     struct errinfo *ei) WARN_UNUSED;
void inject_begin(struct inject *in); /* the window begins now */
void inject_stop(struct inject *in);  /* nothing begins any more */
/* What came, as the result's part "injected", an array: {"at_seconds", "seconds", "what"}; seconds count from zero on.
 */
void inject_result(const struct inject *in, struct mono zero, struct result *r);
/* "10 x 300 MiB at 60 s, a bulk copy at 30 s" into dst; "" when there is nothing. */
char *inject_text(const struct inject *in, char *dst, size_t n);
#endif
