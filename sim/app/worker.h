#ifndef SIM_APP_WORKER_H
#define SIM_APP_WORKER_H
/* The apps of this process and what they share: accounts with their folders, logins with their sessions, counters,
 * ledger, phase. One thread; coroutines of apps are counted as lanes, and a worker is idle when none is left.
 * Layer 3. */
#include "drive/api/api.h"
#include "drive/cmd.h"
#include "drive/ledger.h"
#include "sim/app/meter.h"
#include "sim/app/mix.h"
#include "sim/app/views.h"

struct app;
struct worker;

/* One owner with its sub-users: they share the tree. */
struct account {
    struct folders *folders;
    uint32_t n_logins;         /* of those in use */
    struct delivery *delivery; /* NULL until a change is known */
    uint64_t writes;           /* acknowledged: what the account committed for its apps, locks not counted */
};
/* A session that several apps share: signed in once, renewed once when it expires. */
struct login {
    char *email;
    struct account *account;
    struct api *api;
    uint32_t index;      /* in worker.logins and in run.json */
    uint32_t generation; /* counts the sign-ins; 0: none yet */
    struct sem renewing; /* one at a time; the others then find it done */
    struct worker *w;
    struct timer early; /* renews the session before it expires, where its life is known */
};

/* SETUP: signing in, reading the tree. ARRIVE: apps start and list all their folders. MEASURE: the window asked for.
 * SETTLE: no more actions; the
 * apps take in what they were told. DRAIN: what runs is finished, nothing new begins. CUT: what still runs is given up.
 */
enum phase { PHASE_SETUP, PHASE_ARRIVE, PHASE_MEASURE, PHASE_SETTLE, PHASE_DRAIN, PHASE_CUT };

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
struct stream_tally {
    uint64_t replayed, resyncs;         /* frames: changes repeated after a reconnect; told to list everything */
    uint64_t slow_ended;                /* streams of slow readers that ended */
    uint64_t refused_in_storm;          /* 429 */
    uint32_t broken, back;              /* by the storm; opened again since */
    struct mono storm_from, storm_over; /* us 0: none; not over */
    uint64_t replayed_before, resyncs_before;
    FILE *out; /* NULL: says nothing */
};
struct worker {
    struct cmd_ctx *ctx;
    struct loop *loop;
    struct worker_conf conf;
    struct mix mix;
    struct account *accounts;
    uint32_t n_accounts;
    struct login *logins; /* in use: at most one an app */
    uint32_t n_logins;
    uint32_t logins_there; /* found; the server may have more than the apps can use */
    struct sem sign_ins;   /* how many at once */
    unsigned caps;         /* what the server is known to have */
    bool no_heartbeat;
    bool foreign; /* its files are none of ours: their content cannot prove itself */
    struct app *apps;
    uint32_t n_apps, listed; /* listed: apps that finished their first full pass */
    struct meter meter;
    struct stream_tally streams;
    struct watch *watch;          /* of the server; NULL: it is not watched */
    struct ledger *ledger;        /* NULL: none is kept */
    uint64_t ledger_seq, run_key; /* run_key: makes the content of this run its own */
    enum phase phase;
    bool settled;                 /* all was quiet at the end */
    struct mono window, progress; /* window: its start; progress: the last step of a first full pass */
    uint64_t lanes;               /* running coroutines of apps */
    struct sleeper *sleepers;
    struct done wake; /* for the coroutine that conducts the run */
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
    return w->phase >= PHASE_DRAIN;
}
/* "no edit locks: saves by version alone; …" into dst; "" when the server has all that an app uses. */
char *worker_fallbacks(const struct worker *w, char *dst, size_t n);
#endif
