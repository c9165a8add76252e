/* `sim run`: desktop apps against the server. Everything that can be known before the start is: the plan against the
 * logins and budgets there are, the open files, the folder for the ledger. */
#include "base/mem.h"
#include "drive/api/caps.h"
#include "sim/app/fleet.h"
#include "sim/app/logins.h"
#include "sim/app/open_files.h"
#include "sim/app/storm.h"
#include "sim/app/timeline.h"
#include "sim/large/bigfiles.h"
#include "sim/large/bulk.h"
#include "sim/run/inject.h"
#include "sim/run/phase.h"
#include "sim/run/plan.h"
#include "sim/run/rundir.h"
#include "sim/run/stills.h"
#include "sim/watch/watch.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#define ARRIVE_PER_S_LEAST 25
#define ARRIVE_WITHIN_S    20

struct run_conf {
    int64_t apps, open_folders, window_us, grace_us, report_us, timeout_us, stream_idle_us, poll_us;
    double per_minute, arrive_per_s; /* arrive_per_s 0: by the number of apps */
    const char *mix_file, *run_dir;
    struct mix mix; /* what mix_file says */
    bool no_ledger, spread_addresses;
    const char *watch, *bigfiles, *chaos, *slow_readers;
    int64_t bulk_us, storm_us, server_pid; /* bulk_us, storm_us -1: none */
};
struct run {
    const struct run_conf *conf;
    struct cmd_ctx *ctx;
    struct worker worker;
    struct report report;
    struct rundir dir;
    struct plan plan;
    uint32_t *actions; /* of each app */
    uint64_t n_actions, fingerprint;
    double arrive_per_s;
    struct mono began;
    struct inject inject;
    struct chaos chaos;
    char chaos_log[300];
    struct server_watch *watch;
    struct stills *stills;
};

static const struct opt_pos pos[] = {
    {"apps", OPT_INT, offsetof(struct run_conf, apps), 1, 100000, false, "how many desktop apps"},
    {"folders", OPT_INT, offsetof(struct run_conf, open_folders), 1, 1000000, false, "folders that each keeps open"},
    {"actions/min", OPT_NUM, offsetof(struct run_conf, per_minute), 0, 60000, false, "actions a minute of each app"},
    {"seconds", OPT_DURATION, offsetof(struct run_conf, window_us), 1e6, 1e13, false, "length of the measured window"},
    {0},
};
static const struct opt opts[] = {
    {"mix", 0, "FILE", OPT_STR, offsetof(struct run_conf, mix_file), 0, 0,
     "weights of the actions, a line each: 'download 55'"},
    {"arrive", 0, "N", OPT_NUM, offsetof(struct run_conf, arrive_per_s), 0.001, 100000,
     "apps started a second, evenly spaced\n(default 25, or as many as are up within 20 s)"},
    {"bigfiles", 0, "COUNTxMIB@SECOND", OPT_STR, offsetof(struct run_conf, bigfiles), 0, 0,
     "uploads so many big files at once, then downloads\nthem, from this second of the window on: 10x300@60"},
    {"bulk", 0, "SECOND", OPT_DURATION, offsetof(struct run_conf, bulk_us), 0, 1e13,
     "the largest folder copied, trashed and deleted for\ngood, from this second on (also written --bulk@30)"},
    {"chaos", 0, "VERB:PART@SECOND[+SECONDS],…", OPT_STR, offsetof(struct run_conf, chaos), 0, 0,
     "takes parts of this folder's stack away and brings them\nback: "
     "kill:server@20,stop:redis@40,pause:postgres@60+10,\n"
     "fill:store@80+10 (its disk), fill:postgres@100 (its\nconnections); what fails meanwhile is counted apart, the\n"
     "checks decide"},
    {"slow-readers", 0, "SHARE", OPT_STR, offsetof(struct run_conf, slow_readers), 0, 0,
     "share of the apps (10%) that read their event stream\nat 64 bytes a second through the smallest buffer: the\n"
     "server should end such a stream and make no other\nwait; they are left out of the figures of events"},
    {"reconnect-storm", 0, "SECOND", OPT_DURATION, offsetof(struct run_conf, storm_us), 0, 1e13,
     "all event streams broken at this second, as by a\nproxy's restart; each comes back after 0.5 to 1 s,\n"
     "refused ones after up to twice as long each time, at\nmost 30 s; never before what the server asks for"},
    {"server-pid", 0, "PID", OPT_INT, offsetof(struct run_conf, server_pid), 1, 1 << 30,
     "the server's process, to watch its memory\n(default: the stack's own, else what /metrics says)"},
    WATCH_OPT(struct run_conf, watch),
    {"grace", 0, "TIME", OPT_DURATION, offsetof(struct run_conf, grace_us), 0, 3.6e9,
     "how long to wait at the end for what is still running\n(default 15 s)"},
    {"report-every", 0, "TIME", OPT_DURATION, offsetof(struct run_conf, report_us), 1e5, 3.6e9,
     "time between two reports (default 15 s)"},
    {"timeout", 0, "TIME", OPT_DURATION, offsetof(struct run_conf, timeout_us), 1e5, 3.6e9,
     "of one request; transfers get as much again\nfor each 4 MiB (default 60 s)"},
    {"stream-idle", 0, "TIME", OPT_DURATION, offsetof(struct run_conf, stream_idle_us), 1e5, 3.6e9,
     "an event stream that is silent for this long is dead\n(default 75 s: servers send a comment every 30 s)"},
    {"poll", 0, "TIME", OPT_DURATION, offsetof(struct run_conf, poll_us), 1e5, 3.6e9,
     "how often an app asks what changed, without being told\nby an event (default 60 s)"},
    {"run-dir", 0, "DIR", OPT_STR, offsetof(struct run_conf, run_dir), 0, 0,
     "where ledger and settings go\n(default runs/TIME-SEED)"},
    {"no-ledger", 0, NULL, OPT_FLAG, offsetof(struct run_conf, no_ledger), 0, 0,
     "keep no ledger: acknowledged writes are then not checked"},
    {"spread-addresses", 0, NULL, OPT_FLAG, offsetof(struct run_conf, spread_addresses), 0, 0,
     "a loopback address for each app, for servers that\ncount requests by address"},
    {0},
};
static const struct run_conf defaults = {.grace_us = 15 * US_PER_S,
                                         .report_us = 15 * US_PER_S,
                                         .timeout_us = 60 * US_PER_S,
                                         .stream_idle_us = 75 * US_PER_S,
                                         .poll_us = 60 * US_PER_S,
                                         .bulk_us = -1,
                                         .storm_us = -1};

static void on_interrupt(void *arg)
{
    struct run *run = arg;
    if (*run->ctx->interrupts < 2) {
        worker_set_phase(&run->worker, PHASE_DRAIN);
        return;
    }
    worker_set_phase(&run->worker, PHASE_CUT);
    meter_next_interval(&run->worker.meter);
    report_result(&run->report);
}

/* ---- before the start ---- */

static void print_setup(const struct run *run, int64_t took_us)
{
    const struct worker *w = &run->worker;
    uint64_t folders = 0;
    char n[32], t[32], r[32];
    for (uint32_t a = 0; a < w->roster.n_accounts; a++)
        folders += folders_count(w->roster.accounts[a].folders);
    fprintf(run->ctx->out, "set-up: %s of %s signed in, %s folders read in %s (%s requests)\n",
            COUNTED(w->roster.n_logins, "login"), COUNTED(w->roster.n_accounts, "account"),
            str_thousands(n, sizeof(n), folders), str_duration(t, sizeof(t), took_us),
            str_thousands(r, sizeof(r), w->meter.interval.by_cause[CAUSE_SETUP]));
}

static void print_plan(const struct run *run, uint64_t files_limit)
{
    const struct run_conf *c = run->conf;
    const struct worker *w = &run->worker;
    FILE *out = run->ctx->out;
    char line[200], chaos[2000], a[32], b[32], s[32];
    str_format(line, sizeof(line), "%s on %s, %s each, %g actions/min each, %s", COUNTED((uint64_t)c->apps, "app"),
               COUNTED(w->roster.n_logins, "login"), COUNTED(run->plan.open_folders, "open folder"), c->per_minute,
               str_duration(s, sizeof(s), c->window_us));
    fprintf(out, "run: %s\n", line);
    if (run->plan.open_folders < c->open_folders)
        fprintf(out, "     the tree has fewer folders than the %" PRId64 " asked for: each app opens all of them\n",
                c->open_folders);
    fprintf(out, "plan: seed %" PRIu64 " (%08x), %s actions, about %s requests;\n", w->conf.seed,
            (unsigned)(run->fingerprint >> 32), str_thousands(a, sizeof(a), run->n_actions),
            str_thousands(b, sizeof(b), (uint64_t)run->plan.whole));
    char budget[32] = "";
    if (run->plan.login_budget)
        snprintf(budget, sizeof(budget), " of %d", DRIVE_REQUESTS_PER_15MIN);
    str_format(line, sizeof(line), "the busiest login %.0f%s requests in 15 min; %" PRIu64 " open files of %" PRIu64,
               run->plan.login_15min, budget, open_files_needed((unsigned)c->apps, w->roster.n_logins), files_limit);
    fprintf(out, "      %s\n", line);
    str_format(line, sizeof(line), "arriving at %g apps/s (%.1f s), then the first full pass; the end waits at most %s",
               run->arrive_per_s, (double)c->apps / run->arrive_per_s, str_duration(s, sizeof(s), c->grace_us));
    fprintf(out, "      %s\n", line);
    if (inject_text(&run->inject, line, sizeof(line))[0])
        fprintf(out, "      in the middle: %s\n", line);
    if (run->chaos.n)
        fprintf(out, "      taken away: %s\n", chaos_text(&run->chaos, chaos, sizeof(chaos)));
    if (run->dir.path[0])
        fprintf(out, "      run folder %s\n", run->dir.path);
    if (w->server.foreign)
        fprintf(out, "      note: files that seed did not make: downloads are checked by length alone\n");
    fflush(out);
}

/* What there is to work with. */
static void describe_plan(struct run *run)
{
    const struct run_conf *c = run->conf;
    struct worker *w = &run->worker;
    uint64_t folders = 0;
    uint32_t accounts = 0, most = 0;
    for (uint32_t a = 0; a < w->roster.n_accounts; a++) {
        uint32_t n = folders_count(w->roster.accounts[a].folders);
        accounts += w->roster.accounts[a].n_logins > 0;
        folders += n;
        most = n > most ? n : most;
    }
    run->plan = (struct plan){.apps = (unsigned)c->apps,
                              .open_folders = (unsigned)(c->open_folders < most ? c->open_folders : most),
                              .per_minute = c->per_minute,
                              .window_us = c->window_us,
                              .accounts = accounts,
                              .logins = w->roster.n_logins,
                              .tree_folders = (unsigned)(folders / accounts),
                              .mix = &w->mix,
                              .locks = w->server.caps & API_CAP_LOCKS,
                              .feed = w->server.caps & API_CAP_FEED,
                              .events = w->server.caps & API_CAP_EVENTS,
                              .poll_us = c->poll_us,
                              .sub_users = w->server.caps & API_CAP_SUB_USERS,
                              .login_budget = !c->spread_addresses && (w->server.caps & API_CAP_SIGN_UP)};
}

static double arrival_rate(const struct run_conf *c)
{
    double per_s = (double)c->apps / ARRIVE_WITHIN_S;
    if (c->arrive_per_s > 0)
        return c->arrive_per_s;
    return per_s < ARRIVE_PER_S_LEAST ? ARRIVE_PER_S_LEAST : per_s;
}

static enum err make_plan(struct run *run, uint64_t *files_limit, struct errinfo *ei)
{
    const struct run_conf *c = run->conf;
    struct worker *w = &run->worker;
    describe_plan(run);
    plan_estimate(&run->plan);
    enum err e = plan_check(&run->plan, ei);
    if (e == ERR_OK)
        e = open_files_for_apps(run->plan.apps + run->inject.count, w->roster.n_logins, files_limit, ei);
    if (e != ERR_OK)
        return e;
    run->actions = mem_zalloc((size_t)c->apps * sizeof(*run->actions));
    run->n_actions = pace_total(w->conf.seed, run->plan.apps, c->per_minute, c->window_us);
    pace_split(w->conf.seed, run->n_actions, run->plan.apps, run->actions);
    run->fingerprint = pace_fingerprint(w->conf.seed, run->plan.apps, run->actions, c->window_us, &w->mix);
    run->arrive_per_s = arrival_rate(c);
    return ERR_OK;
}

/* Everything that can be refused without asking the server comes before it is asked. */
static MAY_YIELD enum err find_all(struct run *run, struct errinfo *ei)
{
    const struct run_conf *c = run->conf;
    struct worker *w = &run->worker;
    unsigned logins_least = (unsigned)((c->apps + DRIVE_STREAMS_PER_LOGIN - 1) / DRIVE_STREAMS_PER_LOGIN);
    enum err e = inject_init(&run->inject, w, c->bigfiles, c->bulk_us, c->storm_us, ei);
    if (e == ERR_OK)
        e = chaos_init(&run->chaos, w, c->chaos, ei);
    if (e == ERR_OK)
        e = open_files_for_apps((unsigned)c->apps + run->inject.count, logins_least, NULL, ei);
    if (e == ERR_OK)
        e = server_watch_new(&run->watch, run->ctx, c->server_pid, ei);
    run->inject.watch = run->watch;
    if (e == ERR_OK)
        e = watch_new(&w->watch, run->ctx, c->watch, ei);
    if (e == ERR_OK && c->mix_file)
        w->mix = c->mix;
    return e == ERR_OK ? fleet_find(w, ei) : e;
}

/* The folder of the run and what is written into it from now on; in memory alone under --no-ledger. */
static enum err open_dir(struct run *run, struct errinfo *ei)
{
    const struct run_conf *c = run->conf;
    struct worker *w = &run->worker;
    char file[300];
    enum err e = c->no_ledger ? ERR_OK : rundir_create(&run->dir, w, c->run_dir, ei);
    if (e == ERR_OK && !c->no_ledger)
        e = rundir_describe(&run->dir, run->n_actions, run->fingerprint, ei);
    if (e == ERR_OK)
        e = rundir_keep_course(run->ctx, run->dir.path, ei);
    if (e != ERR_OK || !run->dir.path[0])
        return e;
    snprintf(run->ctx->result->run_dir, sizeof(run->ctx->result->run_dir), "%s", run->dir.path);
    str_format(file, sizeof(file), "%s/watch.csv", run->dir.path);
    return watch_log(w->watch, file, ei);
}

static MAY_YIELD enum err prepare(struct run *run, struct errinfo *ei)
{
    uint64_t files_limit = 0;
    struct mono began = mono_now();
    enum err e = find_all(run, ei);
    if (e != ERR_OK)
        return e;
    if (!run->ctx->common->quiet)
        print_setup(run, mono_diff(mono_now(), began));
    caps_tell(run->ctx, run->worker.server.caps);
    e = make_plan(run, &files_limit, ei);
    if (e == ERR_OK)
        e = open_dir(run, ei);
    if (e == ERR_OK && !run->ctx->common->quiet)
        print_plan(run, files_limit);
    return e;
}

/* ---- the run and its result ---- */

static void add_figures(struct result *r, struct run *run, const struct phases *c)
{
    struct worker *w = &run->worker;
    const struct tally *t = &w->meter.actions;
    uint64_t not_started = 0;
    r->caps = w->server.caps; /* some lacks show only in the work */
    worker_fallbacks(w, r->note, sizeof(r->note));
    double per_s = c->measured_us ? 1e6 / (double)c->measured_us : 0;
    for (uint32_t i = 0; i < w->fleet.n; i++)
        not_started += app_not_started(&w->fleet.apps[i]);
    if (c->measured_us == 0)
        not_started = run->n_actions;
    const struct {
        const char *section, *key;
        double value;
        int decimals;
    } rows[] = {
        {"window", "seconds", (double)c->measured_us / 1e6, 2},
        {"window", "requests", (double)c->window_requests, 0},
        {"window", "requests_per_s", (double)c->window_requests * per_s, 1},
        {"writes", "acknowledged", (double)c->window_writes, 0},
        {"writes", "per_s", (double)c->window_writes * per_s, 1},
        {"writes", "per_s_of_the_busiest_account", (double)c->busiest_writes * per_s, 1},
        {"actions", "planned", (double)run->n_actions, 0},
        {"actions", "done", (double)t->done, 0},
        {"actions", "conflicts", (double)t->conflicts, 0},
        {"actions", "failed", (double)t->failed, 0},
        {"actions", "during_outage", (double)t->outage, 0},
        {"actions", "unfinished", (double)t->unfinished, 0},
        {"actions", "nothing_to_act_on", (double)t->empty, 0},
        {"actions", "not_started", (double)not_started, 0},
        {"actions", "late", (double)t->late, 0},
        {"outages", "count", (double)w->meter.n_outages, 0},
        {"outages", "seconds", (double)timeline_outage_us(&w->meter) / 1e6, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        result_figure(r, rows[i].section, rows[i].key, rows[i].value, rows[i].decimals);
}

static void sample(struct result *r)
{
    struct run *none = mem_zalloc(sizeof(*none));
    add_figures(r, none, &(struct phases){0});
    mem_free(none);
    bigfiles_sample(r);
    bulk_sample(r);
}

static void add_results(struct run *run, const struct phases *c)
{
    struct worker *w = &run->worker;
    struct result *r = run->ctx->result;
    add_figures(r, run, c);
    storm_figures(w, r);
    r->seconds_us = c->measured_us;
    struct mono zero = w->schedule.window.us ? w->schedule.window : run->began;
    timeline_result(&w->meter, zero, r);
    inject_result(&run->inject, zero, r);
    struct watch_values watched = c->watched;
    if (c->measured_us == 0)
        watch_whole(w->watch, &watched);
    watch_result(&watched, r);
    if (!run->ctx->common->quiet)
        timeline_print(&w->meter, zero, run->ctx->out);
}

static MAY_YIELD enum err carry_out(struct run *run, struct errinfo *ei)
{
    struct phases c = {.w = &run->worker,
                       .tells = true,
                       .report = &run->report,
                       .inject = &run->inject,
                       .chaos = &run->chaos,
                       .chaos_log = run->chaos_log,
                       .actions = run->actions,
                       .arrive_per_s = run->arrive_per_s,
                       .report_us = run->conf->report_us,
                       .grace_us = run->conf->grace_us};
    malloc_trim(0); /* what the set-up freed must not hide what the apps take */
    report_floor(&run->report);
    enum err e = fleet_make(&run->worker, ei);
    if (e == ERR_OK)
        e = stills_new(&run->stills, &run->worker, ei);
    if (e != ERR_OK)
        return e;
    logins_keep(&run->worker);
    str_format(run->chaos_log, sizeof(run->chaos_log), "%s", "/dev/null");
    if (run->dir.path[0])
        str_format(run->chaos_log, sizeof(run->chaos_log), "%s/chaos.log", run->dir.path);
    phases_run(&c);
    struct errinfo not_back;
    enum err chaos = chaos_end(&run->chaos, &not_back);
    add_results(run, &c);
    stills_free(&run->stills);
    e = rundir_close(&run->dir, ei);
    if (e == ERR_OK && chaos != ERR_OK) {
        e = chaos;
        *ei = not_back;
    }
    return e;
}

static enum err verify(void *arg, struct errinfo *ei)
{
    struct run_conf *c = arg;
    double share;
    enum err e = inject_judge(c->bigfiles, c->bulk_us, c->storm_us, c->window_us, ei);
    if (e == ERR_OK)
        e = chaos_judge(c->chaos, c->window_us, ei);
    if (e == ERR_OK && c->slow_readers && !storm_parse_share(c->slow_readers, &share))
        e = err_set(ei, ERR_USAGE, "--slow-readers takes a share of the apps, such as 10%%, not \"%s\"",
                    SHOWN(sv_of(c->slow_readers)));
    if (e == ERR_OK)
        e = watch_judge(c->watch, ei);
    if (e == ERR_OK)
        e = rundir_judge(c->no_ledger ? NULL : c->run_dir, ei);
    return e == ERR_OK && c->mix_file ? mix_load(&c->mix, c->mix_file, ei) : e;
}

static MAY_YIELD enum err run_main(void *conf, struct cmd_ctx *ctx, struct errinfo *ei)
{
    struct run *run = mem_zalloc(sizeof(*run));
    struct worker *w = &run->worker;
    run->conf = conf;
    run->ctx = ctx;
    run->began = mono_now();
    struct worker_conf wc = {.apps = (unsigned)run->conf->apps,
                             .open_folders = (unsigned)run->conf->open_folders,
                             .per_minute = run->conf->per_minute,
                             .window_us = run->conf->window_us,
                             .timeout_us = run->conf->timeout_us,
                             .stream_idle_us = run->conf->stream_idle_us,
                             .poll_us = run->conf->poll_us,
                             .spread_addresses = run->conf->spread_addresses,
                             .seed = (uint64_t)ctx->common->seed};
    if (run->conf->slow_readers)
        storm_parse_share(run->conf->slow_readers, &wc.slow_readers);
    worker_init(w, ctx, &wc);
    report_init(&run->report, w, ctx->common->quiet ? NULL : ctx->out, ctx->color);
    ctx->on_interrupt_arg = run;
    ctx->on_interrupt = on_interrupt;
    enum err e = prepare(run, ei);
    if (e == ERR_OK)
        e = carry_out(run, ei);
    struct errinfo close_why;
    if (w->ledger.file && rundir_close(&run->dir, &close_why) != ERR_OK && e == ERR_OK) {
        e = close_why.code;
        *ei = close_why;
    }
    ctx->on_interrupt = NULL;
    server_watch_free(&run->watch);
    watch_free(&w->watch);
    meter_next_interval(&w->meter); /* what a run that was refused has asked */
    fleet_free(w);
    report_done(&run->report);
    chaos_done(&run->chaos);
    worker_done(w);
    mem_free(run->actions);
    mem_free(run);
    return e;
}

const struct command cmd_run = {
    .name = "run",
    .summary = "simulate desktop apps, report every 15 s, then check what the server kept",
    .usage = "sim run <apps> <folders> <actions/min> <seconds> [options]",
    .examples = "sim run 50 300 2 180\n"
                "sim run 100 50 30 4min --fail-on 'save.p99<200ms' --json run.json\n"
                "sim run 150 1000 2 180 --bigfiles 10x300@60 --bulk@30\n"
                "sim run 2000 10 0.2 120 --arrive 100\n"
                "sim run 20 20 12 60 --chaos kill:server@10,pause:postgres@20+5,stop:redis@35",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct run_conf),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_NEEDS_URL | CMD_THEN_CHECK | CMD_FAILURES_MATTER,
    .verify = verify,
    .run = run_main,
    .sample = sample,
};
