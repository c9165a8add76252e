/* The estimate errs on the high side where it has to guess: a run that ends up waiting for budgets measures the limiter
 * and not the server. */
#include "sim/run/plan.h"

#include <math.h>
#include <stdio.h>

#define BUDGET_US (15 * 60 * US_PER_S)
#define GATHER_S  2.25 /* seconds from the first event to the question, jitter included */

/* Requests an action makes, polls of a copy's job included; folders whose listing it changes. */
static const struct {
    enum drive_op op;
    double requests, requests_unlocked, folders;
} costs[] = {
    {OP_DOWNLOAD, 1, 1, 0}, {OP_SAVE, 3, 1, 1}, {OP_UPLOAD, 1, 1, 1},     {OP_TRASH, 1, 1, 1},
    {OP_RENAME, 1, 1, 1},   {OP_COPY, 3, 3, 1}, {OP_NEW_FOLDER, 1, 1, 1}, {OP_MOVE, 1, 1, 2},
};

struct action_cost {
    double requests, folders, writes; /* of a mean action */
};

static struct action_cost mean_action(const struct plan *p)
{
    struct action_cost c = {0};
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        double share = mix_share(p->mix, costs[i].op);
        c.requests += share * (p->locks ? costs[i].requests : costs[i].requests_unlocked);
        c.folders += share * costs[i].folders;
        c.writes += costs[i].folders > 0 ? share : 0;
    }
    return c;
}

/* Writes of the whole account reach each of its apps: one question a burst, and a listing for each changed folder that
 * the app has open. */
static double event_requests(const struct plan *p, const struct action_cost *c, double seconds)
{
    double account_apps = ceil((double)p->apps / (p->accounts ? p->accounts : 1));
    double writes_s = account_apps * p->per_minute / 60 * c->writes;
    if (!p->events || writes_s <= 0)
        return 0;
    double bursts = seconds * writes_s / (1 + writes_s * GATHER_S);
    double folders_burst = (1 + writes_s * GATHER_S) * c->folders / c->writes;
    double open_share = p->tree_folders ? fmin(1, (double)p->open_folders / p->tree_folders) : 1;
    return bursts * ((p->feed ? 1 : 0) + fmin(folders_burst * open_share, p->open_folders));
}

double plan_app_requests(const struct plan *p, int64_t within_us)
{
    double seconds = (double)within_us / US_PER_S, minutes = seconds / 60;
    struct action_cost c = mean_action(p);
    double start =
        2 + p->open_folders + (p->events && p->feed); /* stream, cursor, first pass, what changed meanwhile */
    double looks = p->poll_us ? seconds * US_PER_S / (double)p->poll_us : minutes;
    double checks = p->feed ? looks : looks * p->open_folders;
    double heartbeats = 1 + minutes;
    double actions = p->per_minute * minutes * c.requests;
    return start + checks + heartbeats + actions + event_requests(p, &c, seconds);
}

/* The busiest login's share with so many logins: its apps, its sign-in, its part of reading the tree. */
static double login_requests(const struct plan *p, unsigned logins, double per_app)
{
    double tree = (double)p->tree_folders * p->accounts / logins;
    return ceil((double)p->apps / logins) * per_app + tree + 2;
}

void plan_estimate(struct plan *p)
{
    p->requests_15min = plan_app_requests(p, p->window_us < BUDGET_US ? p->window_us : BUDGET_US);
    p->requests_whole = plan_app_requests(p, p->window_us);
    p->login_15min = login_requests(p, p->logins, p->requests_15min);
    p->whole = p->requests_whole * p->apps;
}

static bool fits(const struct plan *p, unsigned logins)
{
    if (p->events && (p->apps + logins - 1) / logins > DRIVE_STREAMS_PER_LOGIN)
        return false;
    return !p->login_budget || login_requests(p, logins, p->requests_15min) <= DRIVE_REQUESTS_PER_15MIN;
}

unsigned plan_logins_needed(const struct plan *p)
{
    unsigned low = 1, high = p->apps;
    if (!fits(p, high))
        return 0;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (fits(p, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* What it takes to have so many logins: "9 sub-users would do: sim seed 9 SCALE". */
static void what_would_do(const struct plan *p, unsigned needed, char *dst, size_t n)
{
    unsigned accounts = p->accounts ? p->accounts : 1;
    char each[64] = "";
    if (!p->sub_users) {
        snprintf(dst, n, "the server has no sub-users, %u accounts would do: sim seed 0 SCALE --accounts %u", needed,
                 needed);
        return;
    }
    if (accounts > 1)
        snprintf(each, sizeof(each), " in each of the %u accounts", accounts);
    unsigned sub_users = (needed + accounts - 1) / accounts - 1;
    snprintf(dst, n, "%s%s would do: sim seed %u SCALE adds them, with the scale that is there",
             COUNTED(sub_users, "sub-user"), each, sub_users);
}

enum err plan_check(const struct plan *p, struct errinfo *ei)
{
    char would_do[240];
    if (fits(p, p->logins))
        return ERR_OK;
    unsigned needed = plan_logins_needed(p);
    if (needed == 0)
        return err_set(ei, ERR_ENV,
                       "one app alone would send about %.0f requests in 15 minutes, the server allows a login %d: "
                       "open fewer folders or act less often",
                       ceil(p->requests_15min), DRIVE_REQUESTS_PER_15MIN);
    what_would_do(p, needed, would_do, sizeof(would_do));
    if ((p->apps + p->logins - 1) / p->logins > DRIVE_STREAMS_PER_LOGIN)
        return err_set(ei, ERR_ENV, "%s would need more than the %s there are (%d event streams a login): %s",
                       COUNTED(p->apps, "app"), COUNTED(p->logins, "login"), DRIVE_STREAMS_PER_LOGIN, would_do);
    return err_set(ei, ERR_ENV, "the busiest of %s would send about %.0f requests in 15 minutes, %d are allowed: %s",
                   COUNTED(p->logins, "login"), p->login_15min, DRIVE_REQUESTS_PER_15MIN, would_do);
}
