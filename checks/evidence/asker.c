#include "checks/evidence/asker.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/coro.h"

#define REQUESTS_A_LOGIN (DRIVE_REQUESTS_PER_15MIN * 2 / 3)
#define TRIES            4
#define STUMBLE_US       (US_PER_S / 2)
#define THROTTLED_US     (2 * US_PER_S)
#define WAIT_MOST_US     (20 * 60 * US_PER_S) /* longer than any window of a budget */
#define WAIT_TOLD_US     (3 * US_PER_S)       /* longer ones are announced */

struct session {
    struct api *api;
    uint32_t account;
};
struct asker {
    struct check_ctx *c;
    struct session *sessions; /* by account */
    size_t n;
    uint32_t *first, *turn; /* of each account, into sessions; first has one more */
    uint32_t n_accounts;
};

static MAY_YIELD enum err sign_in(struct asker *a, const char *email, struct api **out, struct errinfo *ei)
{
    const struct target *t = a->c->cmd->target;
    struct api_conf conf = api_conf_of(a->c->cmd);
    struct api_result r;
    struct asking q = {0};
    conf.app_version = "check";
    enum err e = api_new(out, &conf, ei);
    if (e != ERR_OK)
        return e;
    do
        e = api_enter(*out, email, target_password(t, email), &r);
    while (asker_again(a, &q, &r));
    if (e == ERR_OK && r.outcome == OUT_OK)
        return ERR_OK;
    api_free(out);
    return err_set(ei, ERR_ENV, "cannot sign in as %s to read back: %s", email, r.reason);
}

static MAY_YIELD enum err sign_in_account(struct asker *a, uint32_t account, uint64_t requests, struct errinfo *ei)
{
    const struct journal *j = a->c->journal;
    size_t wanted = 1 + (size_t)(requests / REQUESTS_A_LOGIN), before = a->n;
    for (uint32_t login = 0; login < j->n_logins && a->n - before < wanted; login++) {
        if (!j->emails[login] || journal_account(j, login) != account)
            continue;
        enum err e = sign_in(a, j->emails[login], &a->sessions[a->n].api, ei);
        if (e != ERR_OK)
            return e;
        a->sessions[a->n++].account = account;
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

struct api *asker_api(struct asker *a, uint32_t account)
{
    uint32_t n = account < a->n_accounts ? a->first[account + 1] - a->first[account] : 0;
    return n > 0 ? a->sessions[a->first[account] + a->turn[account]++ % n].api : NULL;
}

/* A timeout was long enough by itself. */
static bool stumbled(const struct api_result *r)
{
    return r->outcome == OUT_SERVER || r->outcome == OUT_TRANSPORT;
}

bool asker_again(struct asker *a, struct asking *q, const struct api_result *r)
{
    a->c->silent |= r->outcome == OUT_TIMEOUT;
    int64_t wait = r->outcome == OUT_THROTTLED         ? (r->retry_after_us > 0 ? r->retry_after_us : THROTTLED_US)
                   : stumbled(r) && ++q->tries < TRIES ? STUMBLE_US * q->tries
                                                       : -1;
    if (wait < 0 || q->waited_us + wait > WAIT_MOST_US || *a->c->cmd->interrupts)
        return false;
    q->waited_us += wait;
    if (wait >= WAIT_TOLD_US) {
        char text[32];
        LOGW("check", "the server's budget is spent: waiting %s", str_duration(text, sizeof(text), wait));
    }
    coro_sleep_until(a->c->cmd->loop, mono_add(mono_now(), wait));
    return true;
}
