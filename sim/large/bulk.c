#include "sim/large/bulk.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/api/scrape.h"
#include "sim/large/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_US   (60 * US_PER_S)
#define LOOK_US      (120 * US_PER_S) /* how long a thing of unknown outcome is looked for */
#define LOOK_EACH_US (250 * US_PER_MS)

void bulk_tell(const struct bulk *b, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    if (!b->conf->out)
        return;
    va_start(ap, fmt);
    str_vformat(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(b->conf->out, "bulk: %s\n", text);
    fflush(b->conf->out);
}

/* ---- one step ---- */

struct bulk_progress {
    const struct bulk *b;
    const struct bulk_step *step;
    struct progress *bar; /* NULL until the job tells how far it is */
};

static void on_progress(void *arg, const struct api_job *job)
{
    struct bulk_progress *p = arg;
    if (job->items_total <= 1)
        return;
    if (!p->bar)
        p->bar = progress_new(p->b->conf->out, p->b->conf->tty, p->step->doing, (uint64_t)job->items_total);
    progress_set(p->bar, (uint64_t)job->items_done, NULL);
}

/* By the server's own clock where it tells; else by when an answer first said so. */
static void note_times(struct bulk_step *s, const struct api_job *job, struct mono asked, struct mono started)
{
    struct mono now = mono_now();
    if (job->begun.us && job->ended.us && job->created.us) {
        int64_t queued = job->begun.us - job->created.us - s->request_us;
        s->queue_us = queued > 0 ? queued : 0;
        s->work_us = job->ended.us > job->begun.us ? job->ended.us - job->begun.us : 0;
    } else {
        s->queue_us = started.us ? mono_diff(started, asked) : 0;
        s->work_us = mono_diff(now, asked) - s->queue_us;
    }
}

static MAY_YIELD enum job_fate wait_for(struct bulk *b, struct bulk_step *s, struct api_job *job, int64_t limit_us,
                                        struct api_result *r)
{
    static const enum outcome outcomes[] = {
        [JOB_DONE] = OUT_OK,      [JOB_FAILED] = OUT_SERVER, [JOB_LATE] = OUT_UNKNOWN,
        [JOB_LOST] = OUT_UNKNOWN, [JOB_AWAY] = OUT_UNKNOWN,  [JOB_CUT] = OUT_UNFINISHED};
    struct bulk_progress p = {b, s, NULL};
    struct errand e = {.app = &b->app, .cause = CAUSE_ACTION, .limit_us = limit_us, .progress = on_progress, .arg = &p};
    struct mono asked = mono_now();
    enum job_fate fate = errand_wait(&e, job, b->mem);
    progress_free(&p.bar);
    r->outcome = outcomes[fate];
    r->done = mono_now();
    if (fate != JOB_DONE) {
        r->status = 0;
        snprintf(r->reason, sizeof(r->reason), "%.*s", (int)sizeof(r->reason) - 1, e.end.why);
    }
    note_times(s, job, asked, e.end.started);
    return fate;
}

/* Looks, as long as it makes sense, whether what was asked for comes about. */
static MAY_YIELD enum bulk_seen look_for(struct bulk *b, const struct bulk_step *s, struct mono from)
{
    enum bulk_seen seen;
    for (;;) {
        seen = s->look(b);
        if (seen == SEEN_DONE || seen == SEEN_TWICE || seen == SEEN_NOTHING || mono_diff(mono_now(), from) > LOOK_US ||
            !worker_sleep(b->w, LOOK_EACH_US, PHASE_DRAIN))
            return seen;
    }
}

/* Its time is over, or its answer was lost. It is never asked for a second time. */
static MAY_YIELD void settle(struct bulk *b, struct bulk_step *s, struct api_job *job, struct api_result *r)
{
    static const char *const found[] = {[SEEN_DONE] = "it was done",
                                        [SEEN_NOT] = "it was not done",
                                        [SEEN_IN_PART] = "it is done in part",
                                        [SEEN_TWICE] = "it was done twice",
                                        [SEEN_NOTHING] = "nothing could be seen"};
    struct mono from = mono_now();
    char took[32], after[32];
    str_duration(took, sizeof(took), mono_diff(from, r->sent));
    bulk_tell(b, "%s: %s (after %s): looking, nothing is sent again", s->what, r->reason, took);
    if (job->id[0] && !job->done) { /* what it is about may be there before the work is over */
        struct errand e = {.app = &b->app, .cause = CAUSE_ACTION, .limit_us = LOOK_US};
        (void)errand_wait(&e, job, b->mem);
    }
    enum bulk_seen seen = look_for(b, s, from);
    s->done = seen == SEEN_DONE;
    str_duration(after, sizeof(after), mono_diff(mono_now(), from));
    bulk_tell(b, "%s: looked for %s: %s", s->what, after, found[seen]);
    if (seen == SEEN_TWICE)
        call_wrong(r, "asked for once, done twice");
    else
        snprintf(r->reason, sizeof(r->reason), "timed out, outcome unknown; looked: %s", found[seen]);
}

static bool is_unknown(const struct api_result *r)
{
    return r->outcome == OUT_UNKNOWN || r->outcome == OUT_TIMEOUT;
}

/* True when the next step can follow. */
static MAY_YIELD bool take_step(struct bulk *b, struct bulk_step *s)
{
    struct api_job job = {.count = -1};
    struct api_result r;
    enum job_fate fate = JOB_DONE;
    struct call c = CALL(&b->app, CAUSE_ACTION);
    app_take_session(&b->app);
    s->tried = true;
    do
        s->ask(b, &job, &r);
    while (call_again(&c, &r));
    s->request_us = mono_diff(r.done, r.sent);
    if (r.outcome == OUT_OK && job.id[0]) {
        int64_t left = b->conf->timeout_us - s->request_us;
        fate = wait_for(b, s, &job, left > 0 ? left : 1, &r);
    } else {
        s->work_us = s->request_us;
        s->request_us = 0;
        if (r.outcome == OUT_UNKNOWN && r.err == ERR_TIMEOUT)
            snprintf(r.reason, sizeof(r.reason), "timed out, outcome unknown");
    }
    s->total_us = mono_diff(r.done, r.sent);
    s->done = r.outcome == OUT_OK;
    s->unknown = is_unknown(&r);
    if (s->unknown && fate != JOB_AWAY && fate != JOB_LOST)
        settle(b, s, &job, &r);
    if (r.outcome == OUT_OK)
        s->verify(b, &r);
    s->items = drive_sum(drive_sum(b->size.files, b->size.folders), 1);
    b->app.login->account->writes += s->done;
    call_record(&c, s->op, &r, (struct mono){0});
    if (!s->done || r.outcome == OUT_WRONG)
        bulk_tell(b, "%s: %s", s->what, r.reason);
    return s->done && !worker_draining(b->w);
}

/* ---- what came of it ---- */

static double per_s(const struct bulk_step *s)
{
    return s->total_us > 0 ? (double)s->items * 1e6 / (double)s->total_us : 0;
}

static void print_step(FILE *out, const struct bulk_step *s)
{
    char line[160], items[32], rate[32] = "-";
    if (s->done && !s->unknown)
        str_format(rate, sizeof(rate), "%.0f", per_s(s));
    str_format(line, sizeof(line), "%-16s %9s %9.2f %11.2f %9.2f %9.2f %10s%s%s", s->what,
               str_thousands(items, sizeof(items), (uint64_t)s->items), (double)s->total_us / 1e6,
               (double)s->request_us / 1e6, (double)s->queue_us / 1e6, (double)s->work_us / 1e6, rate,
               s->unknown ? "  outcome unknown, looked for:" : "",
               !s->done     ? "  not done"
               : s->unknown ? " done"
                            : "");
    fprintf(out, "%s\n", line);
}

static void add_figures(struct result *r, const struct bulk_step *s)
{
    result_figure(r, s->figures, "items", (double)s->items, 0);
    result_figure(r, s->figures, "seconds", (double)s->total_us / 1e6, 3);
    result_figure(r, s->figures, "request_seconds", (double)s->request_us / 1e6, 3);
    result_figure(r, s->figures, "queue_seconds", (double)s->queue_us / 1e6, 3);
    result_figure(r, s->figures, "work_seconds", (double)s->work_us / 1e6, 3);
    if (s->done && !s->unknown)
        result_figure(r, s->figures, "items_per_s", per_s(s), 1);
}

static void report_steps(const struct bulk *b, const struct bulk_step *steps, size_t n)
{
    FILE *out = b->conf->out;
    if (out)
        fprintf(out, "%-16s %9s %9s %11s %9s %9s %10s\n", "step", "items", "seconds", "request s", "queue s", "work s",
                "items/s");
    for (size_t i = 0; i < n && steps[i].tried; i++) {
        if (out)
            print_step(out, &steps[i]);
        add_figures(b->w->ctx->result, &steps[i]);
    }
    if (out)
        fflush(out);
}

struct deletes { /* as the server counts them; known false: it does not tell */
    bool known;
    double objects, requests, batches;
};

static MAY_YIELD struct deletes read_deletes(const struct bulk *b)
{
    struct buf text;
    struct errinfo ei;
    struct deletes d = {0};
    const struct cmd_ctx *ctx = b->w->ctx;
    d.known = scrape(ctx->http, ctx->target->url, 5 * US_PER_S, cmd_counters(ctx, CAUSE_WATCH), &text, &ei) == ERR_OK &&
              scrape_value(buf_cstr(&text), "drive_store_deleted_objects_total", &d.objects) &&
              scrape_value(buf_cstr(&text), "drive_store_delete_requests_total", &d.requests) &&
              scrape_value(buf_cstr(&text), "drive_store_multi_delete", &d.batches);
    buf_done(&text);
    return d;
}

static void add_deletes(struct result *r, double batches, double objects, double requests)
{
    result_figure(r, BULK_PURGE_KEY, "store_deletes_in_batches", batches, 0);
    result_figure(r, BULK_PURGE_KEY, "store_deleted_objects", objects, 0);
    result_figure(r, BULK_PURGE_KEY, "store_delete_requests", requests, 0);
}

static void report_deletes(const struct bulk *b, const struct deletes *before, const struct deletes *after)
{
    if (!after->known || after->batches < 0) {
        bulk_tell(b, "how the store deletes is not known: the server does not say");
        return;
    }
    double objects = after->objects - before->objects, requests = after->requests - before->requests;
    if (!before->known || objects < 0 || requests < 0) { /* started again in between */
        objects = after->objects;
        requests = after->requests;
    }
    add_deletes(b->w->ctx->result, after->batches, objects, requests);
    bulk_tell(b, "the store deletes %s: %s in %s",
              after->batches > 0 ? "in batches of up to 1,000 keys" : "one by one, as it has no multi-delete",
              COUNTED((uint64_t)objects, "object"), COUNTED((uint64_t)requests, "request"));
}

/* ---- the three steps ---- */

static MAY_YIELD void take_steps(struct bulk *b)
{
    const enum drive_op ops[BULK_STEPS] = {b->conf->copy, b->conf->trash, b->conf->purge};
    struct bulk_step steps[BULK_STEPS];
    for (size_t i = 0; i < BULK_STEPS; i++) {
        steps[i] = bulk_steps[i];
        steps[i].op = ops[i];
    }
    bool trash = api_caps(b->app.api) & API_CAP_TRASH;
    if (!trash) { /* then it is gone at once */
        steps[BULK_TRASH].what = "delete";
        steps[BULK_TRASH].doing = "bulk: deleted";
    }
    bool go_on = take_step(b, &steps[BULK_COPY]) && take_step(b, &steps[BULK_TRASH]) && trash;
    struct deletes before = go_on ? read_deletes(b) : (struct deletes){0}, after = before;
    if (go_on) {
        take_step(b, &steps[BULK_PURGED]);
        after = read_deletes(b);
    }
    report_steps(b, steps, BULK_STEPS);
    if (go_on)
        report_deletes(b, &before, &after);
}

static void add_size(struct result *r, const struct bulk_totals *t)
{
    result_figure(r, "bulk", "files", (double)t->files, 0);
    result_figure(r, "bulk", "folders", (double)t->folders, 0);
    result_figure(r, "bulk", "bytes", (double)t->bytes, 0);
}

void bulk_sample(struct result *r)
{
    const struct bulk_totals none = {0};
    add_size(r, &none);
    for (size_t i = 0; i < BULK_STEPS; i++) {
        struct bulk_step s = bulk_steps[i];
        s.done = true;
        add_figures(r, &s);
    }
    add_deletes(r, 0, 0, 0);
}

enum err bulk_run(struct worker *w, const struct bulk_conf *conf, struct errinfo *ei)
{
    struct bulk b = {.conf = conf, .w = w, .mem = arena_new(32 << 10)};
    int64_t request_us = conf->timeout_us < REQUEST_US ? conf->timeout_us : REQUEST_US;
    char size[120];
    enum err e = app_init_bare(&b.app, w, w->fleet.n, request_us, ei);
    if (e == ERR_OK) {
        b.app.login = &w->roster.logins[0]; /* the first account's owner */
        app_take_session(&b.app);
        e = bulk_choose(&b, ei);
    }
    if (e == ERR_OK) {
        bulk_tell(&b, "\"%s\", the largest folder of %s: %s", b.name, b.app.login->email,
                  bulk_totals_text(size, sizeof(size), &b.size));
        add_size(w->ctx->result, &b.size);
        b.used = conf->alone ? bulk_storage_used(&b) : -1;
        run_folders_init(&b.folders, w, "Bulk copy");
        e = run_folders_make(&b.folders, &b.app, ei);
    }
    if (e == ERR_OK) {
        b.place = run_folders_id(&b.folders, &b.app);
        take_steps(&b);
    }
    run_folders_remove(&b.folders, "bulk");
    run_folders_done(&b.folders);
    app_done(&b.app);
    arena_free(&b.mem);
    return e;
}
