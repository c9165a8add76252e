#include "sim/large/bigfiles.h"
#include "base/mem.h"
#include "sim/app/call.h"
#include "sim/app/run_folders.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TICK_US (100 * US_PER_MS)
#define MIB     (1024 * 1024)

struct transfer { /* one of the two phases */
    const char *figures, *doing;
    enum drive_op op;
    struct hist *hist; /* of the files that ended well */
    uint64_t ok, failed;
    int64_t took_us, server_peak;
    double mb_per_s;
};
struct bigfile {
    struct bigfiles *b;
    struct app app;
    struct content content;
    char name[40], id[DRIVE_ID_MAX + 1]; /* id "": it is not there */
    uint64_t moved;                      /* bytes, in this phase */
    struct content_check check;
};
struct bigfiles {
    const struct bigfiles_conf *conf;
    struct worker *w;
    struct server_watch *watch;
    struct bigfile *files;
    unsigned n; /* of files, each with connections of its own */
    struct run_folders folders;
    struct transfer *now;
};

/* ---- one file ---- */

static void ended(struct bigfile *f, const struct call *c, const struct api_result *r)
{
    struct transfer *t = f->b->now;
    call_record(c, t->op, r, (struct mono){0});
    t->ok += r->outcome == OUT_OK;
    t->failed += r->outcome != OUT_OK;
    if (r->outcome == OUT_OK)
        hist_record(t->hist, mono_diff(r->done, r->sent));
}

static void upload(void *arg)
{
    struct bigfile *f = arg;
    struct arena *mem = arena_new(4096);
    struct drive_file made = {.size = -1};
    struct api_result r;
    const struct api_upload u = {.parent_id = run_folders_id(&f->b->folders, &f->app),
                                 .name = f->name,
                                 .content = &f->content,
                                 .modified = wall_now(),
                                 .taken = &f->moved};
    struct call c = CALL(&f->app, CAUSE_ACTION);
    do {
        f->moved = 0;
        api_upload(f->app.api, &u, mem, &made, &r);
    } while (call_again(&c, &r));
    if (r.outcome == OUT_OK && made.size >= 0 && (uint64_t)made.size != f->content.size)
        call_wrong(&r, "%" PRIu64 " bytes were sent, %" PRId64 " are listed", f->content.size, made.size);
    if (r.outcome == OUT_OK)
        snprintf(f->id, sizeof(f->id), "%s", made.id);
    f->app.login->account->writes += r.outcome == OUT_OK;
    ended(f, &c, &r);
    arena_free(&mem);
}

static int on_body(void *arg, const char *p, size_t n)
{
    struct bigfile *f = arg;
    f->moved += n;
    return content_check_feed(&f->check, p, n) ? 0 : 1;
}

static void download(void *arg)
{
    struct bigfile *f = arg;
    struct api_result r;
    struct call c = CALL(&f->app, CAUSE_ACTION);
    do {
        f->moved = 0;
        content_check_init(&f->check, &f->content, 0);
        api_download(f->app.api, f->id, 0, 0, on_body, f, NULL, 0, &r);
    } while (call_again(&c, &r));
    if (f->check.wrong)
        call_wrong(&r, "wrong byte at %" PRIu64 " of %" PRIu64, f->check.wrong_at, f->content.size);
    else if (r.outcome == OUT_OK && !content_check_complete(&f->check))
        call_wrong(&r, "%" PRIu64 " bytes came of %" PRIu64, f->moved, f->content.size);
    ended(f, &c, &r);
}

/* ---- a phase: all files at once ---- */

static uint64_t moved_mib(const struct bigfiles *b)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < b->n; i++)
        sum += b->files[i].moved;
    return sum / MIB;
}

/* Gigabytes that are thrown away in any case are not worth waiting for. */
static void give_up(struct bigfiles *b)
{
    for (unsigned i = 0; i < b->n; i++)
        api_cancel(b->files[i].app.api);
}

static MAY_YIELD void transfer(struct bigfiles *b, struct transfer *t, void (*lane)(void *arg))
{
    struct group group = {0};
    struct mono began = mono_now();
    uint64_t due = 0;
    b->now = t;
    server_watch_lap(b->watch);
    for (unsigned i = 0; i < b->n; i++) {
        b->files[i].moved = 0;
        due += lane == upload || b->files[i].id[0];
    }
    struct progress *p = progress_new(b->conf->out, b->conf->tty, t->doing, due * b->conf->bytes / MIB);
    for (unsigned i = 0; i < b->n; i++)
        if (lane == upload || b->files[i].id[0])
            group_spawn(b->w->loop, &group, lane, &b->files[i]);
    while (group.running > 0 && worker_sleep(b->w, TICK_US, PHASE_DRAIN))
        progress_set(p, moved_mib(b), NULL);
    if (worker_draining(b->w))
        give_up(b);
    group_wait(b->w->loop, &group);
    t->took_us = mono_diff(mono_now(), began);
    t->mb_per_s = t->took_us ? (double)t->ok * (double)b->conf->bytes / (double)t->took_us : 0;
    t->server_peak = server_watch_lap(b->watch);
    progress_set(p, moved_mib(b), NULL);
    progress_free(&p);
}

/* ---- what came of it ---- */

static void add_figures(struct result *r, const struct transfer *t)
{
    static const struct {
        const char *key;
        double pct;
    } times[] = {{"p50_seconds", 50}, {"p95_seconds", 95}, {"slowest_seconds", 100}};
    result_figure(r, t->figures, "ok", (double)t->ok, 0);
    result_figure(r, t->figures, "failed", (double)t->failed, 0);
    result_figure(r, t->figures, "seconds", (double)t->took_us / 1e6, 2);
    result_figure(r, t->figures, "mb_per_s", t->mb_per_s, 1);
    for (size_t i = 0; i < ARRAY_LEN(times) && t->ok; i++)
        result_percentile(r, t->figures, times[i].key, t->hist, times[i].pct, US_PER_S, 2);
    if (t->server_peak >= 0)
        result_figure(r, t->figures, "server_peak_rss_bytes", (double)t->server_peak, 0);
}

#define UPLOADS   "uploads"
#define DOWNLOADS "downloads"

void bigfiles_sample(struct result *r)
{
    struct transfer t[] = {{.figures = UPLOADS, .ok = 1}, {.figures = DOWNLOADS, .ok = 1}};
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        t[i].hist = hist_new();
        hist_record(t[i].hist, 1);
        add_figures(r, &t[i]);
        hist_free(&t[i].hist);
    }
}

static char *seconds(char dst[32], const struct transfer *t, double pct)
{
    return hist_cell(t->hist, pct, US_PER_S, 2, dst, 32);
}

static void print_rows(const struct bigfiles *b, const struct transfer *const *rows, size_t n)
{
    FILE *out = b->conf->out;
    char p50[32], p95[32], max[32], mem[32], line[160];
    bool few = false;
    if (!out)
        return;
    fprintf(out, "%-10s %6s %7s %9s %9s %8s %8s %9s  %s\n", "all at once", "ok", "failed", "seconds", "MB/s", "p50 s",
            "p95 s", "slowest s", "server's memory at most");
    for (size_t i = 0; i < n; i++) {
        const struct transfer *t = rows[i];
        str_format(line, sizeof(line), "%-11s %6" PRIu64 " %7" PRIu64 " %9.2f %9.1f %8s %8s %9s  %s", t->figures, t->ok,
                   t->failed, (double)t->took_us / 1e6, t->mb_per_s, seconds(p50, t, 50), seconds(p95, t, 95),
                   seconds(max, t, 100),
                   t->server_peak < 0 ? "not known" : str_bytes(mem, sizeof(mem), (uint64_t)t->server_peak));
        fprintf(out, "%s\n", line);
        few |= t->ok > 0 && !hist_carries(t->hist, 95);
    }
    if (few)
        fprintf(out, "%s\n", HIST_FEW);
    fflush(out);
}

static void tell(const struct bigfiles *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void tell(const struct bigfiles *b, const char *fmt, ...)
{
    va_list ap;
    if (!b->conf->out)
        return;
    va_start(ap, fmt);
    fprintf(b->conf->out, "bigfiles: ");
    vfprintf(b->conf->out, fmt, ap);
    fprintf(b->conf->out, "\n");
    va_end(ap);
    fflush(b->conf->out);
}

/* ---- before and after ---- */

static MAY_YIELD enum err prepare(struct bigfiles *b, struct errinfo *ei)
{
    struct worker *w = b->w;
    const struct bigfiles_conf *conf = b->conf;
    run_folders_init(&b->folders, w, "Big files");
    b->files = mem_zalloc(conf->count * sizeof(*b->files));
    for (; b->n < conf->count; b->n++) {
        struct bigfile *f = &b->files[b->n];
        enum err e = app_init_bare(&f->app, w, w->fleet.n + b->n, conf->timeout_us, ei);
        if (e != ERR_OK)
            return e;
        f->b = b;
        app_take_session(&f->app);
        snprintf(f->name, sizeof(f->name), "big-%04u.mp4", b->n + 1);
        f->content = (struct content){.key = rng_mix64(w->run_key ^ (UINT64_C(0xb16) << 32 | b->n)),
                                      .revision = 1,
                                      .size = conf->bytes,
                                      .ext = "mp4"};
    }
    enum err e = ERR_OK;
    for (unsigned i = 0; i < b->n && e == ERR_OK; i++)
        e = run_folders_make(&b->folders, &b->files[i].app, ei);
    return e;
}

static MAY_YIELD void clean_up(struct bigfiles *b)
{
    if (!b->conf->keep) {
        run_folders_remove(&b->folders, "bigfiles");
        return;
    }
    for (uint32_t a = 0; a < b->w->roster.n_accounts; a++) {
        const struct run_folder *f = &b->folders.of[a];
        if (f->id[0])
            tell(b, "kept in folder \"%s\" (%s) of %s", b->folders.name, f->id, f->app->login->email);
    }
}

static void release(struct bigfiles *b)
{
    for (unsigned i = 0; i < b->n; i++)
        app_done(&b->files[i].app);
    mem_free(b->files);
    run_folders_done(&b->folders);
}

enum err bigfiles_run(struct worker *w, struct server_watch *watch, const struct bigfiles_conf *conf,
                      struct errinfo *ei)
{
    struct bigfiles b = {.conf = conf, .w = w, .watch = watch};
    struct transfer up = {.figures = UPLOADS, .doing = "MiB uploaded:", .op = conf->upload, .hist = hist_new()};
    struct transfer down = {.figures = DOWNLOADS, .doing = "MiB downloaded:", .op = conf->download, .hist = hist_new()};
    const struct transfer *const both[] = {&up, &down};
    char size[32], all[32];
    enum err e = prepare(&b, ei);
    if (e == ERR_OK) {
        tell(&b, "%s of %s at once, %s in all, on %s", COUNTED(conf->count, "file"),
             str_bytes(size, sizeof(size), conf->bytes), str_bytes(all, sizeof(all), conf->bytes * conf->count),
             COUNTED(w->roster.n_logins < conf->count ? w->roster.n_logins : conf->count, "login"));
        transfer(&b, &up, upload);
        if (up.ok && !worker_draining(w))
            transfer(&b, &down, download);
        print_rows(&b, both, ARRAY_LEN(both));
        for (size_t i = 0; i < ARRAY_LEN(both); i++)
            add_figures(w->ctx->result, both[i]);
    }
    clean_up(&b);
    release(&b);
    hist_free(&up.hist);
    hist_free(&down.hist);
    return e;
}
