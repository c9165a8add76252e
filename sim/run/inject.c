#include "sim/run/inject.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"
#include "sim/app/storm.h"
#include "sim/large/bigfiles.h"
#include "sim/large/bulk.h"

#include <stdio.h>
#include <string.h>

#define MIB            1048576.0
#define COUNT_MOST     5000
#define STAND_STILL_US (300 * US_PER_S) /* big transfers wait for each other */
#define BULK_STEP_US   (600 * US_PER_S)

/* ---- what was asked for ---- */

static enum err malformed(const char *text, struct errinfo *ei)
{
    return err_set(ei, ERR_USAGE, "--bigfiles takes COUNTxMIB@SECOND, such as 10x300@60, not \"%s\"",
                   SHOWN(sv_of(text)));
}

static enum err parse_bigfiles(struct inject *in, const char *text, struct errinfo *ei)
{
    struct sv rest = sv_of(text), count, size;
    int64_t n;
    double mib;
    if (!sv_split(&rest, 'x', &count) || !sv_split(&rest, '@', &size) || !sv_to_i64(count, &n) || n < 1 ||
        n > COUNT_MOST || !sv_to_f64(size, &mib) || mib < BIGFILES_LEAST_MIB || mib > BIGFILES_MOST_MIB ||
        opt_parse_duration(rest, &in->bigfiles.at_us) != ERR_OK)
        return malformed(text, ei);
    in->count = (unsigned)n;
    in->bytes = (uint64_t)(mib * MIB);
    return ERR_OK;
}

static enum err within_window(int64_t at_us, int64_t window_us, const char *name, struct errinfo *ei)
{
    char at[32], end[32];
    if (at_us < window_us)
        return ERR_OK;
    return err_set(ei, ERR_USAGE, "--%s at %s: the run ends after %s", name, str_duration(at, sizeof(at), at_us),
                   str_duration(end, sizeof(end), window_us));
}

static enum err read_orders(struct inject *in, const char *bigfiles, int64_t window_us, struct errinfo *ei)
{
    enum err e = bigfiles ? parse_bigfiles(in, bigfiles, ei) : ERR_OK;
    if (e == ERR_OK)
        e = within_window(in->bigfiles.at_us, window_us, "bigfiles", ei);
    if (e == ERR_OK)
        e = within_window(in->bulk.at_us, window_us, "bulk", ei);
    return e == ERR_OK ? within_window(in->storm.at_us, window_us, "reconnect-storm", ei) : e;
}

enum err inject_judge(const char *bigfiles, int64_t bulk_us, int64_t storm_us, int64_t window_us, struct errinfo *ei)
{
    struct inject in = {.bigfiles.at_us = -1, .bulk.at_us = bulk_us, .storm.at_us = storm_us};
    return read_orders(&in, bigfiles, window_us, ei);
}

/* ---- doing it ---- */

static void ended(struct inject *in, struct injection *i)
{
    i->ended = mono_now();
    in->running--;
    done_set(&in->w->schedule.wake);
    worker_lane_ended(in->w);
}

/* What could not even begin is a failure of its operation. */
static void not_begun(struct inject *in, enum drive_op op, const struct errinfo *ei)
{
    struct api_result r = {.outcome = worker_draining(in->w) ? OUT_UNFINISHED : OUT_CLIENT};
    snprintf(r.reason, sizeof(r.reason), "%s", err_message(ei));
    meter_record(&in->w->meter, op, &r, (struct mono){0});
}

static void bigfiles_lane(void *arg)
{
    struct inject *in = arg;
    struct errinfo ei;
    const struct bigfiles_conf conf = {.count = in->count,
                                       .bytes = in->bytes,
                                       .timeout_us = STAND_STILL_US,
                                       .upload = OP_BIG_UPLOAD,
                                       .download = OP_BIG_DOWNLOAD,
                                       .out = in->out};
    if (bigfiles_run(in->w, in->watch, &conf, &ei) != ERR_OK)
        not_begun(in, OP_BIG_UPLOAD, &ei);
    ended(in, &in->bigfiles);
}

static void bulk_lane(void *arg)
{
    struct inject *in = arg;
    struct errinfo ei;
    const struct bulk_conf conf = {.timeout_us = BULK_STEP_US,
                                   .copy = OP_BULK_COPY,
                                   .trash = OP_BULK_TRASH,
                                   .purge = OP_BULK_PURGE,
                                   .out = in->out};
    if (bulk_run(in->w, &conf, &ei) != ERR_OK)
        not_begun(in, OP_BULK_COPY, &ei);
    ended(in, &in->bulk);
}

static void start(struct injection *i, void (*lane)(void *arg))
{
    struct inject *in = i->owner;
    if (worker_draining(in->w))
        return;
    i->began = mono_now();
    in->running++;
    worker_lane(in->w, lane, in);
}

static void on_bigfiles(struct timer *t)
{
    start(container_of(t, struct injection, timer), bigfiles_lane);
}

static void on_bulk(struct timer *t)
{
    start(container_of(t, struct injection, timer), bulk_lane);
}

static void on_storm(struct timer *t)
{
    struct inject *in = container_of(t, struct injection, timer)->owner;
    if (worker_draining(in->w))
        return;
    in->storm.began = mono_now();
    storm_begin(in->w, in->out);
}

/* ---- life ---- */

enum err inject_init(struct inject *in, struct worker *w, const char *bigfiles, int64_t bulk_us, int64_t storm_us,
                     struct errinfo *ei)
{
    *in = (struct inject){.w = w,
                          .bigfiles = {.owner = in, .timer.fn = on_bigfiles, .at_us = -1},
                          .bulk = {.owner = in, .timer.fn = on_bulk, .at_us = bulk_us},
                          .storm = {.owner = in, .timer.fn = on_storm, .at_us = storm_us},
                          .out = w->ctx->common->quiet ? NULL : w->ctx->out};
    return read_orders(in, bigfiles, w->conf.window_us, ei);
}

void inject_begin(struct inject *in)
{
    struct injection *const all[] = {&in->bigfiles, &in->bulk, &in->storm};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->at_us >= 0)
            loop_timer_set(in->w->loop, &all[i]->timer, mono_add(in->w->schedule.window, all[i]->at_us));
}

void inject_stop(struct inject *in)
{
    loop_timer_stop(&in->bigfiles.timer);
    loop_timer_stop(&in->bulk.timer);
    loop_timer_stop(&in->storm.timer);
}

char *inject_text(const struct inject *in, char *dst, size_t n)
{
    char size[32], at[32];
    struct buf b = BUF_INIT(n);
    enum err e = ERR_OK;
    if (in->bigfiles.at_us >= 0)
        e = buf_appendf(&b, "%s of %s at %s", COUNTED(in->count, "big file"), str_bytes(size, sizeof(size), in->bytes),
                        str_duration(at, sizeof(at), in->bigfiles.at_us));
    if (in->bulk.at_us >= 0 && e == ERR_OK)
        e = buf_appendf(&b, "%sa bulk copy at %s", b.len ? ", " : "", str_duration(at, sizeof(at), in->bulk.at_us));
    if (in->storm.at_us >= 0 && e == ERR_OK)
        e = buf_appendf(&b, "%sall event streams broken at %s", b.len ? ", " : "",
                        str_duration(at, sizeof(at), in->storm.at_us));
    str_format(dst, n, "%s", buf_cstr(&b));
    buf_done(&b);
    return dst;
}

static void write_one(const struct injection *i, struct mono ended, const char *what, struct mono zero, struct jsonw *w)
{
    if (!i->began.us)
        return;
    jsonw_object(w, NULL);
    jsonw_f64(w, "at_seconds", (double)mono_diff(i->began, zero) / 1e6, 3);
    jsonw_f64(w, "seconds", (double)mono_diff(ended.us ? ended : mono_now(), i->began) / 1e6, 3);
    jsonw_str(w, "what", what);
    jsonw_end_object(w);
}

void inject_result(const struct inject *in, struct mono zero, struct result *r)
{
    struct buf json = BUF_INIT(64 << 10);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_array(&w, NULL);
    write_one(&in->bigfiles, in->bigfiles.ended, "big files", zero, &w);
    write_one(&in->bulk, in->bulk.ended, "bulk copy", zero, &w);
    write_one(&in->storm, in->w->streams.storm_over, "streams broken", zero, &w);
    jsonw_end_array(&w);
    result_part(r, "injected", &w);
}
