#ifndef SIM_RUN_PLAN_H
#define SIM_RUN_PLAN_H
/* The arithmetic of a run before it starts: what it will ask of each login, of the server's budgets and of this
 * machine. An impossible plan is refused with the number that would do. Layer 3, pure except for plan_open_files. */
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

/* Open files that so many apps and logins need: per app its event stream and two connections. */
uint64_t plan_files_needed(unsigned apps, unsigned logins);
/* Raises the soft limit to what is needed. ERR_ENV with the numbers when the hard limit is lower. *limit (may be NULL)
 * gets the soft limit now in force. */
enum err plan_open_files(unsigned apps, unsigned logins, uint64_t *limit, struct errinfo *ei) WARN_UNUSED;
/* The same for so many bare connections. */
enum err plan_connections(unsigned connections, struct errinfo *ei) WARN_UNUSED;
#endif
