/* Runs one part of the native stack: prepare, choose a port, start, await its answer, set up. The doubtful decision: a
 * port is tested and then given to the program, and another process may take it in between. So nothing is asked before
 * the kernel says that it is our process that listens there, and a part that ends while its port is somebody's tries
 * the next one. */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/stack/impl.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_LIMIT_US (120 * US_PER_S)
#define HUNG_AFTER_US  (20 * US_PER_S)
#define PORT_LIMIT_US  (15 * US_PER_S)
#define LOOK_EVERY_US  (20 * US_PER_MS)
#define KILL_WAIT_US   (10 * US_PER_S)
#define MAX_FOUND      512
#define TAIL_LINES     15

void stack_say(struct stack *s, const char *fmt, ...)
{
    va_list ap;
    if (!s->conf.progress)
        return;
    va_start(ap, fmt);
    vfprintf(s->conf.progress, fmt, ap);
    va_end(ap);
    fputc('\n', s->conf.progress);
    fflush(s->conf.progress);
}

void stack_show_log(const struct part *p)
{
    FILE *out = p->stack->conf.progress;
    if (!out || access(p->log, R_OK) < 0)
        return;
    fprintf(out, "%s: the last lines of its log:\n", p->ops->name);
    stack_tail(out, p->log, TAIL_LINES);
}

/* ---- processes ---- */

bool part_alive(const struct part *p)
{
    return proc_alive(&p->proc);
}

const char *part_program(const struct part *p, struct arena *mem)
{
    char path[PATH_MAX];
    struct proc us = {.pid = getpid()};
    if (!p->ops->program)
        return proc_exe(&us, path, sizeof path) ? arena_strdup(mem, path) : NULL;
    if (!proc_which(p->ops->program, p->ops->folders ? p->ops->folders(mem) : NULL, path, sizeof path))
        return NULL;
    char *real = realpath(path, NULL);
    const char *found = arena_strdup(mem, real);
    free(real);
    return found;
}

enum err part_account(const struct part *p, struct account *a, const struct account **as, struct errinfo *ei)
{
    struct stack *s = p->stack;
    const char *chosen = s->account[0] ? s->account : s->conf.account;
    const char *names[] = {chosen, "postgres", "nobody"};
    *as = NULL;
    if (!p->ops->own_account || geteuid() != 0)
        return ERR_OK;
    *as = a;
    enum err err = account_find(names, chosen ? 1 : ARRAY_LEN(names), a, ei);
    if (!err)
        str_format(s->account, sizeof s->account, "%s", a->name);
    return err;
}

/* What only the account of the part may see of its processes. */
struct look {
    const struct part *part;
    const char *exe;
    struct proc proc;
};
struct seen {
    bool listens;
    char exe[PATH_MAX];
    size_t n;
    struct proc found[MAX_FOUND];
};

static void look_at(const void *arg, void *out)
{
    const struct look *l = arg;
    struct seen *s = out;
    s->listens = l->part->port > 0 && proc_listens(&l->proc, l->part->port);
    if (!proc_exe(&l->proc, s->exe, sizeof s->exe))
        s->exe[0] = '\0';
    s->n = l->exe ? proc_find(l->exe, l->part->folder, s->found, MAX_FOUND) : 0;
}

/* The caller frees it. exe NULL: nothing is searched. */
static struct seen *look(const struct part *p, const char *exe)
{
    struct look l = {.part = p, .exe = exe, .proc = p->proc};
    struct seen *seen = mem_zalloc(sizeof *seen);
    struct account a;
    const struct account *as = NULL;
    struct errinfo ei;
    if (part_account(p, &a, &as, &ei) || !account_ask(as, look_at, &l, seen, sizeof *seen))
        LOGW("stack", "%s: its processes cannot be looked at", p->ops->name);
    return seen;
}

static bool part_listens(const struct part *p)
{
    struct seen *seen = look(p, NULL);
    bool listens = seen->listens;
    mem_free(seen);
    return listens;
}

/* Its process, and whatever it left behind: Postgres' children leave its session, a killed one's live on for a while.
 */
static size_t part_processes(const struct part *p, struct proc *out, size_t max)
{
    size_t n = 0;
    if (part_alive(p))
        out[n++] = p->proc;
    const char *exe = p->exe ? p->exe : part_program(p, p->stack->mem); /* the state may be lost */
    struct seen *seen = look(p, exe);
    for (size_t i = 0; i < seen->n && n < max; i++)
        out[n++] = seen->found[i];
    mem_free(seen);
    return n;
}

enum err part_end(struct part *p, int signo, int64_t grace_us, struct errinfo *ei)
{
    enum err err = ERR_OK;
    struct proc *found = mem_alloc(MAX_FOUND * sizeof *found);
    if (part_alive(p)) /* its children end by its word, not by ours */
        err = proc_end(p->stack->loop, &p->proc, 1, signo, grace_us, ei);
    size_t n;
    while (!err && (n = part_processes(p, found, MAX_FOUND)) > 0)
        err = proc_end(p->stack->loop, found, n, SIGKILL, KILL_WAIT_US, ei);
    mem_free(found);
    if (!err) {
        p->proc = (struct proc){0};
        if (p->ops->ended)
            p->ops->ended(p);
    }
    return err;
}

/* Does something to each of its processes; one that has ended meanwhile is fine. */
static enum err each_process(const struct part *p, int (*fn)(pid_t pid, const void *arg), const void *arg,
                             const char *what, struct errinfo *ei)
{
    enum err err = ERR_OK;
    struct proc *found = mem_alloc(MAX_FOUND * sizeof *found);
    size_t n = part_processes(p, found, MAX_FOUND);
    for (size_t i = 0; i < n && !err; i++)
        if (fn(found[i].pid, arg) < 0 && errno != ESRCH)
            err = err_sys(ei, ERR_ENV, "cannot %s process %d", what, (int)found[i].pid);
    mem_free(found);
    return err;
}

static int signal_one(pid_t pid, const void *arg)
{
    return kill(pid, *(const int *)arg);
}

static bool stands_still(const struct part *p)
{
    struct proc *found = mem_alloc(MAX_FOUND * sizeof *found);
    size_t n = part_processes(p, found, MAX_FOUND), still = 0;
    while (still < n && (proc_stopped(&found[still]) || !proc_alive(&found[still])))
        still++;
    mem_free(found);
    return still == n;
}

/* A process stops when it would run next, and may have begun another one until then. */
enum err part_halt(const struct part *p, bool halt, struct errinfo *ei)
{
    const int signo = halt ? SIGSTOP : SIGCONT;
    struct mono until = mono_add(mono_now(), KILL_WAIT_US);
    enum err err = each_process(p, signal_one, &signo, "signal", ei);
    while (!err && halt && !stands_still(p)) {
        if (mono_passed(until))
            return err_set(ei, ERR_ENV, "%s goes on, though it was told to stop", p->ops->name);
        coro_sleep_until(p->stack->loop, mono_add(mono_now(), LOOK_EVERY_US));
        err = each_process(p, signal_one, &signo, "signal", ei);
    }
    return err;
}

static int limit_one(pid_t pid, const void *arg)
{
    struct rlimit lim;
    if (prlimit(pid, RLIMIT_FSIZE, NULL, &lim) < 0)
        return -1;
    rlim_t most = *(const uint64_t *)arg; /* UINT64_MAX is RLIM_INFINITY */
    lim.rlim_cur = most < lim.rlim_max ? most : lim.rlim_max;
    return prlimit(pid, RLIMIT_FSIZE, &lim, NULL);
}

enum err part_limit_files(const struct part *p, uint64_t most, struct errinfo *ei)
{
    return each_process(p, limit_one, &most, "limit the files of", ei);
}

enum err part_tool(struct part *p, const char *const *argv, const char *cwd, const struct account *as, int64_t limit_us,
                   struct errinfo *ei)
{
    struct stack *s = p->stack;
    struct proc_spec spec = {.argv = argv, .cwd = cwd, .log = p->log, .as = as, .dies_with_us = true};
    int status = 0;
    enum err err = proc_run(s->loop, &spec, mono_add(mono_now(), limit_us), &s->tools[p - s->parts], &status, ei);
    if (!err && s->cancelled)
        err = err_set(ei, ERR_INTERRUPTED, "interrupted");
    if (!err && status != 0)
        err = err_set(ei, ERR_ENV, "%s failed with status %d", argv[0], status);
    return err;
}

/* ---- starting ---- */

struct exit_watch {
    struct io io;
    struct done done;
    bool gone;
};

static void on_exit_event(struct io *io, uint32_t events)
{
    struct exit_watch *w = container_of(io, struct exit_watch, io);
    (void)events;
    loop_io_set(io, 0);
    w->gone = true;
    done_set(&w->done);
}

/* Until it answers, ends, or the time is over. */
static MAY_YIELD enum err await_answer(struct part *p, int pidfd, int64_t limit_us, struct errinfo *ei)
{
    struct stack *s = p->stack;
    struct exit_watch w = {.io = {.fd = pidfd, .fn = on_exit_event}};
    struct mono deadline = mono_add(mono_now(), limit_us);
    struct errinfo last = {0};
    enum err err = loop_io_add(s->loop, &w.io, EPOLLIN, ei);
    while (!err) {
        if (s->cancelled)
            err = err_set(ei, ERR_INTERRUPTED, "interrupted");
        else if (w.gone)
            err = err_set(ei, ERR_CLOSED, "it ended by itself");
        else if (part_listens(p) && !w.gone && p->ops->answers(p, &last) == ERR_OK && !w.gone)
            break;
        else if (mono_passed(deadline))
            err = err_set(ei, ERR_TIMEOUT, "it does not answer: %s", err_message(&last));
        else
            done_wait_until(s->loop, &w.done, mono_add(mono_now(), LOOK_EVERY_US));
    }
    loop_io_remove(&w.io);
    return err;
}

static void note_exe(struct part *p)
{
    struct seen *seen = look(p, NULL);
    p->exe = seen->exe[0] ? arena_strdup(p->stack->mem, seen->exe) : part_program(p, p->stack->mem);
    mem_free(seen);
}

static MAY_YIELD enum err start_on_port(struct part *p, const struct account *as, struct errinfo *ei)
{
    struct part_command c = {0};
    struct arena *mem = arena_new(8192);
    int pidfd = -1;
    enum err err = p->ops->command(p, mem, &c, ei);
    if (!err) {
        struct proc_spec spec = {.argv = c.argv, .env = c.env, .cwd = p->folder, .log = p->log, .as = as};
        err = proc_start(&spec, &p->proc, &pidfd, ei);
    }
    arena_free(&mem);
    if (err)
        return err;
    p->started_now = true;
    note_exe(p);
    err = stack_state_save(p->stack, ei);
    if (!err)
        err = await_answer(p, pidfd, READY_LIMIT_US, ei);
    close(pidfd);
    if (err) {
        pid_t pid = p->proc.pid;
        if (part_end(p, SIGKILL, KILL_WAIT_US, NULL))
            LOGW("stack", "%s: a process stays behind", p->ops->name);
        (void)!waitpid(pid, NULL, WNOHANG);
    }
    return err;
}

/* An old port may be in use for a moment: a client's own end of some connection can have got its number. */
static MAY_YIELD enum err await_port(struct part *p, struct errinfo *ei)
{
    struct mono deadline = mono_add(mono_now(), PORT_LIMIT_US);
    while (!stack_port_free(p->port)) {
        if (p->stack->cancelled)
            return err_set(ei, ERR_INTERRUPTED, "interrupted");
        if (mono_passed(deadline))
            return err_set(ei, ERR_ENV, "its port %d is taken by another program", p->port);
        coro_sleep_until(p->stack->loop, mono_add(mono_now(), LOOK_EVERY_US));
    }
    return ERR_OK;
}

static enum err next_port(struct part *p, struct errinfo *ei)
{
    int from = p->port ? p->port + 1 : p->ops->port;
    if (p->port)
        stack_release_port(p);
    return stack_choose_port(p, from, ei);
}

static MAY_YIELD enum err part_start(struct part *p, struct errinfo *ei)
{
    struct account a;
    const struct account *as = NULL;
    bool fixed = p->port != 0; /* clients know it already */
    enum err err = part_account(p, &a, &as, ei);
    if (!err)
        err = part_end(p, SIGKILL, KILL_WAIT_US, ei); /* what a crash left */
    while (!err) {
        if (!fixed && (err = next_port(p, ei)))
            break;
        if (fixed && (err = await_port(p, ei)))
            break;
        err = start_on_port(p, as, ei);
        if (err != ERR_CLOSED || fixed || stack_port_free(p->port))
            break;
        LOGD("stack", "%s: port %d was taken meanwhile", p->ops->name, p->port);
        err = ERR_OK;
    }
    return err;
}

/* ---- all of them ---- */

/* True when it is there. A busy one is given time before it is taken for hung. */
static MAY_YIELD bool answers_still(struct part *p, struct errinfo *ei)
{
    int pidfd = proc_pidfd(&p->proc);
    if (pidfd < 0)
        return false;
    enum err err = await_answer(p, pidfd, HUNG_AFTER_US, ei);
    close(pidfd);
    if (err == ERR_TIMEOUT)
        stack_say(p->stack, "%-9s is there but does not answer: it is replaced", p->ops->name);
    return err == ERR_OK;
}

enum err stack_part_bring_up(struct part *p, struct errinfo *ei)
{
    struct mono begun = mono_now();
    char took[32];
    if (answers_still(p, ei))
        return ERR_OK;
    enum err err = p->stack->cancelled ? err_set(ei, ERR_INTERRUPTED, "interrupted") : ERR_OK;
    if (!err && mkdir(p->folder, 0711) < 0 && errno != EEXIST)
        err = err_sys(ei, ERR_ENV, "cannot make %s", p->folder);
    if (!err && p->ops->prepare)
        err = p->ops->prepare(p, ei);
    if (!err)
        err = part_start(p, ei);
    if (!err && p->ops->setup)
        err = p->ops->setup(p, ei);
    if (!err)
        stack_say(p->stack, "%-9s ready on 127.0.0.1:%d after %s", p->ops->name, p->port,
                  str_duration(took, sizeof took, mono_diff(mono_now(), begun)));
    return err;
}

static void bring_up_task(void *arg)
{
    struct part *p = arg;
    p->err = stack_part_bring_up(p, &p->ei);
    if (p->err && p->err != ERR_INTERRUPTED)
        stack_cancel(p->stack); /* the others need not go on */
}

/* The first that failed of its own; those that stopped because of it are not to blame. */
static struct part *first_failure(struct stack *s)
{
    struct part *found = NULL;
    for (int i = 0; i < PART_COUNT; i++) {
        struct part *p = &s->parts[i];
        if (p->err && (!found || found->err == ERR_INTERRUPTED))
            found = p;
    }
    return found;
}

static enum err blame(const struct part *p, struct errinfo *ei)
{
    if (p->err == ERR_INTERRUPTED)
        return err_set(ei, ERR_INTERRUPTED, "interrupted");
    stack_show_log(p);
    return err_set(ei, ERR_ENV, "%s: %s", p->ops->name, err_message(&p->ei));
}

static MAY_YIELD enum err end_started(struct stack *s, struct errinfo *ei)
{
    enum err first = ERR_OK;
    for (int i = PART_COUNT - 1; i >= 0; i--) {
        struct part *p = &s->parts[i];
        enum err err = p->started_now ? part_end(p, p->ops->stop_signal, KILL_WAIT_US, ei) : ERR_OK;
        first = first ? first : err;
    }
    return first ? first : stack_state_save(s, ei);
}

enum err stack_native_up(struct stack *s, struct errinfo *ei)
{
    struct group g = {0};
    for (int i = 0; i < PART_SERVER; i++) {
        s->parts[i].wanted = true;
        group_spawn(s->loop, &g, bring_up_task, &s->parts[i]);
    }
    group_wait(s->loop, &g);
    struct part *server = &s->parts[PART_SERVER];
    server->wanted = server->wanted || !s->conf.no_server;
    if (!first_failure(s) && server->wanted && !s->conf.no_server)
        bring_up_task(server);
    const struct part *failed = first_failure(s);
    if (!failed)
        return stack_state_save(s, ei);
    enum err err = blame(failed, ei);
    struct errinfo after;
    enum err left = s->fresh ? stack_native_down(s, &after) : end_started(s, &after);
    if (left)
        LOGW("stack", "%s", err_message(&after));
    return err;
}

struct ending {
    struct part *part;
    enum err err;
    struct errinfo ei;
};

static void end_task(void *arg)
{
    struct ending *e = arg;
    struct part *p = e->part;
    int signo = p->ops->down_signal ? p->ops->down_signal : p->ops->stop_signal;
    e->err = part_end(p, signo, p->ops->stop_grace_s * US_PER_S, &e->ei);
    if (!e->err)
        e->err = stack_remove_tree(p->folder, &e->ei);
}

/* The server first, so that it does not complain about the others; those all at once. */
enum err stack_native_down(struct stack *s, struct errinfo *ei)
{
    struct ending ends[PART_COUNT] = {0};
    struct group g = {0};
    enum err err = ERR_OK;
    for (int i = PART_COUNT - 1; i >= 0; i--) {
        ends[i].part = &s->parts[i];
        group_spawn(s->loop, &g, end_task, &ends[i]);
        if (i == PART_SERVER)
            group_wait(s->loop, &g);
    }
    group_wait(s->loop, &g);
    for (int i = 0; i < PART_COUNT && !err; i++)
        if (ends[i].err)
            err = err_set(ei, ends[i].err, "%s: %s", s->parts[i].ops->name, err_message(&ends[i].ei));
    return err;
}
