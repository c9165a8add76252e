#ifndef SIM_RUN_PLAN_H
#define SIM_RUN_PLAN_H
/* The arithmetic of a run before it starts: what it will ask of each login and of the server's budgets. An impossible
 * plan is refused with the number that would do. Layer 3, pure. */
#include "base/err.h"
#include "sim/app/mix.h"

struct plan {
    /* given */
    unsigned apps, open_folders; /* open_folders: of one app, at most what the tree has */
    double per_minute;
    int64_t window_us;
    unsigned accounts, logins, tree_folders; /* tree_folders: of one account, on average */
    const struct mix *mix;
    int64_t poll_us; /* 0: a minute */
    bool locks, feed, events, sub_users;
    bool login_budget; /* false: requests are counted by address, one an app */
    /* computed by plan_estimate: requests of one app from its arrival on */
    double requests_15min, requests_whole;
    double login_15min, whole; /* of the busiest login in 15 minutes; of all apps in the whole run */
};

/* What an app is expected to send within the first `within_us` of the window, its first full pass included. */
double plan_app_requests(const struct plan *p, int64_t within_us);
void plan_estimate(struct plan *p);
/* The least number of logins whose stream and request budgets hold the plan; 0: one app alone is too much. */
unsigned plan_logins_needed(const struct plan *p);
/* After plan_estimate. ERR_ENV: cannot work, saying how many sub-users (or accounts) would do. */
enum err plan_check(const struct plan *p, struct errinfo *ei) WARN_UNUSED;
#endif
