/* The course of a ramp. A step is left only when all its sessions are gone and the server answers a small question as
 * fast as it did before the first step: what one step left behind must not be measured as the next one's. */
#include "sim/ramp/ramp.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include "drive/health.h"
#include "drive/limits.h"
#include "drive/result/series.h"
#include "sim/ramp/crowd.h"
#include "sim/ramp/impl.h"
#include "sim/ramp/report.h"
#include "sim/ramp/told.h"
#include "sim/run/rundir.h"
#include "sim/stop/kill_switch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TICK_US       (200 * US_PER_MS)
#define PROBES        5
#define QUIET_IN_ROW  3
#define LAST_WORD_US  (15 * US_PER_S)
#define QUIET_MORE_US (5 * US_PER_MS) /* above twice the quiet time: what any machine adds by chance */

void ramp_say(const struct ramp *r, const char *fmt, ...)
{
    va_list ap;
    if (!r->conf->out)
        return;
    va_start(ap, fmt);
    vfprintf(r->conf->out, fmt, ap);
    va_end(ap);
    fputc('\n', r->conf->out);
    fflush(r->conf->out);
}

/* ---- quiet ---- */

/* How long a small question takes, whose answer no step makes longer; -1: this server has none, or it failed.
 * *answered: it said something. */
static MAY_YIELD int64_t probe(struct ramp *r, bool *answered)
{
    struct arena *mem = arena_new(4096);
    struct drive_listing l;
    struct api_result res;
    api_list(r->w->roster.logins[0].api, NULL, mem, &l, &res);
    arena_free(&mem);
    *answered |= res.status != 0;
    return res.outcome == OUT_OK ? mono_diff(res.done, res.sent) : -1;
}

static MAY_YIELD void learn_quiet(struct ramp *r)
{
    bool answered = false;
    r->quiet_us = -1;
    for (int i = 0; i < PROBES; i++) {
        int64_t us = probe(r, &answered);
        if (us > r->quiet_us)
            r->quiet_us = us;
    }
}

/* After the last step any answer will do: no step may end with a server that is gone, and nobody say so. */
static MAY_YIELD enum err drain(struct ramp *r, struct ramp_step *s, bool last, struct errinfo *ei)
{
    int64_t most_us = last && r->conf->drain_us > LAST_WORD_US ? LAST_WORD_US : r->conf->drain_us;
    struct mono began = mono_now(), limit = mono_add(began, most_us);
    int quiet = 0;
    bool asked = false, answered = false;
    char text[32];
    while (r->quiet_us >= 0 && !(last ? answered : quiet == QUIET_IN_ROW) && !mono_passed(limit) &&
           !worker_draining(r->w)) {
        int64_t took = probe(r, &answered);
        asked = true;
        quiet = took >= 0 && took <= 2 * r->quiet_us + QUIET_MORE_US ? quiet + 1 : 0;
        ramp_progress(r, s, "all gone, waiting for quick answers");
        if (!last || !answered)
            worker_sleep(r->w, TICK_US, PHASE_DRAIN);
    }
    int64_t us = mono_diff(mono_now(), began);
    s->drained_us = last ? 0 : us;
    if (!asked || answered || worker_draining(r->w))
        return ERR_OK;
    return err_set(ei, ERR_ENV, "the server has answered nothing for %s after the step of %s: the ramp ends",
                   str_duration(text, sizeof(text), us), COUNTED(s->asked, "session"));
}

/* ---- one step ---- */

void ramp_step_init(struct ramp_step *s, const struct ramp *r, unsigned asked)
{
    *s = (struct ramp_step){.asked = asked,
                            .arrive_per_s = r->conf->arrive_per_s,
                            .once = r->conf->hold_us == 0,
                            .measure_from = MONO_NEVER,
                            .measure_to = MONO_NEVER,
                            .measured = {.sessions = asked, .rate = -1, .p95_s = -1},
                            .expected = {.sessions = asked, .rate = -1, .p95_s = -1}};
    stats_init(&s->stats);
    for (size_t i = 0; i < WATCH_COUNT; i++)
        s->server.v[i] = WATCH_UNKNOWN;
}

void ramp_step_done(struct ramp_step *s)
{
    stats_done(&s->stats);
    hist_free(&s->refusals);
}

/* The hold begins when every session is in or was turned away, which a slow server takes its time for. */
static MAY_YIELD void hold(struct crowd *c)
{
    struct ramp_step *s = c->s;
    const struct ramp_conf *conf = c->r->conf;
    crowd_gather(c);
    crowd_stay(c, conf->settle_us);
    s->measure_from = mono_now();
    uint64_t before = meter_requests(&c->r->w->meter);
    watch_lap(c->r->w->watch, WATCH_LAP_REPORT, &s->server);
    crowd_stay(c, conf->hold_us - conf->settle_us);
    s->measure_to = mono_now();
    s->requests = meter_requests(&c->r->w->meter) - before;
    s->measured_us = mono_diff(s->measure_to, s->measure_from);
    watch_lap(c->r->w->watch, WATCH_LAP_REPORT, &s->server);
}

void ramp_generator(struct ramp_step *s, const struct health_verdict *v)
{
    health_text(v, s->limited, sizeof(s->limited));
    s->cause = health_key(v);
    s->crowded = health_crowded(v->causes);
}

static MAY_YIELD void run_sessions(struct ramp *r, struct ramp_step *s)
{
    struct crowd c;
    struct health health;
    health_begin(&health);
    hist_reset(loop_lag(r->w->loop));
    if (s->once)
        watch_lap(r->w->watch, WATCH_LAP_REPORT, &s->server);
    uint64_t before = meter_requests(&r->w->meter);
    crowd_start(&c, r, s);
    if (!s->once)
        hold(&c);
    crowd_end(&c);
    if (s->once) {
        s->measured_us = s->took_us;
        s->requests = meter_requests(&r->w->meter) - before;
        watch_lap(r->w->watch, WATCH_LAP_REPORT, &s->server);
    }
    const struct health_span span = health_since(&health);
    struct health_verdict v = {0};
    (void)health_judge(&v, &span, hist_percentile(loop_lag(r->w->loop), 99));
    ramp_generator(s, &v);
}

double ramp_p95_ms(const struct ramp_step *s, enum drive_op op)
{
    return hist_percentile_ms(s->stats.op[op].from_send, 95);
}

static double rate_of(const struct ramp *r, const struct ramp_step *s)
{
    const struct ramp_work *work = &r->conf->work;
    if (work->kind == RAMP_SIGN_IN)
        return s->peak;
    double per_s = work->kind == RAMP_APPS ? ramp_actions_per_s(s) : ramp_operations_per_s(s);
    return work->kind == RAMP_UPLOAD && work->bytes > 0 && per_s >= 0 ? per_s * (double)work->bytes : per_s;
}

static void sum_up(struct ramp *r, struct ramp_step *s)
{
    double p95_ms = ramp_p95_ms(s, OP_UPLOAD);
    bool uploads = r->conf->work.kind == RAMP_UPLOAD;
    s->crowded = s->crowded && target_is_local(r->w->ctx->target);
    s->measured = (struct ramp_measure){
        .sessions = s->asked, .rate = rate_of(r, s), .p95_s = uploads && p95_ms >= 0 ? p95_ms / 1e3 : -1};
    s->expected = ramp_expect(&r->steps[(s->pass - 1) * r->conf->steps.n].measured, s->asked,
                              uploads ? r->conf->link_bytes_per_s : 0, r->conf->work.bytes);
}

/* What was counted since the last line, so that all of them add up to the summary; s NULL: outside of a step. */
static void keep_course(struct ramp *r, const char *phase, const struct ramp_step *s)
{
    struct series *course = r->w->ctx->result->series;
    struct meter *m = &r->w->meter;
    const struct series_span span = {.from = r->course_from, .to = mono_now(), .phase = phase};
    bool first = r->course_from.us == r->began.us; /* and what was asked before the ramp's own work */
    if (first)
        meter_next_interval(m);
    if (course) {
        struct jsonw *j = series_begin(course, &span, first ? m->total : &m->interval);
        if (s)
            jsonw_i64(j, "sessions", s->asked);
        series_end(course);
    }
    meter_next_interval(m);
    r->course_from = span.to;
}

static MAY_YIELD enum err run_step(struct ramp *r, struct errinfo *ei)
{
    const struct ramp_conf *conf = r->conf;
    struct ramp_step *s = &r->steps[r->n];
    enum err e = ERR_OK;
    ramp_step_init(s, r, conf->steps.sessions[r->n % conf->steps.n]);
    s->number = r->n % conf->steps.n + 1;
    s->pass = r->n++ / conf->steps.n + 1;
    ramp_progress_start(r, s);
    ramp_guard_start(r, s);
    if (conf->work.kind == RAMP_APPS)
        e = session_apps_run(r, s, ei);
    else
        run_sessions(r, s);
    if (e == ERR_OK)
        sum_up(r, s);
    if (conf->work.kind == RAMP_APPS) /* they have kept a finer course themselves, as in a run */
        r->course_from = mono_now();
    ramp_guard_end(r);
    if (e != ERR_OK) {
        ramp_progress_end(r);
        return e;
    }
    s->held = !worker_draining(r->w);
    e = drain(r, s, r->n == conf->steps.n * conf->repeat && !conf->limit, ei);
    keep_course(r, conf->work.kind == RAMP_APPS ? "drain" : "step", s);
    ramp_progress_end(r);
    ramp_print_step(r, s);
    return e;
}

/* ---- before and after ---- */

static enum err open_log(struct ramp *r, struct errinfo *ei)
{
    const char *dir = r->conf->run_dir;
    char file[300];
    enum err e = ERR_OK;
    if (dir && !str_fit(r->run_dir, sizeof(r->run_dir), dir))
        return err_set(ei, ERR_USAGE, "--run-dir is longer than %zu bytes", sizeof(r->run_dir) - 1);
    if (!dir)
        e = rundir_default(r->run_dir, sizeof(r->run_dir), (uint64_t)r->w->ctx->common->seed, ei);
    if (e == ERR_OK)
        e = ledger_make_folder(r->run_dir, ei);
    if (e != ERR_OK)
        return e;
    snprintf(file, sizeof(file), "%s/sessions.csv", r->run_dir);
    r->log = secret_fopen(file, "wxp");
    if (!r->log)
        return err_sys(ei, ERR_ENV, "cannot write %s", file);
    setvbuf(r->log, NULL, _IOLBF, 0); /* for those who follow it */
    fprintf(r->log, "step,session,operation,began,ms,outcome,status,bytes,reason\n");
    kill_switch_name(r->w->ctx->kill_switch, r->run_dir);
    r->w->ctx->result->run_holds = "files";
    snprintf(r->w->ctx->result->run_dir, sizeof(r->w->ctx->result->run_dir), "%s", r->run_dir);
    return rundir_keep_course(r->w->ctx, r->run_dir, ei);
}

static enum err close_log(struct ramp *r, struct errinfo *ei)
{
    if (!r->log)
        return ERR_OK;
    char file[300];
    snprintf(file, sizeof(file), "%s/sessions.csv", r->run_dir);
    return file_close(&r->log, file, ei);
}

static MAY_YIELD enum err all_steps(struct ramp *r, struct errinfo *ei)
{
    enum err e = ERR_OK;
    learn_quiet(r);
    keep_course(r, "set-up", NULL);
    while (e == ERR_OK && r->n < r->conf->steps.n * r->conf->repeat && !worker_draining(r->w))
        e = run_step(r, ei);
    if (e == ERR_OK && r->conf->limit && !worker_draining(r->w))
        e = ramp_push_past(r, ei);
    return e;
}

#define SIGN_INS_A_LOGIN (DRIVE_LOGINS_PER_15MIN / 2) /* by a ramp: the other half is for those who come after it */

/* Sign-ins are part of what a session does, but uploads can do without where each would cost a budget that is small. */
static bool spends_budgets(const struct ramp *r)
{
    unsigned each = 0;
    for (unsigned i = 0; i < r->conf->steps.n; i++)
        each += (r->conf->steps.sessions[i] + r->w->roster.n_logins - 1) / r->w->roster.n_logins * r->conf->repeat;
    return r->conf->work.kind == RAMP_UPLOAD && !r->conf->own_sign_in && (r->w->server.caps & API_CAP_SIGN_UP) &&
           each > SIGN_INS_A_LOGIN;
}

/* Those of the set-up are none of a session's; their requests stay counted. */
static void forget_sign_ins(struct stats *s)
{
    uint64_t requests[CAUSE_COUNT];
    memcpy(requests, s->by_cause, sizeof(requests));
    stats_reset(s);
    memcpy(s->by_cause, requests, sizeof(requests));
}

static MAY_YIELD enum err prepare(struct ramp *r, struct errinfo *ei)
{
    char file[300];
    enum err e = open_log(r, ei);
    r->shares_sign_ins = spends_budgets(r);
    snprintf(file, sizeof(file), "%s/watch.csv", r->run_dir);
    if (e == ERR_OK)
        e = watch_log(r->w->watch, file, ei);
    if (e == ERR_OK)
        e = ramp_predict(r, ei);
    forget_sign_ins(&r->w->meter.interval);
    if (e == ERR_OK && r->conf->work.kind == RAMP_UPLOAD)
        e = ramp_make_folders(r, ei);
    return e;
}

/* What was measured is told however it ended. */
static enum err tell(struct ramp *r, struct errinfo *ei)
{
    struct result *out = r->w->ctx->result;
    struct watch_values watched;
    if (r->n == 0)
        return ERR_OK;
    ramp_write_json(r, out);
    if (r->w->watch) {
        watch_whole(r->w->watch, &watched);
        watch_result(&watched, out);
    }
    ramp_print_ranges(r);
    ramp_print_few(r);
    enum err e = ramp_verdict(r, out, ei);
    return e == ERR_OK ? ramp_write_csv(r, ei) : e;
}

static void keep_first(enum err *e, struct errinfo *ei, enum err next, const struct errinfo *why)
{
    if (*e != ERR_OK || next == ERR_OK)
        return;
    *e = next;
    *ei = *why;
}

static enum err say_stopped(const struct ramp *r, struct errinfo *ei)
{
    const struct ramp_tripped *t = &r->tripped;
    char value[40], into[32];
    return err_set(ei, ERR_STOPPED, "stopped by %s: %s at the step of %u sessions, %s after its start", t->line->text,
                   ramp_line_value(t->line, t->value, value, sizeof(value)), t->step->asked,
                   str_duration(into, sizeof(into), t->into_us));
}

/* The places of the set-up's logins must not be missing in the next ramp, unless it goes on with their sessions. */
static MAY_YIELD void sign_out(struct worker *w)
{
    struct api_result r;
    for (uint32_t i = 0; i < w->roster.n_logins && !worker_draining(w); i++)
        if (!api_space_keeps(w->ctx->space, api_session_token(w->roster.logins[i].api)))
            (void)!api_sign_out(w->roster.logins[i].api, &r);
}

enum err ramp_run(struct worker *w, const struct ramp_conf *conf, struct errinfo *ei)
{
    struct ramp *r = mem_alloc(sizeof(*r));
    *r = (struct ramp){.conf = conf, .w = w, .steps = mem_zalloc(conf->steps.n * conf->repeat * sizeof(*r->steps))};
    struct errinfo why = {0};
    r->began = r->course_from = mono_now();
    enum err e = prepare(r, ei);
    if (e == ERR_OK) {
        ramp_tell_plan(r);
        e = all_steps(r, ei);
    }
    ramp_remove_folders(r);
    sign_out(w);
    keep_course(r, "drain", NULL);
    keep_first(&e, ei, close_log(r, &why), &why);
    keep_first(&e, ei, tell(r, &why), &why);
    if (e == ERR_OK && r->tripped.line)
        e = say_stopped(r, ei);
    for (unsigned i = 0; i < r->n; i++)
        ramp_step_done(&r->steps[i]);
    if (r->past.known) {
        ramp_step_done(&r->past.in);
        ramp_step_done(&r->past.more);
    }
    mem_free(r->steps);
    mem_free(r);
    return e;
}
