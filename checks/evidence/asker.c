#include "checks/evidence/asker.h"
#include "base/mem.h"
#include "drive/api/budget.h"
#include "net/coro.h"

#define REQUESTS_A_LOGIN (DRIVE_REQUESTS_PER_15MIN * 2 / 3)
#define TRIES            4
#define STUMBLE_US       (US_PER_S / 2)
#define THROTTLED_US     (2 * US_PER_S)
#define WAIT_MOST_US     (20 * 60 * US_PER_S) /* longer than any window of a budget */
#define LOOK_US          (50 * US_PER_MS)     /* how soon an interruption ends a wait */

struct session {
    struct api *api;
    const char *email; /* the journal's */
    uint32_t account;
    uint32_t generation; /* how often it was renewed */
    struct sem renewing; /* one at a time; the others then find it done */
};
struct asker {
    struct check_ctx *c;
    struct session *sessions; /* by account */
    size_t n;
    uint32_t *first, *turn; /* of each account, into sessions; first has one more */
    uint32_t n_accounts;
};

typedef enum err enter_fn(struct api *a, const char *email, const char *password, struct api_result *r);

static MAY_YIELD bool enter(struct asker *a, const struct session *s, enter_fn *how, struct api_result *r)
{
    struct asking q = {0};
    enum err e;
    do
        e = how(s->api, s->email, target_password(a->c->cmd->target, s->email), r);
    while (asker_again(a, &q, r));
    return e == ERR_OK && r->outcome == OUT_OK;
}

/* s lies where it stays. */
static MAY_YIELD enum err sign_in(struct asker *a, struct session *s, const char *email, uint32_t account,
                                  struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(a->c->cmd);
    struct api_result r;
    conf.app_version = "check";
    s->email = email;
    s->account = account;
    sem_init_coro(&s->renewing, 1);
    enum err e = api_new(&s->api, &conf, ei);
    if (e != ERR_OK || enter(a, s, api_enter, &r))
        return e;
    api_free(&s->api);
    return err_set(ei, ERR_ENV, "cannot sign in as %s to read back: %s", email, r.reason);
}

static MAY_YIELD enum err sign_in_account(struct asker *a, uint32_t account, uint64_t requests, struct errinfo *ei)
{
    const struct journal *j = a->c->journal;
    size_t wanted = 1 + (size_t)(requests / REQUESTS_A_LOGIN), before = a->n;
    for (uint32_t login = 0; login < j->n_logins && a->n - before < wanted; login++) {
        if (!j->emails[login] || journal_account(j, login) != account)
            continue;
        enum err e = sign_in(a, &a->sessions[a->n], j->emails[login], account, ei);
        if (e != ERR_OK)
            return e;
        a->n++;
    }
    if (a->n == before)
        return err_set(ei, ERR_ENV, "the run's folder names no login of account %u to read back with", account);
    return ERR_OK;
}

enum err asker_new(struct asker **out, struct check_ctx *c, const uint64_t *requests, uint32_t n_accounts,
                   struct errinfo *ei)
{
    struct asker *a = mem_zalloc(sizeof(*a));
    enum err e = ERR_OK;
    a->c = c;
    a->n_accounts = n_accounts;
    a->sessions = mem_zalloc((c->journal->n_logins + 1) * sizeof(*a->sessions));
    a->first = mem_zalloc((n_accounts + 1) * sizeof(*a->first));
    a->turn = mem_zalloc((n_accounts + 1) * sizeof(*a->turn));
    for (uint32_t i = 0; i < n_accounts && e == ERR_OK; i++) {
        if (requests[i] > 0)
            e = sign_in_account(a, i, requests[i], ei);
        a->first[i + 1] = (uint32_t)a->n;
    }
    if (e != ERR_OK)
        asker_free(&a);
    else
        *out = a;
    return e;
}

void asker_free(struct asker **ap)
{
    struct asker *a = *ap;
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++)
        api_free(&a->sessions[i].api);
    mem_free(a->sessions);
    mem_free(a->first);
    mem_free(a->turn);
    MEM_FREE(*ap);
}

struct api *asker_api(struct asker *a, uint32_t account, struct asking *q)
{
    uint32_t n = account < a->n_accounts ? a->first[account + 1] - a->first[account] : 0;
    q->session = n > 0 ? &a->sessions[a->first[account] + a->turn[account]++ % n] : NULL;
    q->generation = q->session ? q->session->generation : 0;
    return q->session ? q->session->api : NULL;
}

/* A timeout was long enough by itself. */
static bool stumbled(const struct api_result *r)
{
    return r->outcome == OUT_SERVER || r->outcome == OUT_TRANSPORT || r->outcome == OUT_LOCAL;
}

/* Its session is over: a new one, unless another question got it meanwhile. */
static MAY_YIELD bool renew(struct asker *a, const struct asking *q)
{
    struct session *s = q->session;
    struct api_result r;
    sem_take(a->c->cmd->loop, &s->renewing, 1);
    bool ok = s->generation != q->generation || enter(a, s, api_renew, &r);
    s->generation += ok && s->generation == q->generation;
    sem_give(&s->renewing, 1);
    return ok;
}

/* How long to wait before the same is asked again; -1: this is the answer. */
static int64_t wait_before_next(struct asking *q, const struct api_result *r)
{
    if (r->outcome == OUT_THROTTLED)
        return r->retry_after_us > 0 ? r->retry_after_us : THROTTLED_US;
    if (q->session && r->status == 401)
        return ++q->refusals < TRIES ? STUMBLE_US * (q->refusals - 1) : -1; /* the first is a session's usual end */
    return stumbled(r) && ++q->tries < TRIES ? STUMBLE_US * q->tries : -1;
}

/* False: an interruption came first. */
static MAY_YIELD bool sit_out(struct asker *a, const struct api_result *r, int64_t wait)
{
    const struct cmd_ctx *ctx = a->c->cmd;
    struct mono until = mono_add(mono_now(), wait);
    bool spent = r->outcome == OUT_THROTTLED;
    if (spent)
        budget_wait_begin(ctx->loop, until, r->reason);
    while (!*ctx->interrupts && !mono_passed(until))
        coro_sleep_until(ctx->loop, mono_earlier(until, mono_add(mono_now(), LOOK_US)));
    if (spent)
        budget_wait_end();
    return !*ctx->interrupts;
}

bool asker_again(struct asker *a, struct asking *q, const struct api_result *r)
{
    a->c->silent |= r->outcome == OUT_TIMEOUT;
    int64_t wait = wait_before_next(q, r);
    if (wait < 0 || q->waited_us + wait > WAIT_MOST_US || *a->c->cmd->interrupts)
        return false;
    q->waited_us += wait;
    if (!sit_out(a, r, wait))
        return false;
    bool over = q->session && r->status == 401 && api_session_token(q->session->api).n > 0;
    return !over || renew(a, q);
}
