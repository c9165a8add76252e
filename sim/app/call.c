#include "sim/app/call.h"
#include "drive/api/budget.h"
#include "sim/app/logins.h"
#include "sim/app/witness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static MAY_YIELD bool wait_for_budget(struct call *c, const struct api_result *r)
{
    struct worker *w = c->app->w;
    int64_t wait = pace_throttle_wait_us(r->retry_after_us, c->tries++, &c->app->rng);
    if (worker_draining(w))
        return false;
    struct mono from = mono_now();
    w->meter.interval.throttled++;
    w->meter.waiting++;
    budget_wait_begin(w->loop, mono_add(from, wait), r->reason);
    bool again = worker_sleep(w, wait, PHASE_DRAIN);
    budget_wait_end();
    w->meter.waiting--;
    int64_t waited = mono_diff(mono_now(), from);
    w->meter.interval.waited_us += waited;
    c->waited_us += waited;
    if (c->cause == CAUSE_ACTION)
        c->app->foreground.waited_until = mono_now();
    return again;
}

static MAY_YIELD bool renew_session(struct call *c)
{
    struct app *a = c->app;
    struct mono from = mono_now();
    c->renewed = true;
    stats_reason_add(&a->w->meter.interval, OP_SIGN_IN, "401 expired: signed in again");
    bool ok = login_renew(a->w, a->login, a->session);
    c->waited_us += mono_diff(mono_now(), from);
    app_take_session(a);
    return ok;
}

enum cause call_because(struct app *a, enum cause cause)
{
    if (a->api)
        api_cause(a->api, cause);
    return cause;
}

bool call_again(struct call *c, const struct api_result *r)
{
    struct worker *w = c->app->w;
    bool again = false;
    meter_reach(&w->meter, r);
    c->app->ran_short |= r->outcome == OUT_LOCAL;
    w->server.caps &= api_caps(c->app->api);
    if (r->outcome == OUT_THROTTLED)
        again = wait_for_budget(c, r);
    else if (r->status == 401 && !c->renewed && !worker_draining(w))
        again = renew_session(c);
    call_because(c->app, c->cause); /* its other lane has asked for something else meanwhile */
    return again;
}

void call_record(const struct call *c, enum drive_op op, const struct api_result *r, struct mono due)
{
    if (due.us)
        due = mono_add(due, c->waited_us);
    witness_silence(c->app, op, r);
    meter_record(&c->app->w->meter, op, r, due);
}

void call_wrong(struct api_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
    va_end(ap);
    r->outcome = OUT_WRONG;
}

bool call_is_404(const struct api_result *r)
{
    return r->status == 404 && strcmp(r->code, API_CODE_ABSENT) != 0;
}
