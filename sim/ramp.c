/* The course of a ramp. A step is left only when all its sessions are gone and the server answers a small question as
 * fast as it did before the first step: what one step left behind must not be measured as the next one's. */
#include "sim/ramp.h"
#include "base/mem.h"
#include "sim/kill_switch.h"
#include "sim/remove.h"
#include "sim/rundir.h"
#include "sim/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TICK_US       (200 * US_PER_MS)
#define CUT_US        US_PER_S
#define PROBES        5
#define QUIET_IN_ROW  3
#define QUIET_MORE_US (5 * US_PER_MS) /* above twice the quiet time: what any machine adds by chance */

static void say(const struct ramp *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(const struct ramp *r, const char *fmt, ...)
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

/* How long a small question takes, whose answer no step makes longer; -1: this server has none, or it failed. */
static MAY_YIELD int64_t probe(struct ramp *r)
{
    struct arena *mem = arena_new(4096);
    struct drive_listing l;
    struct api_result res;
    api_list(r->w->logins[0].api, NULL, mem, &l, &res);
    arena_free(&mem);
    return res.outcome == OUT_OK ? mono_diff(res.done, res.sent) : -1;
}

static MAY_YIELD void learn_quiet(struct ramp *r)
{
    r->quiet_us = -1;
    for (int i = 0; i < PROBES; i++) {
        int64_t us = probe(r);
        if (us > r->quiet_us)
            r->quiet_us = us;
    }
}

static MAY_YIELD void drain(struct ramp *r, struct ramp_step *s)
{
    struct mono began = mono_now(), limit = mono_add(began, r->conf->drain_us);
    int quiet = 0;
    while (r->quiet_us >= 0 && quiet < QUIET_IN_ROW && mono_before(mono_now(), limit) && !worker_draining(r->w)) {
        int64_t us = probe(r);
        quiet = us >= 0 && us <= 2 * r->quiet_us + QUIET_MORE_US ? quiet + 1 : 0;
        worker_sleep(r->w, TICK_US, PHASE_DRAIN);
    }
    s->drained_us = mono_diff(mono_now(), began);
}

/* ---- one step ---- */

static bool at_work(const struct ramp *r, const struct group *sessions)
{
    return sessions->running > 0 && !worker_draining(r->w);
}

/* In ticks, so that an end that comes early is seen. */
static MAY_YIELD void stay(struct ramp *r, const struct group *sessions, int64_t us)
{
    struct mono until = mono_add(mono_now(), us);
    while (at_work(r, sessions) && mono_before(mono_now(), until)) {
        int64_t left = mono_diff(until, mono_now());
        worker_sleep(r->w, left < TICK_US ? left : TICK_US, PHASE_DRAIN);
    }
}

/* The hold begins when every session is in or was turned away, which a slow server takes its time for. */
static MAY_YIELD void hold(struct ramp *r, struct ramp_step *s, const struct group *sessions)
{
    while (at_work(r, sessions) && s->entered < s->asked)
        worker_sleep(r->w, TICK_US, PHASE_DRAIN);
    stay(r, sessions, r->conf->settle_us);
    s->measure_from = mono_now();
    s->sent_before = s->sent;
    stay(r, sessions, r->conf->hold_us - r->conf->settle_us);
    s->measured_us = mono_diff(mono_now(), s->measure_from);
    s->sent_after = s->sent;
    s->over = true;
}

static MAY_YIELD void end_sessions(struct ramp *r, struct group *sessions, struct session *all, unsigned n)
{
    while (at_work(r, sessions))
        worker_sleep(r->w, TICK_US, PHASE_DRAIN);
    for (unsigned i = 0; i < n && sessions->running > 0; i++)
        session_cancel(&all[i]);
    group_wait(r->w->loop, sessions);
}

static MAY_YIELD void run_sessions(struct ramp *r, struct ramp_step *s)
{
    struct session *all = mem_zalloc(s->asked * sizeof(*all));
    struct group sessions = {0};
    s->began = mono_now();
    s->measure_from = s->once ? s->began : MONO_NEVER;
    for (unsigned i = 0; i < s->asked; i++) {
        all[i] = (struct session){.r = r, .s = s, .index = i, .worst = OUT_OK};
        group_spawn(r->w->loop, &sessions, session_run, &all[i]);
    }
    if (!s->once)
        hold(r, s, &sessions);
    end_sessions(r, &sessions, all, s->asked);
    s->took_us = mono_diff(mono_now(), s->began);
    if (s->once) {
        s->measured_us = s->took_us;
        s->sent_after = s->sent;
    }
    mem_free(all);
}

static double seconds_of(const struct hist *h, double pct)
{
    int64_t us = h ? hist_percentile(h, pct) : -1;
    return us < 0 ? -1 : (double)us / 1e6;
}

static void sum_up(struct ramp *r, struct ramp_step *s)
{
    bool uploads = r->conf->work.kind == RAMP_UPLOAD;
    s->measured = (struct ramp_measure){.sessions = s->asked, .bytes_per_s = -1, .upload_p95_s = -1};
    if (uploads && s->measured_us > 0) {
        s->measured.bytes_per_s = (double)(s->sent_after - s->sent_before) * 1e6 / (double)s->measured_us;
        s->measured.upload_p95_s = seconds_of(s->stats.op[OP_UPLOAD].from_send, 95);
    }
    s->expected =
        ramp_expect(&r->steps[0].measured, s->asked, uploads ? r->conf->link_bytes_per_s : 0, r->conf->work.bytes);
}

static MAY_YIELD enum err run_step(struct ramp *r, struct errinfo *ei)
{
    struct ramp_step *s = &r->steps[r->n];
    enum err e = ERR_OK;
    *s = (struct ramp_step){.number = r->n + 1, .asked = r->conf->steps.sessions[r->n], .once = r->conf->hold_us == 0};
    stats_init(&s->stats);
    r->n++;
    if (r->conf->work.kind == RAMP_APPS)
        e = session_apps_run(r, s, ei);
    else
        run_sessions(r, s);
    if (e != ERR_OK)
        return e;
    sum_up(r, s);
    if (r->n < r->conf->steps.n)
        drain(r, s);
    ramp_print_step(r, s);
    return ERR_OK;
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
    r->log = fopen(file, "wxe");
    if (!r->log)
        return err_sys(ei, ERR_ENV, "cannot write %s", file);
    setvbuf(r->log, NULL, _IOLBF, 0); /* for those who follow it */
    fprintf(r->log, "step,session,operation,began,ms,outcome,status,bytes,reason\n");
    kill_switch_name(r->w->ctx->kill_switch, r->run_dir);
    snprintf(r->w->ctx->result->run_dir, sizeof(r->w->ctx->result->run_dir), "%s", r->run_dir);
    return ERR_OK;
}

static enum err close_log(struct ramp *r, struct errinfo *ei)
{
    if (!r->log)
        return ERR_OK;
    bool bad = ferror(r->log) != 0;
    bad = fclose(r->log) != 0 || bad;
    r->log = NULL;
    return bad ? err_sys(ei, ERR_IO, "cannot write %s/sessions.csv", r->run_dir) : ERR_OK;
}

/* A folder of the ramp's own, where the server knows folders. */
static MAY_YIELD enum err make_folder(struct ramp *r, struct errinfo *ei)
{
    struct api *a = r->w->logins[0].api;
    struct arena *mem = arena_new(2048);
    struct drive_file made = {.id = NULL};
    struct api_result res = {.outcome = OUT_OK};
    char name[60];
    enum err e = ERR_OK;
    if (target_logins_given(r->w->ctx->target) && api_claim(a, &res) == ERR_OK &&
        strcmp(res.code, API_CODE_ABSENT) == 0)
        res.outcome = OUT_OK;
    snprintf(name, sizeof(name), "Ramp %08x", (unsigned)(r->w->run_key >> 16));
    if (res.outcome == OUT_OK)
        api_folder_create(a, NULL, name, mem, &made, &res);
    if (res.outcome == OUT_OK)
        snprintf(r->folder, sizeof(r->folder), "%s", made.id);
    else if (strcmp(res.code, API_CODE_ABSENT) != 0)
        e = err_set(ei, res.outcome == OUT_REFUSED ? ERR_SAFETY : ERR_ENV, "%s cannot make a folder: %s",
                    r->w->logins[0].email, res.reason);
    arena_free(&mem);
    return e;
}

static MAY_YIELD void remove_folder(struct ramp *r)
{
    static const bool never = false;
    struct remover m = {.ctx = r->w->ctx, .api = r->w->logins[0].api, .stop = &never, .limit_us = r->conf->drain_us};
    const char *id = r->folder;
    char why[200];
    if (!id[0] || r->conf->keep)
        return;
    if (!remove_to_trash(&m, &id, 1, why, sizeof(why)) || !remove_from_trash(&m, &id, 1, why, sizeof(why)))
        say(r, "ramp: left behind: folder %s of %s: %s", id, r->w->logins[0].email, why);
}

static MAY_YIELD enum err all_steps(struct ramp *r, struct errinfo *ei)
{
    enum err e = ERR_OK;
    learn_quiet(r);
    while (e == ERR_OK && r->n < r->conf->steps.n && !worker_draining(r->w))
        e = run_step(r, ei);
    return e;
}

enum err ramp_run(struct worker *w, const struct ramp_conf *conf, struct errinfo *ei)
{
    struct ramp r = {.conf = conf, .w = w, .steps = mem_zalloc(conf->steps.n * sizeof(*r.steps))};
    struct errinfo close_why;
    enum err e = open_log(&r, ei);
    stats_reset(&w->meter.interval); /* the sign-ins of the set-up are none of a step's */
    if (e == ERR_OK && conf->work.kind == RAMP_UPLOAD)
        e = make_folder(&r, ei);
    if (e == ERR_OK)
        e = all_steps(&r, ei);
    remove_folder(&r);
    if (close_log(&r, &close_why) != ERR_OK && e == ERR_OK) {
        *ei = close_why;
        e = close_why.code;
    }
    if (r.n > 0) {
        ramp_write_json(&r, w->ctx->result);
        if (e == ERR_OK)
            e = ramp_write_csv(&r, ei);
    }
    for (unsigned i = 0; i < r.n; i++)
        stats_done(&r.steps[i].stats);
    mem_free(r.steps);
    return e;
}
