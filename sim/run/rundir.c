#include "sim/run/rundir.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "drive/result/series.h"
#include "sim/app/recorder.h"
#include "sim/stop/kill_switch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLUSH_US      US_PER_S
#define RUN_JSON_MAX  (16u << 20)
#define SAME_NAME_MAX 100

static void on_flush(struct timer *t)
{
    struct rundir *d = container_of(t, struct rundir, flush);
    struct errinfo ei;
    if (ledger_flush(d->w->ledger.file, &ei) != ERR_OK) {
        if (!d->warned)
            LOGE("run", "%s: nothing more is recorded from here on", err_message(&ei));
        d->warned = true;
        return; /* the first error is kept; there is nothing more to flush */
    }
    loop_timer_set(d->w->loop, t, mono_add(mono_now(), FLUSH_US));
}

enum err rundir_default(char *dst, size_t size, uint64_t seed, struct errinfo *ei)
{
    char iso[40], stamp[20];
    enum err e = ledger_make_folder("runs", ei);
    wall_format(iso, sizeof(iso), wall_now());
    snprintf(stamp, sizeof(stamp), "%.4s%.2s%.2sT%.2s%.2s%.2sZ", iso, iso + 5, iso + 8, iso + 11, iso + 14, iso + 17);
    for (int i = 1; i < SAME_NAME_MAX && e == ERR_OK; i++) {
        int n = snprintf(dst, size, "runs/%s-%" PRIu64, stamp, seed);
        if (i > 1)
            snprintf(dst + n, size - (size_t)n, "-%d", i);
        if (mkdir(dst, 0700) == 0)
            return ERR_OK;
        if (errno != EEXIST)
            e = err_sys(ei, ERR_IO, "cannot make the run folder %s", dst);
    }
    return e ? e : err_set(ei, ERR_ENV, "%s and others like it exist already: give another --run-dir", dst);
}

enum err rundir_judge(const char *dir, struct errinfo *ei)
{
    char path[sizeof(((struct rundir *)0)->path)];
    struct stat st;
    if (!dir)
        return ERR_OK;
    if (!dir[0] || !str_fit(path, sizeof(path), dir))
        return err_set(ei, ERR_USAGE, "--run-dir is %s", dir[0] ? "longer than 255 bytes" : "empty");
    for (char *slash; stat(path, &st) != 0; *slash = '\0') { /* up to what is there already */
        if (errno != ENOENT)
            return err_sys(ei, ERR_USAGE, "--run-dir %s", dir);
        slash = strrchr(path, '/');
        if (!slash || slash == path)
            str_format(path, sizeof(path), "%s", slash ? "/" : ".");
        if (!slash || slash == path)
            break;
    }
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(ei, ERR_USAGE, "--run-dir %s: %s is no folder", dir, path);
    return access(path, W_OK | X_OK) == 0 ? ERR_OK : err_sys(ei, ERR_USAGE, "--run-dir %s: %s", dir, path);
}

enum err rundir_create(struct rundir *d, struct worker *w, const char *dir, struct errinfo *ei)
{
    *d = (struct rundir){.w = w, .flush.fn = on_flush};
    enum err e = ERR_OK;
    if (dir && !str_fit(d->path, sizeof(d->path), dir))
        return err_set(ei, ERR_USAGE, "--run-dir is longer than %zu bytes", sizeof(d->path) - 1);
    if (!dir)
        e = rundir_default(d->path, sizeof(d->path), w->conf.seed, ei);
    if (e == ERR_OK)
        e = ledger_create(&w->ledger.file, d->path, ei);
    if (e != ERR_OK) {
        d->path[0] = '\0';
        return e;
    }
    loop_timer_set(w->loop, &d->flush, mono_add(mono_now(), FLUSH_US));
    kill_switch_name(w->ctx->kill_switch, d->path);
    return ERR_OK;
}

static void write_mix(const struct mix *m, struct jsonw *j)
{
    jsonw_object(j, "mix");
    for (int op = 0; op < OP_COUNT; op++)
        if (m->weight[op] > 0)
            jsonw_f64(j, drive_op_key((enum drive_op)op), m->weight[op], 3);
    jsonw_end_object(j);
}

static void write_plan(const struct rundir *d, struct jsonw *j)
{
    const struct worker *w = d->w;
    char text[20];
    jsonw_i64(j, "seed", (int64_t)w->conf.seed);
    jsonw_i64(j, "apps", w->conf.apps);
    jsonw_i64(j, "open_folders", w->conf.open_folders);
    jsonw_f64(j, "actions_per_minute", w->conf.per_minute, 6);
    jsonw_f64(j, "seconds", (double)w->conf.window_us / 1e6, 6);
    write_mix(&w->mix, j);
    jsonw_i64(j, "planned_actions", (int64_t)d->actions);
    snprintf(text, sizeof(text), "%016" PRIx64, d->fingerprint);
    jsonw_str(j, "plan", text);
}

static void write_logins(const struct worker *w, struct jsonw *j)
{
    jsonw_i64(j, "accounts", w->roster.n_accounts);
    jsonw_array(j, "logins");
    for (uint32_t i = 0; i < w->roster.n_logins; i++)
        jsonw_str(j, NULL, w->roster.logins[i].email);
    jsonw_end_array(j);
    jsonw_array(j, "login_accounts");
    for (uint32_t i = 0; i < w->roster.n_logins; i++)
        jsonw_i64(j, NULL, w->roster.logins[i].account - w->roster.accounts);
    jsonw_end_array(j);
    jsonw_bool(j, "foreign", w->server.foreign);
}

static void write_run(const struct rundir *d, bool ended, struct jsonw *j)
{
    const struct cmd_ctx *ctx = d->w->ctx;
    char now[40];
    wall_format(now, sizeof(now), wall_now());
    jsonw_object(j, NULL);
    jsonw_str(j, "drivesim", drivesim_version);
    jsonw_str(j, "command", "run");
    jsonw_str(j, "url", ctx->target->url);
    jsonw_str(j, "written", now);
    write_plan(d, j);
    write_logins(d->w, j);
    if (ctx->baseline)
        jsonw_raw(j, "baseline", sv_of(ctx->baseline));
    if (ended) {
        jsonw_str(j, "ended", now);
        jsonw_i64(j, "broken_calls", (int64_t)(stats_broken(d->w->meter.total) + stats_broken(&d->w->meter.interval)));
    }
    jsonw_end_object(j);
}

static enum err describe(const struct rundir *d, bool ended, struct errinfo *ei)
{
    struct buf text = BUF_INIT(RUN_JSON_MAX);
    struct jsonw j;
    char file[300];
    snprintf(file, sizeof(file), "%s/run.json", d->path);
    jsonw_init(&j, &text);
    write_run(d, ended, &j);
    enum err e = j.err ? j.err : buf_append_char(&text, '\n');
    e = e ? err_set(ei, e, "the run's description is too large") : file_replace_private(file, &text, ei);
    buf_done(&text);
    return e;
}

enum err rundir_describe(struct rundir *d, uint64_t actions, uint64_t fingerprint, struct errinfo *ei)
{
    d->actions = actions;
    d->fingerprint = fingerprint;
    return describe(d, false, ei);
}

enum err rundir_close(struct rundir *d, struct errinfo *ei)
{
    if (!d->path[0])
        return ERR_OK;
    loop_timer_stop(&d->flush);
    struct errinfo why;
    enum err e = ledger_close(&d->w->ledger.file, ei);
    enum err told = describe(d, true, e == ERR_OK ? ei : &why); /* also when records are lost: it ended, so they are */
    return e == ERR_OK ? told : e;
}

enum err rundir_keep_course(struct cmd_ctx *ctx, const char *dir, struct errinfo *ei)
{
    struct result *r = ctx->result;
    const struct series_owner owner = {
        .command = r->command, .target = r->target, .arguments = r->arguments, .seed = r->seed};
    if (!dir[0] && !recorder_wanted(ctx->common))
        return ERR_OK;
    return series_new(&r->series, dir[0] ? dir : NULL, &owner, mono_now(), ei);
}
