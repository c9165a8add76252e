/* Runs one part of the native stack: prepare, choose a port, start, await its answer, set up. The doubtful decision: a
 * port is tested and then given to the program, and another process may take it in between. So nothing is asked before
 * the kernel says that it is our process that listens there, and a part that ends while its port is somebody's tries
 * the next one. */
#include "drive/stack/native.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own_tree.h"
#include "base/str.h"
#include "drive/stack/impl.h"
#include "drive/stack/ports.h"
#include "drive/stack/process.h"
#include "drive/stack/state.h"
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
    part_note_program(p);
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
    if (!err) /* another account passes through to what is its own */
        err = own_tree_make(p->folder, p->ops->own_account ? 0711 : 0700, ei);
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
        e->err = own_tree_remove(p->folder, &e->ei);
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
