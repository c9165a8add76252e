/* Budgets of the logins (drive-api.md 6). The seeder counts its own requests, so that it normally stops short of a 429;
 * one that comes all the same is waited out, and is neither a failure nor latency. */
#include "drive/api/budget.h"
#include "drive/api/api.h"
#include "seed/seed.h"
#include <string.h>

#define WINDOW_US   (15 * 60 * US_PER_S)
#define WINDOW_MOST (DRIVE_REQUESTS_PER_15MIN - 300) /* the rest is for the run that may follow, and for retries */
#define THROTTLE_US (5 * US_PER_S)                   /* when the server does not say how long */
#define PAUSE_US    US_PER_S                         /* after trouble on the way */
#define PATIENCE_US (60 * US_PER_S)                  /* without one good answer */

static void roll_window(struct seed_login *l, struct mono now)
{
    if (l->window_requests == 0 || mono_diff(now, l->window_start) >= WINDOW_US) {
        l->window_start = now;
        l->window_requests = 0;
    }
    if (l->window_requests >= WINDOW_MOST)
        l->blocked_until = mono_add(l->window_start, WINDOW_US);
}

static struct seed_login *least_busy(struct seed_account *a, struct mono now, struct mono *free_at)
{
    struct seed_login *best = NULL;
    *free_at = MONO_NEVER;
    for (size_t i = 0; i < a->n_logins; i++) {
        struct seed_login *l = &a->logins[i];
        roll_window(l, now);
        if (!l->signed_in)
            continue;
        if (mono_before(now, l->blocked_until)) {
            if (mono_before(l->blocked_until, *free_at))
                *free_at = l->blocked_until;
            continue;
        }
        if (!best || l->in_flight < best->in_flight ||
            (l->in_flight == best->in_flight && l->window_requests < best->window_requests))
            best = l;
    }
    return best;
}

/* A server without sub-users: the other logins are strangers to this tree. */
static struct seed_account usable(const struct seeder *s, unsigned account)
{
    struct seed_account a = s->accounts[account];
    if (!s->own_sub_users)
        a.n_logins = 1;
    return a;
}

int64_t seed_budget_wait_us(const struct seeder *s, unsigned account, uint64_t requests)
{
    struct seed_account a = usable(s, account);
    uint64_t a_window = (uint64_t)a.n_logins * WINDOW_MOST, spent = 0;
    for (size_t i = 0; i < a.n_logins; i++)
        spent += a.logins[i].window_requests;
    return (int64_t)((spent + requests) / a_window) * WINDOW_US;
}

struct seed_login *seed_login_take(struct seeder *s, unsigned account)
{
    struct seed_account a = usable(s, account);
    while (!s->stop) {
        struct mono now = mono_now(), free_at;
        struct seed_login *l = least_busy(&a, now, &free_at);
        if (l) {
            l->in_flight++;
            l->window_requests += !target_logins_given(s->ctx->target); /* budgets are of the servers that sign up */
            return l;
        }
        s->budget_back = free_at;
        struct mono soon =
            mono_add(now, PAUSE_US); /* in steps, to notice an interruption and a login that comes free */
        budget_wait_begin(s->ctx->loop, free_at, "");
        coro_sleep_until(s->ctx->loop, mono_earlier(free_at, soon));
        budget_wait_end();
        s->stats->waited_us += mono_diff(mono_now(), now);
    }
    return NULL;
}

static bool throttled(struct seeder *s, struct seed_login *l, const struct api_result *r)
{
    int64_t wait = r->retry_after_us > 0 ? r->retry_after_us : THROTTLE_US;
    struct mono until = mono_add(mono_now(), wait < 100 * US_PER_MS ? 100 * US_PER_MS : wait);
    if (mono_before(l->blocked_until, until))
        l->blocked_until = until;
    return !s->stop;
}

/* Answers after which going on is pointless. */
static bool is_fatal(struct seeder *s, const struct seed_login *l, const struct api_result *r)
{
    if (r->status == 401)
        seed_fail(s, ERR_ENV, "the server no longer knows the session of %s: %s", l->email, r->reason);
    else if (r->status == 503 && strcmp(r->code, "STORAGE_NOT_CONFIGURED") == 0)
        seed_fail(s, ERR_ENV,
                  "the server has no object store: set TMA_LOAD_S3_ENDPOINT, _BUCKET, _ACCESS_KEY and "
                  "_SECRET_KEY so that seed connects one");
    else if (r->status == 403 || r->status == 413 || r->status == 429 || r->status == 507)
        seed_fail(s, ERR_ENV, "the server refuses %s: %s", l->email, r->reason);
    else
        return false;
    return true;
}

static MAY_YIELD bool trouble(struct seeder *s, const struct api_result *r)
{
    if (mono_diff(mono_now(), s->last_ok) > PATIENCE_US) {
        seed_fail(
            s, ERR_ENV,
            "no good answer for a minute (%s): once the server is back, the same command resumes where this one ended",
            r->reason);
        return false;
    }
    if (r->outcome == OUT_UNKNOWN)
        s->unsettled++;
    coro_sleep_until(s->ctx->loop, mono_add(mono_now(), PAUSE_US));
    /* It never reached the server, or it only read. */
    return (r->outcome == OUT_TRANSPORT || r->outcome == OUT_LOCAL) && !s->stop;
}

void seed_count(struct seeder *s, enum drive_op op, const struct api_result *r)
{
    /* That a server lacks a call is found out by asking: no failure of anybody. */
    bool absent =
        strcmp(r->code, API_CODE_ABSENT) == 0 || (op == OP_BULK_UPLOAD && (r->status == 404 || r->status == 405));
    if (!absent)
        stats_record(s->stats, op, r, (struct mono){0});
    if (r->outcome == OUT_OK)
        s->last_ok = mono_now();
}

bool seed_login_give(struct seeder *s, struct seed_login *l, enum drive_op op, const struct api_result *r)
{
    l->in_flight--;
    seed_count(s, op, r);
    switch (r->outcome) {
    case OUT_OK:
        return false;
    case OUT_THROTTLED:
        return throttled(s, l, r);
    case OUT_TRANSPORT:
    case OUT_LOCAL:
    case OUT_TIMEOUT:
    case OUT_UNKNOWN:
        return trouble(s, r);
    case OUT_SERVER:
        return !is_fatal(s, l, r) && trouble(s, r);
    default:
        is_fatal(s, l, r);
        return false;
    }
}
