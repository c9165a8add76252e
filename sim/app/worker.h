#ifndef SIM_APP_WORKER_H
#define SIM_APP_WORKER_H
/* The apps of this process and what they share, by concern: whom they are (roster.h), how far the run is (schedule.h),
 * what the server turned out to be, what is counted, what is written down. One thread. Layer 3. */
#include "drive/cmd.h"
#include "drive/ledger.h"
#include "sim/app/meter.h"
#include "sim/app/mix.h"
#include "sim/app/roster.h"
#include "sim/app/schedule.h"
#include "sim/app/storm.h"
#include "sim/app/views.h"

struct app;

struct worker_conf {
    unsigned apps, open_folders;
    double per_minute;
    int64_t window_us, timeout_us, stream_idle_us;
    int64_t poll_us; /* between two questions what changed, besides those after events; 0: a minute */
    bool spread_addresses;
    double slow_readers; /* share of the apps */
    bool own_sessions;   /* signs in for sessions of its own, which it may sign out: none that is kept is used */
    uint64_t seed;
};
struct fleet {
    struct app *apps;
    uint32_t n;
    uint32_t listed;   /* finished their first full pass */
    struct mono moved; /* when one of those passes last got on */
};
/* What the server was found to be, which is known better and better. */
struct server_kind {
    unsigned caps; /* what it may have, API_CAP_… */
    bool no_heartbeat;
    bool foreign; /* its files are none of ours: their content cannot prove itself */
};
struct run_ledger {
    struct ledger *file; /* NULL: none is kept */
    uint64_t seq;        /* of the last record */
};
struct worker {
    struct cmd_ctx *ctx;
    struct loop *loop;
    struct worker_conf conf;
    struct mix mix;
    struct roster roster;
    struct fleet fleet;
    struct schedule schedule;
    struct server_kind server;
    struct meter meter;
    uint64_t *outer_requests; /* where the command counted them before */
    struct stream_tally streams;
    struct watch *watch; /* of the server; NULL: it is not watched */
    struct run_ledger ledger;
    uint64_t run_key; /* makes the content and the names of this run its own */
};

void worker_init(struct worker *w, struct cmd_ctx *ctx, const struct worker_conf *conf);
void worker_done(struct worker *w); /* the apps are freed, no lane runs */
/* Coroutines of apps: started and counted here. */
void worker_lane(struct worker *w, void (*fn)(void *arg), void *arg);
void worker_lane_ended(struct worker *w);
/* Sleeps; ends early when the phase becomes `until` or later. False then. */
MAY_YIELD bool worker_sleep(struct worker *w, int64_t us, enum phase until);
/* Drains, and waits for the lanes that are left, which are cut after a second. */
MAY_YIELD void worker_finish(struct worker *w);
/* Only forward. Wakes the sleepers and the conductor. */
void worker_set_phase(struct worker *w, enum phase phase);
int64_t worker_poll_us(const struct worker *w);
static inline bool worker_draining(const struct worker *w)
{
    return w->schedule.phase >= PHASE_DRAIN;
}
/* "no edit locks: saves by version alone; …" into dst; "" when the server has all that an app uses. */
char *worker_fallbacks(const struct worker *w, char *dst, size_t n);
#endif
