#include "sim/watch/watch.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "drive/proc.h"
#include "drive/stack/stack.h"
#include "net/work.h"
#include "sim/watch/host.h"
#include "sim/watch/services.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE_US     US_PER_S
#define FIRST_US      (15 * US_PER_S) /* ssh signs in */
#define LINE_WIDTH    110
#define SNAPSHOT      (1u << 20)
#define STORE_FIND_US (5 * US_PER_S)

enum fold { FOLD_MEAN, FOLD_MOST };
static const struct {
    const char *key, *text;
    int decimals;
    enum fold fold;
} figures[WATCH_COUNT] = {
#define X(sym, key, text, decimals, fold) [WATCH_##sym] = {key, text, decimals, FOLD_##fold},
    WATCH_FIGURES(X)
#undef X
};

struct folded {
    double sum[WATCH_COUNT], most[WATCH_COUNT];
    uint64_t n[WATCH_COUNT];
};
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
    struct folded laps[WATCH_LAPS], whole;
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
    struct proc ssh;
    int ssh_fd; /* -1: none */
    struct io ssh_io;
    char ssh_dir[40];
    struct buf snapshot;
    struct done first_sample;
    char problem[240], host[120];
    FILE *csv;
};

/* ---- names ---- */

const char *watch_key(enum watch_figure f)
{
    return figures[f].key;
}

char *watch_amount(enum watch_figure f, double value, char *dst, size_t n)
{
    static const char *const units[] = {" %", " MiB", " ms", " MB/s"};
    struct sv name = sv_of(figures[f].text);
    const char *unit = "";
    for (size_t i = 0; i < ARRAY_LEN(units) && !unit[0]; i++)
        if (sv_ends(name, sv_of(units[i]))) {
            unit = units[i];
            name.n -= strlen(unit);
        }
    str_format(dst, n, SV_FMT " %.*f%s", SV_ARG(name), figures[f].decimals, value, unit);
    return dst;
}

int watch_decimals(enum watch_figure f)
{
    return figures[f].decimals;
}

bool watch_find(struct sv key, enum watch_figure *out)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        if (sv_eq_cstr(key, figures[f].key)) {
            *out = (enum watch_figure)f;
            return true;
        }
    return false;
}

/* ---- folding ---- */

static void unknown(struct watch_values *v)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        v->v[f] = WATCH_UNKNOWN;
}

static void fold_in(struct folded *k, const struct watch_values *v)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++) {
        if (v->v[f] < 0)
            continue;
        k->most[f] = k->n[f] && k->most[f] > v->v[f] ? k->most[f] : v->v[f];
        k->sum[f] += v->v[f];
        k->n[f]++;
    }
}

static void fold_out(const struct folded *k, struct watch_values *v)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        v->v[f] = !k->n[f] ? WATCH_UNKNOWN : figures[f].fold == FOLD_MOST ? k->most[f] : k->sum[f] / (double)k->n[f];
}

static void write_csv(struct watch *w)
{
    char text[40];
    if (!w->csv)
        return;
    str_format(text, sizeof(text), "%.1f", (double)mono_diff(mono_now(), w->started) / 1e6);
    fputs(text, w->csv);
    for (unsigned f = 0; f < WATCH_COUNT; f++) {
        str_format(text, sizeof(text), ",%.*f", figures[f].decimals, w->now.v[f]);
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
        fold_in(&w->laps[i], &w->now);
    fold_in(&w->whole, &w->now);
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

/* ---- ssh ---- */

static void end_ssh(struct watch *w)
{
    if (w->ssh_fd >= 0) {
        loop_io_remove(&w->ssh_io);
        close(w->ssh_fd);
    }
    w->ssh_fd = -1;
}

/* What ssh says of itself comes before the first snapshot, or after the last. */
static void note_problem(struct watch *w)
{
    struct sv rest = {buf_cstr(&w->snapshot), w->snapshot.len}, line, last = {"", 0};
    while (sv_split(&rest, '\n', &line))
        if (sv_trim(line).n)
            last = sv_trim(line);
    char shown[154];
    snprintf(w->problem, sizeof(w->problem), "ssh to %s ended%s%s", w->host, last.n ? ": " : "",
             str_shown(shown, sizeof(shown), last));
}

static void on_ssh(struct io *io, uint32_t events)
{
    static const char end[] = "== end\n";
    struct watch *w = container_of(io, struct watch, ssh_io);
    char piece[16384];
    (void)events;
    ssize_t n = read(w->ssh_fd, piece, sizeof(piece));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buf_append(&w->snapshot, piece, (size_t)n) != ERR_OK) {
        note_problem(w);
        end_ssh(w);
        unknown(&w->now);
        done_set(&w->first_sample);
        return;
    }
    for (const char *at; (at = strstr(buf_cstr(&w->snapshot), end));) {
        size_t len = (size_t)(at - w->snapshot.data);
        take_host(w, (struct sv){w->snapshot.data, len});
        buf_consume(&w->snapshot, len + sizeof(end) - 1);
    }
}

/* The other side prints the same files with the same marks, each second, until its pipe breaks. */
static enum err start_ssh(struct watch *w, struct errinfo *ei)
{
    struct buf script = BUF_INIT(1024);
    char fifo[60];
    int pidfd = -1;
    enum err e = buf_append_str(&script, "while :; do for f in");
    for (int i = 0; host_files[i] && e == ERR_OK; i++)
        e = buf_appendf(&script, " %s", host_files[i]);
    if (e == ERR_OK)
        e = buf_append_str(&script, "; do echo \"== $f\"; cat /proc/$f; done; echo '== end'; sleep 1 || exit; done");
    snprintf(w->ssh_dir, sizeof(w->ssh_dir), "/tmp/drivesim-watch-XXXXXX");
    if (e == ERR_OK && !mkdtemp(w->ssh_dir))
        e = err_sys(ei, ERR_ENV, "cannot make a folder in /tmp");
    snprintf(fifo, sizeof(fifo), "%s/out", w->ssh_dir);
    if (e == ERR_OK && mkfifo(fifo, 0600) != 0)
        e = err_sys(ei, ERR_ENV, "cannot make a pipe in /tmp");
    if (e == ERR_OK && (w->ssh_fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        e = err_sys(ei, ERR_ENV, "cannot open a pipe in /tmp");
    const char *const argv[] = {"ssh", "-o",    "BatchMode=yes",   "-o", "ConnectTimeout=10",
                                "--",  w->host, buf_cstr(&script), NULL};
    const struct proc_spec spec = {.argv = argv, .cwd = ".", .log = fifo, .dies_with_us = true};
    if (e == ERR_OK)
        e = proc_start(&spec, &w->ssh, &pidfd, ei);
    if (pidfd >= 0)
        close(pidfd);
    if (e == ERR_OK) {
        w->ssh_io = (struct io){.fd = w->ssh_fd, .fn = on_ssh};
        e = loop_io_add(w->ctx->loop, &w->ssh_io, EPOLLIN, ei);
    }
    unlink(fifo);
    rmdir(w->ssh_dir);
    buf_done(&script);
    return e;
}

/* ---- docker ---- */

static MAY_YIELD enum err docker_pid(struct watch *w, const char *name, int64_t *pid, struct errinfo *ei)
{
    char text[200];
    int status = 0;
    const char *const argv[] = {"docker", "inspect", "-f", "{{.State.Pid}}", "--", name, NULL};
    enum err e = proc_ask(w->ctx->loop, argv, mono_add(mono_now(), FIRST_US), text, sizeof(text), &status, ei);
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
    if (sv_split(&name, ':', &kind) && name.n) {
        if (sv_eq_cstr(kind, "pid") && sv_to_i64(name, &pid) && pid > 0)
            return watch_process(w, pid, what, ei);
        if (sv_eq_cstr(kind, "docker")) {
            enum err e = docker_pid(w, name.p, &pid, ei);
            return e == ERR_OK ? watch_process(w, pid, what, ei) : e;
        }
        if (sv_eq_cstr(kind, "ssh") && *name.p != '-' && str_fit(w->host, sizeof(w->host), name.p))
            return start_ssh(w, ei);
    }
    return err_set(ei, ERR_USAGE, "--watch takes local, pid:N, docker:NAME or ssh:HOST, not \"%s\"", what);
}

enum err watch_log(struct watch *w, const char *file, struct errinfo *ei)
{
    w->csv = fopen(file, "we");
    if (!w->csv)
        return err_sys(ei, ERR_ENV, "cannot write %s", file);
    setvbuf(w->csv, NULL, _IOLBF, 0);
    fputs("seconds", w->csv);
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        fprintf(w->csv, ",%s", figures[f].key);
    fputc('\n', w->csv);
    return ERR_OK;
}

enum err watch_new(struct watch **out, struct cmd_ctx *ctx, const char *what, struct errinfo *ei)
{
    struct watch *w = mem_zalloc(sizeof(*w));
    *w = (struct watch){.ctx = ctx, .ssh_fd = -1, .started = mono_now()};
    buf_init(&w->snapshot, SNAPSHOT);
    unknown(&w->now);
    enum err e = what || target_is_local(ctx->target) ? choose(w, what, ei) : ERR_OK;
    if (e == ERR_OK && w->ssh_fd >= 0) {
        if (!done_wait_until(ctx->loop, &w->first_sample, mono_add(mono_now(), FIRST_US)))
            e = err_set(ei, ERR_ENV, "--watch %s: no answer within 15 s", what);
        else if (w->problem[0])
            e = err_set(ei, ERR_ENV, "--watch %s: %s", what, w->problem);
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
    end_ssh(w);
    if (w->ssh.pid && proc_end(w->ctx->loop, &w->ssh, 1, 15, US_PER_S, NULL) != ERR_OK)
        proc_kill_session(&w->ssh);
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
    fold_out(&w->laps[which], out);
    w->laps[which] = (struct folded){{0}, {0}, {0}};
}

void watch_whole(const struct watch *w, struct watch_values *out)
{
    fold_out(&w->whole, out);
}

const char *watch_problem(const struct watch *w)
{
    return w->problem;
}

/* ---- telling ---- */

char *watch_line(const struct watch_values *v, const char *turn, char *dst, size_t n)
{
    size_t at = 0, begun = 0;
    const char *sep = "";
    char amount[64];
    dst[0] = '\0';
    for (unsigned f = 0; f < WATCH_COUNT && at < n; f++) {
        if (f == WATCH_PROC_CPU && at)
            sep = turn;
        if (v->v[f] < 0)
            continue;
        watch_amount((enum watch_figure)f, v->v[f], amount, sizeof(amount));
        if (sep[0] == ',' && at - begun + strlen(amount) > LINE_WIDTH)
            sep = turn;
        if (sep == turn)
            begun = at;
        str_format(dst + at, n - at, "%s%s", sep, amount);
        at += strlen(dst + at);
        sep = ", ";
    }
    return dst;
}

void watch_json(const struct watch_values *v, const char *key, struct jsonw *w)
{
    jsonw_object(w, key);
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        if (v->v[f] >= 0)
            jsonw_f64(w, figures[f].key, v->v[f], figures[f].decimals + 1);
    jsonw_end_object(w);
}

void watch_result(const struct watch *w, struct result *r)
{
    struct buf json = BUF_INIT(64u << 10);
    struct watch_values v;
    struct jsonw out;
    jsonw_init(&out, &json);
    watch_whole(w, &v);
    watch_json(&v, NULL, &out);
    result_part(r, "watch", &out);
}
