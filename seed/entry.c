#include "seed/entry.h"
#include "drive/api/budget.h"

#include <string.h>

bool entry_well(struct seeder *s, enum drive_op op, const struct api_result *r)
{
    seed_count(s, op, r);
    return r->outcome == OUT_OK;
}

bool entry_absent(const struct api_result *r)
{
    return strcmp(r->code, API_CODE_ABSENT) == 0;
}

/* The first refusal tells the limiter's measure: so many went through in the time since the first, and the wait ends
 * the window. What remains is told before it is waited for. */
static void announce_limit(struct seeder *s, int64_t wait_us)
{
    char wait[32], step[32];
    unsigned each = s->signins_ok ? s->signins_ok : 1, total = s->signins_total - s->signins_kept;
    unsigned left = total - s->signins_ok;
    int64_t window = mono_diff(mono_now(), s->signins_since) + wait_us;
    int64_t all = wait_us + (int64_t)((left - 1) / each) * window;
    seed_say(s, "sign-in limited by the server: %u of %u left, about %s to wait (%u each %s)", left, total,
             str_duration(wait, sizeof wait, all), each, str_duration(step, sizeof step, window));
}

static MAY_YIELD void wait_for_turn(struct seeder *s)
{
    while (!s->stop && !mono_passed(s->signin_next)) { /* which others may put off meanwhile */
        struct mono from = mono_now();
        budget_wait(s->ctx->loop, s->signin_next, NULL, &s->stop);
        s->stats->waited_us += mono_diff(mono_now(), from);
    }
}

/* "No such login yet" and, to a sign-up, "somebody was first" are answers, not failures. */
static bool is_answer(const char *name, const struct api_result *r)
{
    return name ? r->status == 403 || r->status == 409 : r->status == 401;
}

void entry_ask(struct seeder *s, struct seed_login *l, const char *name, struct api_result *r)
{
    const char *password = target_password(s->ctx->target, l->email);
    memset(r, 0, sizeof *r);
    r->outcome = OUT_UNFINISHED;
    while (!s->stop) {
        wait_for_turn(s);
        if (name)
            api_sign_up(l->api, l->email, password, name, r);
        else
            api_enter(l->api, l->email, password, r);
        if (!is_answer(name, r))
            seed_count(s, api_went_on(l->api) ? OP_ACCOUNT : OP_SIGN_IN, r);
        if (r->outcome != OUT_THROTTLED)
            break;
        int64_t wait = r->retry_after_us > 0 ? r->retry_after_us : 5 * US_PER_S;
        struct mono until = mono_add(mono_now(), wait < 100 * US_PER_MS ? 100 * US_PER_MS : wait);
        if (mono_passed(s->signin_next))
            announce_limit(s, wait);
        if (mono_before(s->signin_next, until))
            s->signin_next = until;
    }
    if (r->outcome != OUT_OK)
        return;
    l->signed_in = true;
    s->signins_ok += !api_went_on(l->api);
    s->signins_kept += api_went_on(l->api);
}

void entry_failed(struct seeder *s, const struct seed_login *l, const struct api_result *r)
{
    if (!s->stop)
        seed_fail(s, ERR_ENV, "%s cannot sign in: %s", l->email, r->reason[0] ? r->reason : outcome_key(r->outcome));
}

void entry_new(struct seeder *s, struct seed_login *l, const char *name, struct api_result *r)
{
    struct api_result in;
    entry_ask(s, l, name, r);
    if (is_answer(name, r)) {
        entry_ask(s, l, NULL, &in);
        if (in.status != 401)
            *r = in;
    }
}

void entry_claim(struct seeder *s, struct seed_login *l)
{
    struct api_result r;
    api_claim(l->api, &r);
    if (entry_absent(&r)) /* the account is ours as a whole */
        return;
    if (r.outcome == OUT_REFUSED || r.outcome == OUT_CONFLICT)
        seed_fail(s, ERR_SAFETY, "%s", r.reason);
    else if (!entry_well(s, OP_ACCOUNT, &r))
        seed_fail(s, ERR_ENV, "%s cannot make the folder for all work: %s", l->email, r.reason);
}
