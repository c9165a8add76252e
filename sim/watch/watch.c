#include "sim/watch/watch.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/secret.h"
#include "drive/proc.h"
#include "drive/stack/stack.h"
#include "net/work.h"
#include "sim/watch/host.h"
#include "sim/watch/remote.h"
#include "sim/watch/services.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_US     US_PER_S
#define FIRST_US      (15 * US_PER_S) /* until the first sample: ssh signs in */
#define STORE_FIND_US (5 * US_PER_S)

struct tree {                          /* a process watched with its children */
    int64_t pid;                       /* 0: none */
    enum watch_figure cpu, pss, files; /* files == pss: not shown */
    struct tree_counters before, now;
    bool there;
    struct mono at; /* of before; us 0: none yet */
};
struct watch {
    struct cmd_ctx *ctx;
    struct watch_values now;
    struct watch_fold laps[WATCH_LAPS], whole;
    struct watch_services *services;
    struct tree process, store;
    struct mono store_next, started;
    bool local;        /* the machine's own /proc */
    struct work *work; /* reading /proc takes milliseconds on a machine with many processes: not on the loop */
    struct group lane;
    struct done wake;
    bool stopping;
    struct host_counters first, before;
    struct mono before_at; /* us 0: no counters yet */
    struct buf snapshot;   /* of this machine */
    struct remote *remote; /* another machine; NULL: none is watched */
    struct done first_sample;
    FILE *csv;
};

static void write_csv(struct watch *w)
{
    char text[40];
    if (!w->csv)
        return;
    str_format(text, sizeof(text), "%.1f", (double)mono_diff(mono_now(), w->started) / 1e6);
    fputs(text, w->csv);
    for (unsigned f = 0; f < WATCH_COUNT; f++) {
        str_format(text, sizeof(text), ",%.*f", watch_decimals((enum watch_figure)f), w->now.v[f]);
        fputs(w->now.v[f] < 0 ? "," : text, w->csv);
    }
    fputc('\n', w->csv);
}

/* ---- samples ---- */

static void take_tree(struct tree *t, struct watch_values *out)
{
    struct mono at = mono_now();
    if (!t->pid)
        return;
    if (!t->there) {
        t->pid = 0;
        out->v[t->cpu] = out->v[t->pss] = out->v[t->files] = WATCH_UNKNOWN;
        return;
    }
    if (t->at.us && t->now.cpu_ticks >= t->before.cpu_ticks)
        out->v[t->cpu] = (double)(t->now.cpu_ticks - t->before.cpu_ticks) * 100 / (double)sysconf(_SC_CLK_TCK) /
                         ((double)mono_diff(at, t->at) / 1e6);
    out->v[t->files] = (double)t->now.open_files;
    out->v[t->pss] = (double)t->now.pss_kib / 1024;
    t->before = t->now;
    t->at = at;
}

static void take_host(struct watch *w, struct sv text)
{
    struct host_counters now;
    struct mono at = mono_now();
    if (!host_parse(text, &now))
        return;
    if (w->before_at.us && mono_diff(at, w->before_at) > 0)
        host_figures(&w->before, &now, &w->first, mono_diff(at, w->before_at), &w->now);
    else
        w->first = now;
    w->before = now;
    w->before_at = at;
    done_set(&w->first_sample);
}

static void read_host(struct watch *w)
{
    struct buf *all = &w->snapshot;
    char path[64];
    enum err e = ERR_OK;
    buf_reset(all);
    for (int i = 0; host_files[i] && e == ERR_OK; i++) {
        snprintf(path, sizeof(path), "/proc/%s", host_files[i]);
        e = buf_appendf(all, "== %s\n", host_files[i]);
        if (e == ERR_OK)
            (void)!file_read(path, all, ERR_ENV, NULL); /* what a machine lacks stays unknown */
    }
    if (e != ERR_OK)
        buf_reset(all);
}

/* The store may be killed and started again in the middle of a run. */
static void find_trees(struct watch *w)
{
    struct proc p;
    if (w->store.pid || !w->local || !mono_passed(w->store_next))
        return;
    w->store_next = mono_add(mono_now(), STORE_FIND_US);
    if (stack_find_process(w->ctx->loop, w->ctx->http, w->ctx->target->url, "store", &p))
        w->store =
            (struct tree){.pid = p.pid, .cpu = WATCH_STORE_CPU, .pss = WATCH_STORE_PSS, .files = WATCH_STORE_PSS};
}

static void fold(struct watch *w)
{
    for (int i = 0; i < WATCH_LAPS; i++)
        watch_fold_in(&w->laps[i], &w->now);
    watch_fold_in(&w->whole, &w->now);
    write_csv(w);
}

/* In a thread. */
static void collect(void *arg)
{
    struct watch *w = arg;
    struct tree *const trees[] = {&w->process, &w->store};
    if (w->local)
        read_host(w);
    for (size_t i = 0; i < ARRAY_LEN(trees); i++)
        trees[i]->there = trees[i]->pid && tree_read(trees[i]->pid, &trees[i]->now);
}

static void sample_lane(void *arg)
{
    struct watch *w = arg;
    do {
        find_trees(w);
        work_run(w->work, collect, w);
        if (w->local)
            take_host(w, (struct sv){buf_cstr(&w->snapshot), w->snapshot.len});
        take_tree(&w->process, &w->now);
        take_tree(&w->store, &w->now);
        fold(w);
    } while (!w->stopping && !done_wait_until(w->ctx->loop, &w->wake, mono_add(mono_now(), SAMPLE_US)));
}

/* ---- another machine ---- */

static void on_snapshot(void *arg, struct sv text)
{
    take_host(arg, text);
}

static void on_remote_end(void *arg)
{
    struct watch *w = arg;
    watch_unknown(&w->now);
    done_set(&w->first_sample);
}

static const struct remote_ops remote_ops = {on_snapshot, on_remote_end};

/* ---- docker ---- */

static MAY_YIELD enum err docker_pid(struct watch *w, const char *name, int64_t *pid, struct errinfo *ei)
{
    char text[200] = "";
    int status = 0;
    const char *const argv[] = {"docker", "inspect", "-f", "{{.State.Pid}}", "--", name, NULL};
    enum err e = stack_docker_judge(ei);
    if (e == ERR_OK)
        e = proc_ask(w->ctx->loop, argv, mono_add(mono_now(), FIRST_US), text, sizeof(text), &status, ei);
    struct sv said = sv_trim(sv_of(text));
    if (e == ERR_OK && (status != 0 || !sv_to_i64(said, pid) || *pid <= 0))
        e = err_set(ei, ERR_ENV, "--watch docker:%s: no such container runs here: " SV_FMT, name, SV_ARG(said));
    return e;
}

/* ---- life ---- */

static enum err watch_process(struct watch *w, int64_t pid, const char *what, struct errinfo *ei)
{
    struct tree_counters seen;
    if (!tree_read(pid, &seen))
        return err_set(ei, ERR_ENV, "--watch %s: there is no such process", what);
    w->process = (struct tree){.pid = pid, .cpu = WATCH_PROC_CPU, .pss = WATCH_PROC_PSS, .files = WATCH_PROC_FILES};
    w->local = true;
    return ERR_OK;
}

enum err watch_judge(const char *what, struct errinfo *ei)
{
    struct sv name = sv_of(what), kind;
    int64_t pid = 0;
    if (!what || strcmp(what, "local") == 0)
        return ERR_OK;
    if (sv_split(&name, ':', &kind) && name.n &&
        ((sv_eq_cstr(kind, "pid") && sv_to_i64(name, &pid) && pid > 0) || sv_eq_cstr(kind, "docker") ||
         (sv_eq_cstr(kind, "ssh") && *name.p != '-' && name.n <= REMOTE_HOST_MAX)))
        return ERR_OK;
    return err_set(ei, ERR_USAGE, "--watch takes local, pid:N, docker:NAME or ssh:[USER@]HOST[:PORT], not \"%s\"",
                   SHOWN(sv_of(what)));
}

static MAY_YIELD enum err choose(struct watch *w, const char *what, struct errinfo *ei)
{
    struct sv name = sv_of(what), kind;
    int64_t pid = 0;
    struct proc server;
    if (!what || strcmp(what, "local") == 0) {
        w->local = true;
        if (stack_find_process(w->ctx->loop, w->ctx->http, w->ctx->target->url, "server", &server))
            return watch_process(w, server.pid, "local", ei);
        return ERR_OK;
    }
    enum err e = watch_judge(what, ei);
    if (e != ERR_OK || !sv_split(&name, ':', &kind))
        return e;
    if (sv_eq_cstr(kind, "ssh"))
        return remote_new(&w->remote, w->ctx->loop, name.p, w->ctx->target, &remote_ops, w, ei);
    if (sv_eq_cstr(kind, "docker"))
        e = docker_pid(w, name.p, &pid, ei);
    else
        sv_to_i64(name, &pid);
    return e == ERR_OK ? watch_process(w, pid, what, ei) : e;
}

enum err watch_log(struct watch *w, const char *file, struct errinfo *ei)
{
    w->csv = secret_fopen(file, "wp");
    if (!w->csv)
        return err_sys(ei, ERR_ENV, "cannot write %s", file);
    setvbuf(w->csv, NULL, _IOLBF, 0);
    fputs("seconds", w->csv);
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        fprintf(w->csv, ",%s", watch_key((enum watch_figure)f));
    fputc('\n', w->csv);
    return ERR_OK;
}

enum err watch_new(struct watch **out, struct cmd_ctx *ctx, const char *what, struct errinfo *ei)
{
    struct watch *w = mem_zalloc(sizeof(*w));
    *w = (struct watch){.ctx = ctx, .started = mono_now()};
    buf_init(&w->snapshot, HOST_SNAPSHOT_MAX);
    watch_unknown(&w->now);
    enum err e = what || target_is_local(ctx->target) ? choose(w, what, ei) : ERR_OK;
    if (e == ERR_OK && w->remote) {
        if (!done_wait_until(ctx->loop, &w->first_sample, mono_add(mono_now(), FIRST_US)))
            e = err_set(ei, ERR_ENV, "--watch %s: no answer within 15 s", what);
        else if (watch_problem(w)[0])
            e = err_set(ei, ERR_ENV, "--watch %s: %s", what, watch_problem(w));
    }
    if (e == ERR_OK) {
        w->services = watch_services_new(ctx, &w->now);
        w->work = work_new(ctx->loop, 1);
        group_spawn(ctx->loop, &w->lane, sample_lane, w);
        *out = w;
    } else {
        watch_free(&w);
    }
    return e;
}

void watch_free(struct watch **wp)
{
    struct watch *w = *wp;
    if (!w)
        return;
    w->stopping = true;
    done_set(&w->wake);
    group_wait(w->ctx->loop, &w->lane);
    if (w->work)
        work_free(&w->work);
    watch_services_free(&w->services);
    remote_free(&w->remote);
    if (w->csv)
        fclose(w->csv);
    buf_done(&w->snapshot);
    MEM_FREE(*wp);
}

const struct watch_values *watch_latest(const struct watch *w)
{
    return &w->now;
}

void watch_lap(struct watch *w, enum watch_lap which, struct watch_values *out)
{
    watch_fold_out(&w->laps[which], out);
    w->laps[which] = (struct watch_fold){{0}, {0}, {0}};
}

void watch_whole(const struct watch *w, struct watch_values *out)
{
    watch_fold_out(&w->whole, out);
}

const char *watch_problem(const struct watch *w)
{
    return w->remote ? remote_problem(w->remote) : "";
}

void watch_result(const struct watch_values *v, struct result *r)
{
    struct buf json = BUF_INIT(64u << 10);
    struct jsonw out;
    jsonw_init(&out, &json);
    watch_json(v, NULL, &out);
    result_part(r, "watch", &out);
}
