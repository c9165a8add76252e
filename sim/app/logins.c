#include "sim/app/logins.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/api/budget.h"
#include "drive/api/caps.h"
#include "sim/app/pace.h"

#include <stdio.h>
#include <string.h>

#define SETUP_TIMEOUT_US (15 * US_PER_S)
#define STREAM_RENEWALS  3 /* random streams of the set-up: see pace.c for the others */

/* What the login limiter let through until it refused, and until when it is known to refuse. */
struct limiter {
    struct mono since, held;
    uint32_t in, kept, wanted; /* kept: needed no sign-in; wanted 0: not known yet */
};
/* While the accounts are being found. */
struct finding {
    struct worker *w;
    struct login *owners; /* of each account, signed in; moved out when one is put to use */
    char ***emails;       /* of each account, the owner's first */
    uint32_t *n_emails;
    uint32_t next; /* login to be signed in */
    struct rng rng;
    struct limiter limiter;
    struct progress *progress;
    struct errinfo *ei;
    enum err err;
};

static enum err login_open(struct worker *w, struct login *l, const char *email, struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(w->ctx);
    conf.timeout_us = SETUP_TIMEOUT_US;
    conf.keep = 1;
    *l = (struct login){.email = mem_strdup(email)};
    enum err e = api_new(&l->api, &conf, ei);
    if (e != ERR_OK)
        MEM_FREE(l->email);
    return e;
}

static void login_close(struct login *l)
{
    api_free(&l->api);
    MEM_FREE(l->email);
}

/* The first refusal tells the limiter's measure: so many went through in the time that the wait completes. */
static void announce(const struct limiter *k, int64_t wait_us)
{
    char wait[32], all[32], each[32];
    int64_t window = mono_diff(mono_now(), k->since) + wait_us;
    if (k->wanted <= k->in + k->kept + 1 || k->in == 0) {
        LOGW("run", "sign-in limited: waiting %s", str_duration(wait, sizeof(wait), wait_us));
        return;
    }
    uint32_t wanted = k->wanted - k->kept, left = wanted - k->in;
    LOGW("run", "sign-in limited: waiting %s, about %s until the %u of %u that are left are in (%u each %s)",
         str_duration(wait, sizeof(wait), wait_us),
         str_duration(all, sizeof(all), wait_us + (int64_t)((left - 1) / k->in) * window), left, wanted, k->in,
         str_duration(each, sizeof(each), window));
}

static MAY_YIELD bool wait_for_turn(struct worker *w, const struct limiter *k)
{
    bool on = true;
    while (on && !mono_passed(k->held)) {
        struct mono from = mono_now();
        budget_wait_begin(w->loop, k->held, NULL);
        on = worker_sleep(w, mono_diff(k->held, from), PHASE_DRAIN);
        budget_wait_end();
        w->meter.interval.waited_us += mono_diff(mono_now(), from);
    }
    return on;
}

/* A refusal is waited out by all that sign in just now: asking again one by one would keep the limiter busy. */
static bool sign_in_again(struct worker *w, const struct api_result *r, unsigned tries, struct rng *rng,
                          struct limiter *k)
{
    if (r->outcome != OUT_THROTTLED || worker_draining(w))
        return false;
    int64_t wait = pace_throttle_wait_us(r->retry_after_us, tries, rng);
    struct mono now = mono_now(), until = mono_add(now, wait);
    if (!mono_before(now, k->held))
        announce(k, wait);
    if (mono_before(k->held, until))
        k->held = until;
    w->meter.interval.throttled++;
    return true;
}

typedef enum err sign_in_fn(struct api *a, const char *email, const char *password, struct api_result *r);

/* Signs in, which is recorded when it ends well; or goes on with a kept session. */
static MAY_YIELD enum err sign_in(struct worker *w, struct login *l, struct rng *rng, struct limiter *k,
                                  enum cause cause, struct api_result *r)
{
    sign_in_fn *how = w->conf.own_sessions ? api_sign_in : cause == CAUSE_RECONNECT ? api_renew : api_enter;
    unsigned tries = 0;
    enum err e = ERR_CANCELLED;
    *r = (struct api_result){.outcome = OUT_UNFINISHED};
    do {
        if (!wait_for_turn(w, k))
            break;
        sem_take(w->loop, &w->roster.sign_ins, 1);
        api_cause(l->api, cause);
        e = how(l->api, l->email, target_password(w->ctx->target, l->email), r);
        sem_give(&w->roster.sign_ins, 1);
        meter_reach(&w->meter, r);
    } while (sign_in_again(w, r, tries++, rng, k));
    if (e != ERR_OK || r->outcome != OUT_OK)
        return e;
    if (api_went_on(l->api)) {
        k->kept++;
    } else {
        k->in++;
        meter_record(&w->meter, OP_SIGN_IN, r, (struct mono){0});
    }
    return e;
}

/* ---- discovery ---- */

static void add_email(struct finding *f, uint32_t account, const char *email)
{
    uint32_t n = f->n_emails[account]++;
    f->emails[account] = mem_realloc_array(f->emails[account], n + 1, sizeof(char *));
    f->emails[account][n] = mem_strdup(email);
}

static enum err no_sign_in(const struct login *l, enum err e, const struct api_result *r, struct errinfo *ei)
{
    if (e == ERR_CANCELLED || r->outcome == OUT_THROTTLED)
        return err_set(ei, ERR_INTERRUPTED, "interrupted while signing in");
    if (e != ERR_OK)
        return err_set(ei, ERR_ENV, "cannot sign in as %s: %s", l->email, r->reason);
    if (r->status == 401 || r->status == 404)
        return err_set(ei, ERR_ENV,
                       "%s cannot sign in (%s): fill the server first with sim seed, or set TMA_LOAD_PASSWORD as seed "
                       "had it",
                       l->email, r->reason);
    return err_set(ei, ERR_ENV, "cannot sign in as %s: %d %s", l->email, r->status, r->reason);
}

/* True when an account found before has this login: then the server does not tell accounts apart. */
static bool known_email(const struct finding *f, uint32_t accounts, const char *email)
{
    for (uint32_t a = 0; a < accounts; a++)
        for (uint32_t i = 0; i < f->n_emails[a]; i++)
            if (strcmp(f->emails[a][i], email) == 0)
                return true;
    return false;
}

/* Only accounts of the test domain that may do everything are used. *same: it is the account of another owner. */
static MAY_YIELD enum err find_sub_users(struct finding *f, struct login *owner, uint32_t account, bool *same)
{
    struct arena *mem = arena_new(16 << 10);
    struct api_users users;
    struct api_result r;
    uint32_t skipped = 0;
    enum err e = api_sub_users(owner->api, mem, &users, &r);
    if (e != ERR_OK || (r.outcome != OUT_OK && strcmp(r.code, API_CODE_ABSENT) != 0)) {
        e = err_set(f->ei, e == ERR_CANCELLED ? ERR_INTERRUPTED : ERR_ENV, "cannot list the sub-users of %s: %s",
                    owner->email, r.reason);
        goto out;
    }
    for (size_t i = 0; i < users.n; i++) {
        *same |= known_email(f, account, users.items[i].email);
        if (sv_ends(sv_of(users.items[i].email), SV(DRIVE_EMAIL_DOMAIN)) && users.items[i].perms == PERM_ALL)
            add_email(f, account, users.items[i].email);
        else
            skipped++;
    }
    if (skipped)
        LOGI("run", "%s: left out, not being allowed everything: %s", owner->email, COUNTED(skipped, "sub-user"));
out:
    arena_free(&mem);
    return e;
}

/* Takes a signed-in owner over as account k. */
static void add_account(struct finding *f, uint32_t k, const struct login *owner)
{
    struct roster *all = &f->w->roster;
    all->n_accounts = k + 1;
    all->accounts = mem_realloc_array(all->accounts, k + 1, sizeof(*all->accounts));
    all->accounts[k] = (struct account){.folders = folders_new()};
    f->owners = mem_realloc_array(f->owners, k + 1, sizeof(*f->owners));
    f->owners[k] = *owner;
    f->owners[k].generation = 1;
    f->emails = mem_realloc_array(f->emails, k + 1, sizeof(*f->emails));
    f->n_emails = mem_realloc_array(f->n_emails, k + 1, sizeof(*f->n_emails));
    f->emails[k] = NULL;
    f->n_emails[k] = 0;
    add_email(f, k, owner->email);
}

/* ---- logins that were given ---- */

/* The account that works in the same tree; its number, or the next one. */
static uint32_t account_of_tree(const struct finding *f, const struct login *l)
{
    uint32_t a = 0;
    while (a < f->w->roster.n_accounts && strcmp(api_tree(f->owners[a].api), api_tree(l->api)) != 0)
        a++;
    return a;
}

/* Who works in one tree is found out by signing in. */
static MAY_YIELD enum err find_given(struct finding *f)
{
    struct worker *w = f->w;
    const struct target *t = w->ctx->target;
    for (size_t i = 0; i < t->n_logins && w->roster.found < w->conf.apps; i++) {
        struct login l;
        struct api_result r;
        enum err e = login_open(w, &l, t->logins[i].name, f->ei);
        if (e != ERR_OK)
            return e;
        e = sign_in(w, &l, &f->rng, &f->limiter, CAUSE_SETUP, &r);
        if (e != ERR_OK || r.outcome != OUT_OK) {
            e = no_sign_in(&l, e, &r, f->ei);
            login_close(&l);
            return e;
        }
        w->server.caps &= i == 0 ? caps_ask(l.api) : api_caps(l.api);
        uint32_t a = account_of_tree(f, &l);
        if (a == w->roster.n_accounts) {
            add_account(f, a, &l);
        } else {
            add_email(f, a, l.email);
            login_close(&l);
        }
        w->roster.found++;
    }
    return ERR_OK;
}

/* ---- logins that seed made ---- */

static void drop_account(struct finding *f, uint32_t k)
{
    login_close(&f->owners[k]);
    for (uint32_t i = 0; i < f->n_emails[k]; i++)
        mem_free(f->emails[k][i]);
    mem_free(f->emails[k]);
    folders_free(&f->w->roster.accounts[k].folders);
    f->w->roster.n_accounts = k;
}

/* Owner number k, counted from 0. *end: it is not there, so that the search is over. */
static MAY_YIELD enum err find_account(struct finding *f, uint32_t k, bool *end)
{
    struct worker *w = f->w;
    char email[64];
    struct login owner;
    struct api_result r;
    bool same = false;
    target_owner(w->ctx->target, k, email, sizeof(email));
    *end = k > 0 && api_space_lacks(w->ctx->space, email, target_password(w->ctx->target, email));
    if (*end)
        return ERR_OK;
    enum err e = login_open(w, &owner, email, f->ei);
    if (e != ERR_OK)
        return e;
    e = sign_in(w, &owner, &f->rng, &f->limiter, CAUSE_SETUP, &r);
    *end = e == ERR_OK && (r.status == 401 || r.status == 404) && k > 0;
    if (e != ERR_OK || r.outcome != OUT_OK) {
        e = *end ? ERR_OK : no_sign_in(&owner, e, &r, f->ei);
        login_close(&owner);
        return e;
    }
    add_account(f, k, &owner);
    e = find_sub_users(f, &f->owners[k], k, &same);
    w->server.caps &= e == ERR_OK && k == 0 ? caps_ask(f->owners[k].api) : api_caps(f->owners[k].api);
    if (e == ERR_OK && same) {
        LOGW("run", "%s has the sub-users of another owner: it is left out", email);
        drop_account(f, k);
        *end = true;
    }
    return e;
}

/* owner@load.test has to be there; the first owner that is not there ends the search, and so do as many logins as there
 * are apps: more would be of no use. */
static MAY_YIELD enum err find_accounts(struct finding *f)
{
    struct worker *w = f->w;
    enum err e = ERR_OK;
    bool end = false;
    if (target_logins_given(w->ctx->target))
        return find_given(f);
    for (uint32_t k = 0; e == ERR_OK && !end && w->roster.found < w->conf.apps; k++) {
        e = find_account(f, k, &end);
        if (e == ERR_OK && !end)
            w->roster.found += f->n_emails[k];
    }
    return e;
}

/* Takes logins from the accounts in turn, so that any number of them is spread evenly. */
static enum err choose_logins(struct finding *f)
{
    struct worker *w = f->w;
    struct roster *all = &w->roster;
    uint32_t want = all->found < w->conf.apps ? all->found : w->conf.apps;
    all->logins = mem_zalloc(want * sizeof(*all->logins));
    for (uint32_t round = 0; all->n_logins < want; round++) {
        for (uint32_t a = 0; a < all->n_accounts && all->n_logins < want; a++) {
            if (round >= f->n_emails[a])
                continue;
            struct login *l = &all->logins[all->n_logins];
            enum err e = ERR_OK;
            if (round == 0) {
                *l = f->owners[a];
                f->owners[a] = (struct login){0};
            } else if ((e = login_open(w, l, f->emails[a][round], f->ei)) != ERR_OK) {
                return e;
            }
            sem_init_coro(&l->renewing, 1); /* points into itself: made where it stays */
            l->account = &all->accounts[a];
            l->account->n_logins++;
            l->index = all->n_logins++;
        }
    }
    return ERR_OK;
}

static void sign_in_lane(void *arg)
{
    struct finding *f = arg;
    struct worker *w = f->w;
    while (f->next < w->roster.n_logins && f->err == ERR_OK && !worker_draining(w)) {
        struct login *l = &w->roster.logins[f->next++];
        struct api_result r;
        if (l->generation)
            continue;
        enum err e = sign_in(w, l, &f->rng, &f->limiter, CAUSE_SETUP, &r);
        if (e == ERR_OK && r.outcome == OUT_OK) {
            l->generation = 1;
            progress_set(f->progress, f->next, NULL);
        } else if (f->err == ERR_OK) {
            f->err = no_sign_in(l, e, &r, f->ei);
        }
    }
}

static void finding_done(struct finding *f)
{
    for (uint32_t a = 0; a < f->w->roster.n_accounts; a++) {
        if (f->owners[a].api)
            login_close(&f->owners[a]);
        for (uint32_t i = 0; i < f->n_emails[a]; i++)
            mem_free(f->emails[a][i]);
        mem_free(f->emails[a]);
    }
    mem_free(f->owners);
    mem_free(f->emails);
    mem_free(f->n_emails);
}

enum err logins_discover(struct worker *w, struct errinfo *ei)
{
    struct finding f = {.w = w, .ei = ei, .limiter.since = mono_now()};
    struct group lanes = {0};
    rng_init(&f.rng, w->conf.seed, STREAM_RENEWALS);
    enum err e = find_accounts(&f);
    if (e == ERR_OK)
        e = choose_logins(&f);
    f.limiter.wanted = w->roster.n_logins;
    f.progress =
        progress_new(w->ctx->common->quiet ? NULL : w->ctx->out, w->ctx->tty, "logins signed in", w->roster.n_logins);
    for (int i = 0; i < 4 && e == ERR_OK; i++)
        group_spawn(w->loop, &lanes, sign_in_lane, &f);
    group_wait(w->loop, &lanes);
    progress_drop(&f.progress);
    if (e == ERR_OK)
        e = f.err;
    if (e == ERR_OK && worker_draining(w))
        e = err_set(ei, ERR_INTERRUPTED, "interrupted while signing in");
    finding_done(&f);
    api_space_save(w->ctx->space); /* for commands that begin meanwhile, and in case this one is killed */
    return e;
}

/* ---- keeping the sessions ---- */

/* Between 70 and 90 % of its life, so that logins signed in together do not come back together. */
static void renew_early(struct login *l)
{
    struct rng r;
    rng_init(&r, l->w->conf.seed + l->generation, STREAM_RENEWALS + (uint64_t)l->index);
    struct mono due = api_session_part(l->api, 0.7 + 0.2 * rng_unit(&r));
    if (due.us != MONO_NEVER.us && !worker_draining(l->w))
        loop_timer_set(l->w->loop, &l->early, due);
}

static void early_lane(void *arg)
{
    struct login *l = arg;
    login_renew(l->w, l, l->generation);
    worker_lane_ended(l->w);
}

static void on_early(struct timer *t)
{
    struct login *l = container_of(t, struct login, early);
    if (!worker_draining(l->w))
        worker_lane(l->w, early_lane, l);
}

void logins_keep(struct worker *w)
{
    for (uint32_t i = 0; i < w->roster.n_logins; i++) {
        w->roster.logins[i].w = w;
        w->roster.logins[i].early.fn = on_early;
        renew_early(&w->roster.logins[i]);
    }
}

bool login_renew(struct worker *w, struct login *l, uint32_t seen)
{
    sem_take(w->loop, &l->renewing, 1);
    bool ok = l->generation != seen;
    if (!ok && !worker_draining(w)) {
        struct api_result r;
        struct rng rng;
        struct limiter limiter = {.since = mono_now()};
        rng_init(&rng, w->conf.seed ^ seen, STREAM_RENEWALS + (uint64_t)l->index);
        enum err e = sign_in(w, l, &rng, &limiter, CAUSE_RECONNECT, &r);
        ok = e == ERR_OK && r.outcome == OUT_OK;
        if (!ok)
            meter_record(&w->meter, OP_SIGN_IN, &r, (struct mono){0});
        l->generation += ok;
        if (ok)
            renew_early(l);
    }
    sem_give(&l->renewing, 1);
    return ok;
}
