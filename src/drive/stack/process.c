/* Which processes are a part's: the one that was started, and all that run its program in its folder. Its own account
 * may have to ask, for only that sees them. */
#include "drive/stack/process.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOOK_EVERY_US (20 * US_PER_MS)
#define KILL_WAIT_US  (10 * US_PER_S)
#define MAX_FOUND     512

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

bool part_listens(const struct part *p)
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
            return err_set(ei, ERR_ENV, "%s still runs, though it was told to stop", p->ops->name);
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

void part_note_program(struct part *p)
{
    struct seen *seen = look(p, NULL);
    p->exe = seen->exe[0] ? arena_strdup(p->stack->mem, seen->exe) : part_program(p, p->stack->mem);
    mem_free(seen);
}
