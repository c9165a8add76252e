#include "sim/ramp/session.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/ramp/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAUSE_US US_PER_S /* after an upload that failed */
#define TICK_US  (100 * US_PER_MS)

/* ---- what is noted ---- */

/* RFC 4180: a quote is doubled. */
static void write_quoted(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

static void log_line(const struct session *x, enum drive_op op, const struct api_result *r)
{
    char began[40], ms[40];
    FILE *f = x->r->log;
    if (!f)
        return;
    struct wall at = {wall_now().us - mono_diff(mono_now(), r->sent)};
    str_format(ms, sizeof(ms), "%.3f", (double)mono_diff(r->done, r->sent) / 1e3);
    fprintf(f, "%u,%u,%s,%s,%s,%s,%d,%" PRIu64 ",", x->s->number, x->index + 1, drive_op_key(op),
            wall_format(began, sizeof(began), at), ms, outcome_key(r->outcome), r->status, r->bytes_up);
    write_quoted(f, r->reason);
    fputc('\n', f);
}

/* The share of an upload that lies in the measured part is work done there: so a rate is right however few uploads
 * fit. */
static void add_work(struct ramp_step *s, const struct api_result *r)
{
    struct mono from = mono_later(r->sent, s->measure_from);
    struct mono to = mono_earlier(s->measure_to, r->done);
    int64_t took = mono_diff(r->done, r->sent);
    if (!mono_before(from, to) || took <= 0)
        return;
    double share = (double)mono_diff(to, from) / (double)took;
    s->done += share;
}

/* A session is what its first failure was; counted at once, so that a condition can end the ramp. */
static void fail(struct session *x, const struct api_result *r)
{
    struct ramp_step *s = x->s;
    char status[16]; /* of HTTP; other protocols have none */
    snprintf(status, sizeof(status), "%d ", r->status);
    x->worst = r->err == ERR_CANCELLED ? OUT_UNFINISHED : r->outcome;
    if (r->outcome == OUT_TIMEOUT || (r->outcome == OUT_UNKNOWN && r->err == ERR_TIMEOUT)) {
        s->timed_out++;
    } else if (x->worst == OUT_REFUSED || x->worst == OUT_THROTTLED) {
        s->refused++;
        if (!s->refusals)
            s->refusals = hist_new();
        hist_record(s->refusals, mono_diff(r->done, r->sent));
        if (!s->refused_why[0])
            str_format(s->refused_why, sizeof(s->refused_why), "%s%.100s", r->status ? status : "",
                       r->code[0] ? r->code : r->reason);
    } else if (x->worst == OUT_UNFINISHED || x->worst == OUT_LOCAL) {
        s->unfinished++;
    } else {
        s->failed++;
    }
}

void session_note(struct session *x, enum drive_op op, const struct api_result *r, struct mono due)
{
    struct ramp_step *s = x->s;
    bool measured = op == OP_SIGN_IN || s->once || !mono_before(r->sent, s->measure_from);
    if (measured)
        stats_record(&s->stats, op, r, due);
    meter_record(&x->r->w->meter, op, r, due);
    log_line(x, op, r);
    if (r->outcome == OUT_OK && op == OP_SIGN_IN)
        s->last_in = r->done;
    else if (r->outcome == OUT_OK)
        add_work(s, r);
    else if (x->worst == OUT_OK)
        fail(x, r);
}

/* ---- what it does ---- */

static const struct login *login_of(const struct session *x)
{
    return &x->r->w->roster.logins[x->index % x->r->w->roster.n_logins];
}

/* A budget of sign-ins is not the server's limit of sessions: where nobody insists, the work goes on without them. */
static bool budget_is_spent(struct ramp *r, const struct api_result *res)
{
    if (r->conf->work.kind == RAMP_SIGN_IN || r->conf->own_sign_in || res->outcome != OUT_THROTTLED)
        return false;
    if (!r->shares_sign_ins)
        LOGW("ramp", "the logins' budgets of sign-ins are spent (%d): sessions share those of the set-up from here on",
             res->status);
    r->shares_sign_ins = true;
    return true;
}

static bool share_sign_in(struct session *x)
{
    x->shares = true;
    api_share_session(x->api, login_of(x)->api);
    return true;
}

static MAY_YIELD bool sign_in(struct session *x, struct mono due)
{
    struct worker *w = x->r->w;
    struct api_conf conf = api_conf_of(w->ctx);
    struct api_result r = {.outcome = OUT_TRANSPORT, .sent = mono_now()};
    struct errinfo why = {0};
    conf.timeout_us = x->r->conf->timeout_us;
    enum err e = api_new(&x->api, &conf, &why);
    if (e == ERR_OK && x->r->shares_sign_ins)
        return share_sign_in(x);
    if (e == ERR_OK) {
        const char *email = login_of(x)->email;
        api_sign_in(x->api, email, target_password(w->ctx->target, email), &r);
    } else {
        r.err = e;
        r.done = mono_now();
        snprintf(r.reason, sizeof(r.reason), "%.199s", err_message(&why));
    }
    if (budget_is_spent(x->r, &r))
        return share_sign_in(x);
    if (r.status == 503) /* at the door: no room for one more */
        r.outcome = OUT_REFUSED;
    session_note(x, OP_SIGN_IN, &r, due);
    return r.outcome == OUT_OK;
}

static MAY_YIELD bool upload(struct session *x, unsigned k)
{
    struct ramp *r = x->r;
    struct arena *mem = arena_new(2048);
    struct drive_file made = {.size = -1};
    struct api_result res;
    char name[80];
    const struct content content = {
        .key = rng_mix64(r->w->run_key ^
                         ((uint64_t)x->s->pass << 56 | (uint64_t)x->s->number << 48 | (uint64_t)x->index << 24 | k)),
        .revision = 1,
        .size = (uint64_t)r->conf->work.bytes,
        .ext = "bin"};
    snprintf(name, sizeof(name), "ramp-%08x-%u-%u-%u-%u.bin", (unsigned)(r->w->run_key >> 16), x->s->pass, x->s->number,
             x->index + 1, k + 1);
    const struct api_upload u = {.parent_id = ramp_folder_of(r, login_of(x)), .name = name, .content = &content};
    api_cause(x->api, CAUSE_ACTION);
    api_upload(x->api, &u, mem, &made, &res);
    session_note(x, OP_UPLOAD, &res, (struct mono){0});
    arena_free(&mem);
    return res.outcome == OUT_OK;
}

static bool goes_on(const struct session *x)
{
    return !x->s->over && !worker_draining(x->r->w);
}

static MAY_YIELD void work(struct session *x)
{
    struct worker *w = x->r->w;
    if (x->r->conf->work.kind == RAMP_SIGN_IN) {
        while (!x->s->once && goes_on(x))
            worker_sleep(w, TICK_US, PHASE_DRAIN);
        return;
    }
    if (worker_draining(w)) {
        x->worst = OUT_UNFINISHED;
        x->s->unfinished++;
    }
    for (unsigned k = 0; k == 0 ? !worker_draining(w) : goes_on(x) && !x->s->once; k++)
        if (!upload(x, k) && goes_on(x) && !x->s->once)
            worker_sleep(w, PAUSE_US, PHASE_DRAIN);
}

/* So that the next step finds as many places as this one. Not one of the operations that are measured. */
static MAY_YIELD void sign_out(struct session *x)
{
    struct api_result r;
    api_cause(x->api, CAUSE_SETUP);
    if (!x->shares)
        (void)!api_sign_out(x->api, &r);
}

static MAY_YIELD void stay_in(struct session *x)
{
    struct ramp_step *s = x->s;
    s->admitted++;
    s->up++;
    if (s->up > s->peak)
        s->peak = s->up;
    work(x);
    sign_out(x);
    s->up--;
    if (x->worst == OUT_OK)
        s->ok++;
}

void session_run(void *arg)
{
    struct session *x = arg;
    struct ramp_step *s = x->s;
    struct mono due = mono_add(s->began, ramp_due_us(s->arrive_per_s, x->index));
    int64_t wait = mono_diff(due, mono_now());
    if (wait > 0)
        worker_sleep(x->r->w, wait, PHASE_DRAIN);
    bool in = !worker_draining(x->r->w) && sign_in(x, due);
    s->entered++;
    if (in)
        stay_in(x);
    else if (x->worst == OUT_OK)
        s->unfinished++;
    api_free(&x->api);
    x->ended = true;
}

void session_cancel(struct session *x)
{
    if (x->api && !x->ended)
        api_cancel(x->api);
}
