/* The program: a table of commands and one way to run any of them. Whatever happens - a wrong argument, a dead server,
 * a reader that leaves, Ctrl-C - ends in finish(): one sentence, one summary, the JSON that was asked for, one exit
 * status. setlocale is never called: numbers are written and read with '.' everywhere. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/version.h"
#include "checks/runner.h"
#include "drive/api/api.h"
#include "drive/api/scheme.h"
#include "drive/belong.h"
#include "drive/cmd.h"
#include "drive/health.h"
#include "net/guard.h"
#include "net/httpc.h"
#include "net/loop.h"
#include "sim/arguments.h"
#include "sim/outputs.h"
#include "sim/process.h"
#include "sim/stop/kill_switch.h"
#include "sim/usage.h"
#include "store/kv.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN_US (50 * US_PER_MS)

/* One row a command; each command's file defines its cmd_NAME. */
/* clang-format off */
#define COMMANDS(X) \
    X(stack) \
    X(seed) \
    X(fixture) \
    X(run) \
    X(check) \
    X(report) \
    X(bigfiles) \
    X(bulk) \
    X(refusals) \
    X(reads) \
    X(pairs) \
    X(ramp) \
    X(baseline) \
    X(http) \
    X(mix) \
    X(stop) \
    X(clean) \
    X(serve) \
    X(doctor)
/* clang-format on */
#define X(name) extern const struct command cmd_##name;
COMMANDS(X)
#undef X

static const struct command *const commands[] = {
#define X(name) &cmd_##name,
    COMMANDS(X)
#undef X
        NULL,
};

struct program {
    const struct command *cmd;
    struct cmd_common *common; /* the start of one block; conf follows it */
    void *conf;
    struct opt_table tables[2];
    struct outputs outputs;
    struct result result;
    struct target target;
    struct cmd_ctx ctx;
    struct loop *loop;
    struct httpc *http;
    struct io out_watch;
    struct timer end_timer, cut_timer, again_timer;
    bool stopped;        /* by the kill switch */
    struct mono started; /* us 0: the command never began */
    volatile int interrupts;
};

/* The only one: signal handlers of commands without a loop must find it. */
static struct program program;

/* ---- the end ---- */

/* A pipe or socket whose reader has gone shows POLLERR without anything being written. */
static bool stdout_reader_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

static void complain(const struct errinfo *ei)
{
    usage_complain(program.cmd->name, err_message(ei));
}

static int finish(struct program *p)
{
    struct result *r = &p->result;
    struct errinfo ei = {0};

    if (p->started.us && !r->seconds_us)
        r->seconds_us = mono_diff(mono_now(), p->started);
    cmd_phase(&p->ctx, NULL);
    if (!p->started.us) /* it never began */
        r->phases.n = 0;
    if (p->ctx.space) {
        api_space_tally(p->ctx.space, &r->sessions.kept, &r->sessions.signed_in);
        api_space_save(p->ctx.space);
    }
    if (p->interrupts > (p->cmd->flags & CMD_SERVES ? 1 : 0))
        r->interrupted = true;
    r->reader_gone = r->reader_gone || (!(p->cmd->flags & CMD_SERVES) && stdout_reader_gone());
    result_judge(r);
    if (p->started.us)
        result_print(r, p->ctx.out, p->ctx.color);
    if (r->err && r->err != ERR_INTERRUPTED && !(r->interrupted && r->err == ERR_CANCELLED))
        usage_complain(p->cmd->name, r->why.code == r->err ? err_message(&r->why) : err_text(r->err));
    secret_flush();
    if (ferror(stdout) && !r->reader_gone)
        r->reader_gone = stdout_reader_gone();
    if (outputs_write(&p->outputs, r, !p->started.us, complain, &ei) == ERR_OK && ferror(stdout) && !r->reader_gone) {
        err_set(&ei, ERR_IO, "cannot write to stdout");
        complain(&ei);
    }
    int status = result_exit_status(r);
    return status || !ei.code ? status : err_exit_status(ei.code);
}

static void release(struct program *p)
{
    loop_timer_stop(&p->end_timer);
    loop_timer_stop(&p->cut_timer);
    loop_timer_stop(&p->again_timer);
    loop_io_remove(&p->out_watch);
    api_space_free(&p->ctx.space);
    if (p->http)
        httpc_free(&p->http);
    kill_switch_disarm(&p->ctx.kill_switch);
    if (p->loop)
        loop_free(&p->loop);
    target_done(&p->target);
    result_done(&p->result);
    opt_done(p->tables, ARRAY_LEN(p->tables), p->common);
    mem_free(p->common);
}

/* ---- interruption ---- */

/* The command did not come back: its coroutines wait for something that will not happen, so there is nothing to unwind.
 * What it left in the result is still told. */
static void end_now(struct timer *t)
{
    (void)t;
    program.result.err = ERR_INTERRUPTED;
    kill_switch_disarm(&program.ctx.kill_switch);
    _exit(finish(&program));
}

/* Again and again: what is cut may ask for something else before it ends. */
static void cut_what_runs(struct timer *t)
{
    struct program *p = container_of(t, struct program, again_timer);

    api_cancel(NULL);
    httpc_cancel(p->http, NULL);
    loop_timer_set(p->loop, t, mono_add(mono_now(), AGAIN_US));
}

static void interrupt(struct program *p)
{
    bool second = ++p->interrupts > 1 || !p->ctx.on_interrupt;

    if (p->ctx.on_interrupt)
        p->ctx.on_interrupt(p->ctx.on_interrupt_arg);
    if (!second)
        return;
    cut_what_runs(&p->again_timer);
    loop_timer_set(p->loop, &p->end_timer, mono_add(mono_now(), US_PER_S));
}

static void on_signal(void *arg, int signo)
{
    struct program *p = arg;

    if (p->interrupts > 1)
        end_now(NULL);
    if (!p->interrupts && p->ctx.on_interrupt)
        usage_complain(p->cmd->name, signo == SIGINT
                                         ? "interrupted: finishing what is running; interrupt again to end at once"
                                         : "asked to end: finishing what is running; ask again to end at once");
    interrupt(p);
}

/* `sim stop` means now: what does not end by itself within a moment is cut, so that the report comes within 5 s. */
static void on_stop(void *arg)
{
    struct program *p = arg;

    if (p->stopped)
        return;
    p->stopped = true;
    usage_complain(p->cmd->name, "stopped by 'sim stop': finishing what ends within 2 s");
    if (!p->interrupts)
        interrupt(p);
    loop_timer_set(p->loop, &p->cut_timer, mono_add(mono_now(), 2 * US_PER_S));
}

static void on_cut(struct timer *t)
{
    (void)t;
    if (program.interrupts < 2)
        interrupt(&program);
}

static void on_stdout(struct io *io, uint32_t events)
{
    if (!(events & (EPOLLERR | EPOLLHUP)))
        return;
    program.result.reader_gone = true;
    loop_io_remove(io);
    interrupt(&program);
}

/* Only pipes tell that their reader has gone; a file cannot be watched. */
static enum err watch_stdout(struct program *p, struct errinfo *ei)
{
    struct stat st;

    if ((p->cmd->flags & CMD_SERVES) || fstat(STDOUT_FILENO, &st) || !S_ISFIFO(st.st_mode))
        return ERR_OK;
    p->out_watch = (struct io){.fd = STDOUT_FILENO, .fn = on_stdout};
    return loop_io_add(p->loop, &p->out_watch, EPOLLERR, ei);
}

static enum err watch_signals(struct program *p, struct errinfo *ei)
{
    static const int all[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction old;
    enum err err = ERR_OK;

    for (size_t i = 0; i < ARRAY_LEN(all) && !err; i++) {
        bool nohup = all[i] == SIGHUP && sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!nohup)
            err = loop_on_signal(p->loop, all[i], on_signal, p, ei);
    }
    return err;
}

/* Without a loop: the first signal is counted for the command to see, the second has its usual effect. */
static void count_signal(int signo)
{
    program.interrupts++;
    signal(signo, SIG_DFL);
}

static void catch_signals(void)
{
    struct sigaction act = {.sa_handler = count_signal};

    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

/* ---- a command, from arguments to end ---- */

static enum err apply_common(struct program *p, struct errinfo *ei)
{
    const struct cmd_common *c = p->common;
    enum log_level level;
    enum err err = ERR_OK;

    if (c->log_level && !log_level_parse(c->log_level, &level))
        return err_set(ei, ERR_USAGE, "--log-level takes error, warn, info or debug, not \"%s\"", c->log_level);
    if (c->log_level)
        log_set_level(level);
    if (c->trace && (err = usage_judge_trace(c->trace, ei)))
        return err;
    if ((err = scheme_judge_dialect(c->dialect, ei)))
        return err;
    log_set_trace(c->trace);
    p->result.seed = c->seed;
    for (size_t i = 0; i < c->fail_on.n && !err; i++)
        err = result_threshold(&p->result, c->fail_on.items[i], ei);
    return err;
}

static void choose_out(struct program *p)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    p->ctx.out = outputs_take_stdout(&p->outputs) ? stderr : stdout;
    p->ctx.tty = isatty(p->ctx.out == stdout ? STDOUT_FILENO : STDERR_FILENO);
    p->ctx.color = p->ctx.tty && !p->common->no_color && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
}

/* Reads the command line into common and conf; *help is set when only that was asked for. */
static enum err prepare(struct program *p, int argc, char **argv, bool *help, struct errinfo *ei)
{
    const struct command *cmd = p->cmd;
    size_t conf_at = (sizeof *p->common + 15) & ~(size_t)15;
    struct errinfo open_why = {0};

    p->common = mem_zalloc(conf_at + cmd->conf_size);
    p->conf = (char *)p->common + conf_at;
    if (cmd->defaults)
        memcpy(p->conf, cmd->defaults, cmd->conf_size);
    p->common->seed = 1;
    p->tables[0] = (struct opt_table){cmd->pos, cmd->opts, conf_at};
    p->tables[1] = (struct opt_table){NULL, usage_common_opts, 0};
    enum err err = opt_parse(argc, argv, p->tables, ARRAY_LEN(p->tables), p->common, help, ei);
    if (err)
        outputs_find(p->common->files, argc, argv);
    if (*help)
        return ERR_OK;
    enum err open_err = outputs_open(&p->outputs, p->common->files, &open_why);
    choose_out(p);
    if (!err && open_err)
        err = err_set(ei, open_err, "%s", open_why.msg);
    if (!err)
        err = apply_common(p, ei);
    return err || !cmd->verify ? err : cmd->verify(p->conf, ei);
}

/* What the command's row asks for, less the server when this call needs none. */
static unsigned flags_of(const struct program *p)
{
    bool offline = p->cmd->offline && p->cmd->offline(p->conf);

    return offline ? p->cmd->flags & ~(unsigned)(CMD_NEEDS_URL | CMD_THEN_CHECK) : p->cmd->flags;
}

/* An option wins over the environment. */
static void prefer(char **setting, const char *option)
{
    if (!option)
        return;
    mem_free(*setting);
    *setting = mem_strdup(option);
}

static enum err load_target(struct program *p, struct errinfo *ei)
{
    enum err err = target_load(&p->target, ei);

    if (err)
        return err;
    p->target.insecure = p->common->insecure;
    p->target.cafile = mem_strdup(p->common->cafile);
    guard_allow(&p->common->allow_hosts);
    if (!(p->cmd->flags & CMD_SERVES))
        kv_set_name(KV_CLIENT_NAME);
    p->target.dialect = mem_strdup(p->common->dialect);
    prefer(&p->target.ssh_key, p->common->ssh_key);
    prefer(&p->target.known_hosts, p->common->known_hosts);
    if (p->target.cafile && (err = file_readable(p->target.cafile, ERR_USAGE, ei)))
        return err;
    if (p->common->ssh_key && (err = file_readable(p->common->ssh_key, ERR_USAGE, ei)))
        return err;
    if ((err = target_settle(&p->target, p->common->users_file, ei)))
        return err;
    if (!(flags_of(p) & CMD_NEEDS_URL))
        return ERR_OK;
    err = target_require_url(&p->target, ei);
    return err ? err : target_judge_parts(&p->target, ei);
}

static enum err start_loop(struct program *p, struct errinfo *ei)
{
    const struct httpc_conf conf = {.cafile = p->common->cafile, .insecure = p->common->insecure};
    enum err err = loop_new(&p->loop, ei);

    if (!err)
        err = watch_signals(p, ei);
    if (!err)
        err = watch_stdout(p, ei);
    if (!err)
        err = httpc_new(&p->http, p->loop, &conf, ei);
    p->ctx.loop = p->loop;
    p->ctx.http = p->http;
    p->ctx.space = api_space_new();
    return err;
}

static MAY_YIELD enum err judge_afterwards(struct program *p, const struct check_baseline *since, struct errinfo *ei)
{
    if (p->interrupts) {
        fprintf(p->ctx.out, "checks: not run, since the command was interrupted; run them with 'sim check%s%s'\n",
                p->result.run_dir[0] ? " --run " : "", p->result.run_dir);
        return ERR_OK;
    }
    if (!p->result.seconds_us) /* the command knows better what it measured */
        p->result.seconds_us = mono_diff(mono_now(), p->started);
    struct mono from = mono_now();
    uint64_t before = p->result.stats.by_cause[CAUSE_CHECK];
    cmd_phase(&p->ctx, "checks");
    p->ctx.cause = CAUSE_CHECK;
    enum err err = checks_run(&p->ctx, NULL, p->result.run_dir[0] ? p->result.run_dir : NULL, since, ei);
    cmd_course(&p->ctx, "checks", from, CAUSE_CHECK, before);
    return err;
}

/* What the result says it is of. */
static void note_origin(struct program *p)
{
    struct buf shown = BUF_INIT(sizeof p->result.target - 1);

    p->result.began = wall_now();
    if (flags_of(p) & CMD_NEEDS_URL && !str_escape(&shown, sv_of(p->target.url), sizeof p->result.target - 8))
        str_format(p->result.target, sizeof p->result.target, "%s", buf_cstr(&shown));
    buf_done(&shown);
}

/* Of a command that does not say it itself, over all of its time. */
static void note_generator(struct program *p, const struct health *began)
{
    const struct health_span span = health_since(began);
    struct health_verdict v = {0};
    if (health_judge(&v, &span, hist_percentile(loop_lag(p->ctx.loop), 99)))
        p->result.generator = health_summary(loop_lag(p->ctx.loop), &v);
}

static MAY_YIELD enum err execute(struct program *p, struct errinfo *ei)
{
    const struct command *cmd = p->cmd;
    unsigned flags = flags_of(p);
    struct check_baseline since = {0};
    enum err err = load_target(p, ei);

    if (err)
        return err;
    if (flags & CMD_NO_LOOP)
        catch_signals();
    else
        err = start_loop(p, ei);
    cmd_phase(&p->ctx, "set-up");
    if (!err && flags & CMD_NEEDS_URL) {
        target_print(&p->target, p->ctx.out);
        err = target_probe(&p->ctx, ei);
    }
    if (err)
        return err;
    if (flags & CMD_NEEDS_URL)
        api_space_keep(p->ctx.space, &p->target, p->common->fresh_sign_in);
    if (flags & CMD_NEEDS_URL && !(flags & CMD_PROVES))
        err = belong_prove_saying(&p->ctx, NULL, ei);
    if (err)
        return err;
    if (flags & CMD_LOADS)
        kill_switch_arm(&p->ctx.kill_switch, &p->ctx, cmd->name, on_stop, p);
    char *baseline = NULL;
    if (flags & CMD_THEN_CHECK) {
        check_baseline_take(&p->ctx, &since);
        p->ctx.baseline = baseline = check_baseline_json(&since);
    }
    p->started = mono_now();
    note_origin(p);
    struct health began;
    health_begin(&began);
    err = cmd->run(p->conf, &p->ctx, ei);
    if (flags & CMD_LOADS && p->ctx.loop && !p->result.generator.known)
        note_generator(p, &began);
    p->ctx.on_interrupt = NULL;
    p->ctx.baseline = NULL;
    mem_free(baseline);
    if (!err && flags & CMD_THEN_CHECK)
        err = judge_afterwards(p, &since, ei);
    return err;
}

/* The end of what only prints: its text must have arrived. */
static int printed(void)
{
    if (secret_flush() && !ferror(stdout))
        return 0;
    if (stdout_reader_gone())
        return RESULT_READER_GONE;
    fputs("sim: cannot write to stdout: is the disk full?\n", stderr);
    return err_exit_status(ERR_IO);
}

static MAY_YIELD int run_command(const struct command *cmd, int argc, char **argv, bool no_stdout)
{
    struct program *p = &program;
    struct errinfo ei = {0};
    bool help = false;

    *p = (struct program){.cmd = cmd, .end_timer.fn = end_now, .cut_timer.fn = on_cut, .again_timer.fn = cut_what_runs};
    outputs_init(&p->outputs, no_stdout);
    result_init(&p->result, cmd->name);
    p->result.sample = cmd->sample;
    p->result.sample_after = cmd->flags & CMD_THEN_CHECK ? checks_sample : NULL;
    arguments_tell(p->result.arguments, sizeof p->result.arguments, argc, argv);
    p->result.failures_matter = cmd->flags & CMD_FAILURES_MATTER;
    p->result.judged = cmd->flags & (CMD_LOADS | CMD_FAILURES_MATTER);
    p->ctx = (struct cmd_ctx){.target = &p->target,
                              .requests = p->result.stats.by_cause,
                              .cause = CAUSE_SETUP,
                              .result = &p->result,
                              .out = stdout,
                              .interrupts = &p->interrupts};
    enum err err = prepare(p, argc, argv, &help, &ei);
    p->ctx.common = p->common;
    if (help) {
        usage_print_help(cmd, stdout);
        release(p);
        return printed();
    }
    bool misused = err == ERR_USAGE;
    if (!err)
        err = execute(p, &ei);
    /* A violated check speaks for itself in the summary. */
    if (err != ERR_CHECK || !p->result.n_checks) {
        p->result.err = err;
        p->result.why = ei;
    }
    int status = finish(p);
    if (misused)
        fprintf(stderr, "usage: %s\n'sim %s --help' shows more\n", cmd->usage, cmd->name);
    release(p);
    return status;
}

static bool is_word(const char *arg, const char *a, const char *b)
{
    return strcmp(arg, a) == 0 || strcmp(arg, b) == 0;
}

int main(int argc, char **argv)
{
    bool no_stdout;

    argv = process_prepare(argc, argv, &no_stdout);
    if (argc < 2) {
        usage_print_overview(commands, stderr);
        return err_exit_status(ERR_USAGE);
    }
    if (is_word(argv[1], "--version", "-V")) {
        printf("drivesim %s\n", drivesim_version);
        return printed();
    }
    if (is_word(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
        const struct command *cmd = argc > 2 ? usage_find(commands, argv[2]) : NULL;
        if (argc > 2 && !cmd)
            return usage_unknown(commands, argv[2]);
        if (cmd)
            usage_print_help(cmd, stdout);
        else
            usage_print_overview(commands, stdout);
        return printed();
    }
    const struct command *cmd = usage_find(commands, argv[1]);
    return cmd ? run_command(cmd, argc - 1, argv + 1, no_stdout) : usage_unknown(commands, argv[1]);
}
