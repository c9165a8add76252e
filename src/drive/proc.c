#include "drive/proc.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/account.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- looking at processes ---- */

/* The text of /proc/PID/NAME as far as it fits; false: there is none. */
static bool proc_text(pid_t pid, const char *name, char *text, size_t cap)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, cap - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* State and start time; the command in parentheses may hold anything, so the fields are counted from the last ')'. */
static bool stat_read(pid_t pid, char *state, uint64_t *start)
{
    char text[1024];
    if (!proc_text(pid, "stat", text, sizeof text))
        return false;
    const char *after = strrchr(text, ')');
    if (!after || after[1] != ' ')
        return false;
    struct sv rest = sv_of(after + 2), field = {"", 0};
    *state = after[2];
    for (int i = 3; i <= 22; i++) /* the state is field 3, the start time field 22 */
        if (!sv_split(&rest, ' ', &field))
            return false;
    return sv_to_u64(field, start);
}

bool proc_alive(const struct proc *p)
{
    char state;
    uint64_t start;
    return p->pid > 0 && stat_read(p->pid, &state, &start) && start == p->start && state != 'Z' && state != 'X';
}

bool proc_stopped(const struct proc *p)
{
    char state;
    uint64_t start;
    return p->pid > 0 && stat_read(p->pid, &state, &start) && start == p->start && state == 'T';
}

int proc_pidfd(const struct proc *p)
{
    if (p->pid <= 0)
        return -1;
    int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd >= 0 && !proc_alive(p)) { /* looked at after opening: the number cannot change hands behind an open pidfd */
        close(fd);
        return -1;
    }
    return fd;
}

static bool link_read(pid_t pid, const char *what, char *dst, size_t n)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    ssize_t len = readlink(path, dst, n - 1);
    if (len <= 0)
        return false;
    dst[len] = '\0';
    char *deleted = strstr(dst, " (deleted)"); /* rebuilt or removed since */
    if (deleted && deleted[strlen(" (deleted)")] == '\0')
        *deleted = '\0';
    return true;
}

bool proc_exe(const struct proc *p, char *dst, size_t n)
{
    return p->pid > 0 && link_read(p->pid, "exe", dst, n);
}

/* "VmRSS:\t  1234 kB" within the text of /proc/PID/status, in bytes; -1: not there. */
static int64_t status_bytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    int64_t kib;
    if (!at)
        return -1;
    at += strlen(name);
    at += strspn(at, " \t");
    return sv_to_i64((struct sv){at, strspn(at, "0123456789")}, &kib) ? kib * 1024 : -1;
}

bool proc_memory(const struct proc *p, int64_t *rss, int64_t *peak)
{
    char text[4096];
    if (!proc_alive(p) || !proc_text(p->pid, "status", text, sizeof text))
        return false;
    *rss = status_bytes(text, "\nVmRSS:");
    *peak = status_bytes(text, "\nVmHWM:");
    return *rss >= 0 && *peak >= 0;
}

bool proc_of_pid(pid_t pid, struct proc *out)
{
    char state;
    out->pid = pid;
    return pid > 0 && stat_read(pid, &state, &out->start) && state != 'Z' && state != 'X';
}

struct wall proc_started(const struct proc *p)
{
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    int64_t up_us = up.tv_sec * US_PER_S + up.tv_nsec / 1000;
    int64_t at_us = (int64_t)p->start * US_PER_S / sysconf(_SC_CLK_TCK);
    return (struct wall){wall_now().us - (up_us - at_us)};
}

/* "   1: 0100007F:0C80 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 …" */
static bool listener_line(const char *line, int port, char *inode, size_t n)
{
    char want[8];
    struct sv rest = sv_trim(sv_of(line)), field = {"", 0}, fields[10];
    size_t got = 0;
    while (got < ARRAY_LEN(fields) && sv_split(&rest, ' ', &field))
        if (field.n > 0)
            fields[got++] = field;
    snprintf(want, sizeof want, ":%04X", (unsigned)port & 0xffff);
    if (got < ARRAY_LEN(fields) || !sv_eq_cstr(fields[3], "0A") || !sv_ends(fields[1], sv_of(want)))
        return false;
    str_format(inode, n, "socket:[" SV_FMT "]", SV_ARG(fields[9]));
    return true;
}

static bool holds(const struct proc *p, const char *inode)
{
    char folder[40], link[64];
    bool found = false;
    const struct dirent *e;
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)p->pid);
    DIR *d = opendir(folder);
    while (d && !found && (e = readdir(d))) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        found = strcmp(link, inode) == 0;
    }
    if (d)
        closedir(d);
    return found;
}

bool proc_listens(const struct proc *p, int port)
{
    char line[512], inode[48];
    bool found = false;
    FILE *f = fopen("/proc/net/tcp", "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = listener_line(line, port, inode, sizeof inode) && holds(p, inode);
    if (f)
        fclose(f);
    return found;
}

static bool inside(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

size_t proc_find(const char *exe, const char *folder, struct proc *out, size_t max)
{
    size_t n = 0;
    DIR *d = opendir("/proc");
    const struct dirent *e;
    while (d && n < max && (e = readdir(d))) {
        char link[PATH_MAX], state;
        int64_t pid;
        if (!sv_to_i64(sv_of(e->d_name), &pid) || !link_read((pid_t)pid, "exe", link, sizeof link) ||
            strcmp(link, exe) != 0 || !link_read((pid_t)pid, "cwd", link, sizeof link) || !inside(link, folder))
            continue;
        out[n].pid = (pid_t)pid;
        if (stat_read((pid_t)pid, &state, &out[n].start) && state != 'Z')
            n++;
    }
    if (d)
        closedir(d);
    return n;
}

/* ---- starting ---- */

bool proc_which(const char *name, const char *more, char *dst, size_t n)
{
    const char *path = getenv("PATH");
    const char *lists[] = {path && *path ? path : "/usr/local/bin:/usr/bin:/bin", more, "/usr/sbin:/sbin"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct sv rest = sv_of(lists[i]), dir;
        while (sv_split(&rest, ':', &dir)) {
            struct stat st;
            int len = snprintf(dst, n, SV_FMT "/%s", SV_ARG(dir), name);
            if (dir.n > 0 && len > 0 && (size_t)len < n && access(dst, X_OK) == 0 && stat(dst, &st) == 0 &&
                S_ISREG(st.st_mode))
                return true;
        }
    }
    return false;
}

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strncmp(a, b, n + 1) == 0;
}

static bool is_one_of(const char *line, const char *const *names)
{
    while (*names && !same_name(line, *names))
        names++;
    return *names != NULL;
}

/* What a child gets only when it is meant for it: passwords of ours are not told to tools, nor those of proxies to any
 * but the two that go to the Internet. */
static bool is_kept_back(const char *line, const char *program)
{
    static const char *const secrets[] = {"TMA_URL=",
                                          "DATABASE_URL=",
                                          "REDIS_URL=",
                                          "TMA_LOAD_S3_ENDPOINT=",
                                          "TMA_LOAD_S3_ACCESS_KEY=",
                                          "TMA_LOAD_S3_SECRET_KEY=",
                                          "TMA_LOAD_PASSWORD=",
                                          "TMA_LOAD_SSH_PASSPHRASE=",
                                          "JWT_SECRET=",
                                          "FILE_ENCRYPTION_KEY=",
                                          "PGPASSWORD=",
                                          "AWS_SECRET_ACCESS_KEY=",
                                          "AWS_SESSION_TOKEN=",
                                          NULL};
    static const char *const proxies[] = {"http_proxy=",  "https_proxy=", "ftp_proxy=", "all_proxy=", "HTTP_PROXY=",
                                          "HTTPS_PROXY=", "FTP_PROXY=",   "ALL_PROXY=", NULL};
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    bool online = strncmp(name, "docker", 6) == 0 || strcmp(name, "npm") == 0;
    return is_one_of(line, secrets) || (!online && is_one_of(line, proxies));
}

/* Ours, with extra's lines in place of or beside their namesakes. The array is the caller's, its strings borrowed. */
static const char **merged_environment(const char *program, const char *const *extra)
{
    size_t n = 0, m = 0, at = 0;
    while (environ[n])
        n++;
    while (extra && extra[m])
        m++;
    const char **env = mem_alloc((n + m + 1) * sizeof *env);
    for (size_t i = 0; i < n; i++) {
        bool replaced = is_kept_back(environ[i], program);
        for (size_t k = 0; k < m && !replaced; k++)
            replaced = same_name(extra[k], environ[i]);
        if (!replaced)
            env[at++] = environ[i];
    }
    for (size_t k = 0; k < m; k++)
        env[at++] = extra[k];
    env[at] = NULL;
    return env;
}

struct launch { /* what the child needs, all of it made before fork */
    const struct proc_spec *spec;
    const char *path;
    const char **env;
    struct account_switch become;
    pid_t parent;
    int log, null, report;
};

/* Only calls that are safe between fork and exec. Ends with errno in the report pipe when it cannot go on. */
static void child(const struct launch *l)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    setsid();
    umask(077);
    dup2(l->null, 0);
    dup2(l->log, 1);
    dup2(l->log, 2);
    (void)!syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */); /* ours have it; a library's may not */
    if (account_switch_now(&l->become) && chdir(l->spec->cwd) == 0) {
        if (l->spec->dies_with_us)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!l->spec->dies_with_us || getppid() == l->parent) {
            union { /* execve does not write to its arguments, it only lacks the const */
                const char *const *in;
                char *const *out;
            } argv = {l->spec->argv}, env = {l->env};
            execve(l->path, argv.out, env.out);
        }
    }
    int error = errno;
    (void)!write(l->report, &error, sizeof error);
    _exit(127);
}

static enum err launch(struct launch *l, struct proc *out, struct errinfo *ei)
{
    int report[2], error = 0;
    char state;
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_sys(ei, ERR_ENV, "cannot start %s: pipe", l->path);
    l->report = report[1];
    l->parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child(l);
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return err_sys(ei, ERR_ENV, "cannot start %s: fork", l->path);
    }
    ssize_t n;
    while ((n = read(report[0], &error, sizeof error)) < 0 && errno == EINTR)
        ;
    close(report[0]);
    if (n != 0) { /* it never became the program */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return err_set(ei, ERR_ENV, "cannot start %s in %s: %s", l->path, l->spec->cwd, strerror(error));
    }
    out->pid = pid;
    if (!stat_read(pid, &state, &out->start))
        out->start = 0;
    return ERR_OK;
}

enum err proc_start(const struct proc_spec *spec, struct proc *out, int *pidfd, struct errinfo *ei)
{
    char path[PATH_MAX];
    struct launch l = {.spec = spec, .path = spec->argv[0], .log = -1, .null = -1};
    enum err err = ERR_OK;
    if (!strchr(spec->argv[0], '/')) {
        if (!proc_which(spec->argv[0], NULL, path, sizeof path))
            return err_set(ei, ERR_ENV, "%s is not installed", spec->argv[0]);
        l.path = path;
    }
    account_switch_prepare(&l.become, spec->as);
    l.env = merged_environment(l.path, spec->env);
    l.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    l.log = open(spec->log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (l.null < 0 || l.log < 0)
        err = err_sys(ei, ERR_ENV, "cannot start %s: %s", l.path, spec->log);
    if (!err)
        err = launch(&l, out, ei);
    if (!err) {
        *pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
        if (*pidfd < 0)
            err = err_sys(ei, ERR_ENV, "pidfd_open");
    }
    if (l.null >= 0)
        close(l.null);
    if (l.log >= 0)
        close(l.log);
    mem_free(l.env);
    return err;
}

/* ---- waiting and ending ---- */

struct exit_wait {
    struct io io;
    struct done done;
};

static void on_exit_event(struct io *io, uint32_t events)
{
    struct exit_wait *w = container_of(io, struct exit_wait, io);
    (void)events;
    loop_io_set(io, 0);
    done_set(&w->done);
}

/* False when the deadline came first. */
static MAY_YIELD bool wait_exit(struct loop *l, int pidfd, struct mono deadline)
{
    struct exit_wait w = {.io = {.fd = pidfd, .fn = on_exit_event}};
    struct errinfo ei;
    if (loop_io_add(l, &w.io, EPOLLIN, &ei))
        return false;
    bool ended = done_wait_until(l, &w.done, deadline);
    loop_io_remove(&w.io);
    return ended;
}

/* Its session is its own, made by proc_start: children that did not leave it die with it. */
void proc_kill_session(const struct proc *p)
{
    if (p->pid > 0 && proc_alive(p))
        kill(-p->pid, SIGKILL);
}

enum err proc_run(struct loop *l, const struct proc_spec *spec, struct mono deadline, struct proc *running, int *status,
                  struct errinfo *ei)
{
    struct proc p = {0};
    int pidfd = -1, raw = 0;
    enum err err = proc_start(spec, &p, &pidfd, ei);
    if (err)
        return err;
    if (running)
        *running = p;
    bool ended = wait_exit(l, pidfd, deadline);
    if (!ended) {
        proc_kill_session(&p);
        (void)!wait_exit(l, pidfd, MONO_NEVER);
        err = err_set(ei, ERR_TIMEOUT, "%s did not end in time", spec->argv[0]);
    }
    close(pidfd);
    while (waitpid(p.pid, &raw, 0) < 0 && errno == EINTR)
        ;
    if (running)
        *running = (struct proc){0};
    *status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    return err;
}

enum err proc_ask(struct loop *l, const char *const *argv, struct mono deadline, char *dst, size_t n, int *status,
                  struct errinfo *ei)
{
    char log[] = "/tmp/drivesim-said-XXXXXX";
    const struct proc_spec spec = {.argv = argv, .cwd = "/", .log = log, .dies_with_us = true};
    int fd = mkostemp(log, O_CLOEXEC);
    dst[0] = '\0';
    if (fd < 0)
        return err_sys(ei, ERR_ENV, "cannot make a file in /tmp");
    enum err e = proc_run(l, &spec, deadline, NULL, status, ei);
    ssize_t got = pread(fd, dst, n - 1, 0);
    dst[got > 0 ? got : 0] = '\0';
    close(fd);
    unlink(log);
    return e;
}

static void signal_all(const int *fds, size_t n, int signo)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            (void)syscall(SYS_pidfd_send_signal, fds[i], signo, NULL, 0);
}

/* How many are left at the deadline; the fds of those that ended are closed. */
static MAY_YIELD size_t await_all(struct loop *l, int *fds, const struct proc *procs, size_t n, struct mono deadline)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        if (fds[i] < 0)
            continue;
        if (!wait_exit(l, fds[i], deadline)) {
            left++;
            continue;
        }
        close(fds[i]);
        fds[i] = -1;
        (void)!waitpid(procs[i].pid, NULL, WNOHANG); /* when it was our own child */
    }
    return left;
}

enum err proc_end(struct loop *l, const struct proc *procs, size_t n, int signo, int64_t grace_us, struct errinfo *ei)
{
    enum err err = ERR_OK;
    int *fds = mem_alloc(n * sizeof *fds);
    for (size_t i = 0; i < n; i++)
        fds[i] = proc_pidfd(&procs[i]);
    signal_all(fds, n, signo);
    if (await_all(l, fds, procs, n, mono_add(mono_now(), grace_us)) > 0) {
        LOGD("proc", "still there after signal %d: killing", signo);
        signal_all(fds, n, SIGKILL);
        size_t left = await_all(l, fds, procs, n, mono_add(mono_now(), 10 * US_PER_S));
        if (left > 0)
            err = err_set(ei, ERR_ENV, "%zu processes cannot be ended, the first is %d", left, (int)procs[0].pid);
    }
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    mem_free(fds);
    return err;
}
