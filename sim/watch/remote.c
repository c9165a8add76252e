#include "sim/watch/remote.h"
#include "base/mem.h"
#include "drive/proc.h"
#include "net/guard.h"
#include "sim/watch/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct remote {
    struct loop *loop;
    const struct remote_ops *ops;
    void *arg;
    struct proc proc; /* ssh */
    int fd;           /* what it prints; -1: it has ended */
    struct io io;
    struct buf text;
    char problem[240], host[REMOTE_HOST_MAX + sizeof("ssh://")];
};

static void hang_up(struct remote *r)
{
    if (r->fd >= 0) {
        loop_io_remove(&r->io);
        close(r->fd);
    }
    r->fd = -1;
}

/* What ssh says of itself comes before the first snapshot, or after the last. */
static void note_problem(struct remote *r)
{
    struct sv rest = {buf_cstr(&r->text), r->text.len}, line, last = {"", 0};
    while (sv_split(&rest, '\n', &line))
        if (sv_trim(line).n)
            last = sv_trim(line);
    char shown[154];
    snprintf(r->problem, sizeof(r->problem), "ssh to %s ended%s%s", r->host, last.n ? ": " : "",
             str_shown(shown, sizeof(shown), last));
}

static void on_text(struct io *io, uint32_t events)
{
    static const char end[] = "== end\n";
    struct remote *r = container_of(io, struct remote, io);
    char piece[8192];
    (void)events;
    ssize_t n = read(r->fd, piece, sizeof(piece));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buf_append(&r->text, piece, (size_t)n) != ERR_OK) {
        note_problem(r);
        hang_up(r);
        r->ops->end(r->arg);
        return;
    }
    for (const char *at; (at = strstr(buf_cstr(&r->text), end));) {
        size_t len = (size_t)(at - r->text.data);
        r->ops->snapshot(r->arg, (struct sv){r->text.data, len});
        buf_consume(&r->text, len + sizeof(end) - 1);
    }
}

/* A port is told by a URL alone. An IPv6 address has colons of its own, and none that is a port's unless in brackets.
 */
static void name_host(struct remote *r, const char *host)
{
    const char *colon = strrchr(host, ':'), *bracket = strrchr(host, ']');
    bool port = colon && (bracket ? colon > bracket : strchr(host, ':') == colon);
    const char *scheme = strncmp(host, "//", 2) == 0 ? "ssh:" : port ? "ssh://" : "";
    str_format(r->host, sizeof(r->host), "%s%s", scheme, host);
}

#define WORDS_MAX    16
#define SETTINGS_MAX (64 << 10)
#define SETTINGS_US  (10 * US_PER_S)
#define JUMPS_MAX    8

/* ssh's own settings say where a name leads to, and by which hosts. */
static MAY_YIELD enum err judge(struct loop *l, const char *host, int jumps, struct errinfo *ei);

static MAY_YIELD enum err judge_jumps(struct loop *l, struct sv list, int jumps, struct errinfo *ei)
{
    struct sv one;
    char host[REMOTE_HOST_MAX + sizeof("ssh://")];
    enum err e = ERR_OK;
    if (jumps == JUMPS_MAX)
        return err_set(ei, ERR_SAFETY, "ssh would go by more than %d hosts", JUMPS_MAX);
    while (e == ERR_OK && sv_split(&list, ',', &one)) {
        bool url = sv_starts(one, SV("ssh://")) || !memchr(one.p, ':', one.n);
        str_format(host, sizeof(host), "%s" SV_FMT, url ? "" : "ssh://", SV_ARG(one));
        e = judge(l, host, jumps + 1, ei);
    }
    return e;
}

static MAY_YIELD enum err judge_setting(struct loop *l, struct sv line, int jumps, struct errinfo *ei)
{
    struct sv name;
    char host[REMOTE_HOST_MAX + 1];
    if (!sv_split(&line, ' ', &name))
        return ERR_OK;
    str_format(host, sizeof(host), SV_FMT, SV_ARG(line));
    if (sv_eq_cstr(name, "host"))
        return guard_judge_name(host, ei);
    if (sv_eq_cstr(name, "hostname"))
        return guard_judge(host, ei);
    if (sv_eq_cstr(name, "proxyjump") && !sv_eq_cstr(line, "none"))
        return judge_jumps(l, line, jumps, ei);
    if (sv_eq_cstr(name, "proxycommand") && !sv_eq_cstr(line, "none"))
        return err_set(ei, ERR_SAFETY, "nobody can tell which host ssh's ProxyCommand leads to: use ProxyJump");
    return ERR_OK;
}

static MAY_YIELD enum err judge(struct loop *l, const char *host, int jumps, struct errinfo *ei)
{
    const char *const argv[] = {"ssh", "-G", "--", host, NULL};
    char *text = mem_zalloc(SETTINGS_MAX);
    int status = 0;
    enum err e = proc_ask(l, argv, mono_add(mono_now(), SETTINGS_US), text, SETTINGS_MAX, &status, ei);
    struct sv rest = sv_of(text), line;
    if (e == ERR_OK && status != 0)
        e = err_set(ei, ERR_ENV, "ssh -G %s: %s", host, SHOWN(sv_trim(rest)));
    while (e == ERR_OK && sv_split(&rest, '\n', &line))
        e = judge_setting(l, sv_trim(line), jumps, ei);
    mem_free(text);
    return e;
}

static enum err run_ssh(struct remote *r, const struct target *trust, const char *script, const char *log,
                        struct errinfo *ei)
{
    const char *argv[WORDS_MAX] = {"ssh", "-oBatchMode=yes", "-oConnectTimeout=10"};
    char hosts[400];
    int pidfd = -1;
    size_t n = 3;
    if (trust->ssh_key) {
        argv[n++] = "-i";
        argv[n++] = trust->ssh_key;
    }
    if (trust->insecure) {
        argv[n++] = "-oStrictHostKeyChecking=no";
        argv[n++] = "-oUserKnownHostsFile=/dev/null";
    } else if (trust->known_hosts) {
        str_format(hosts, sizeof(hosts), "-oUserKnownHostsFile=\"%s\" ~/.ssh/known_hosts", trust->known_hosts);
        argv[n++] = hosts;
    }
    argv[n++] = "--";
    argv[n++] = r->host;
    argv[n++] = script;
    const struct proc_spec spec = {.argv = argv, .cwd = ".", .log = log, .dies_with_us = true};
    enum err e = proc_start(&spec, &r->proc, &pidfd, ei);
    if (pidfd >= 0)
        close(pidfd);
    return e;
}

/* A pipe by name, since a process is given a file for what it says. The other side prints the same files with the same
 * marks, each second, until its pipe breaks. */
static enum err start(struct remote *r, const struct target *trust, struct errinfo *ei)
{
    struct buf script = BUF_INIT(1024);
    char dir[] = "/tmp/drivesim-watch-XXXXXX", fifo[sizeof(dir) + 8];
    enum err e = buf_append_str(&script, "while :; do for f in");
    for (int i = 0; host_files[i] && e == ERR_OK; i++)
        e = buf_appendf(&script, " %s", host_files[i]);
    if (e == ERR_OK)
        e = buf_append_str(&script, "; do echo \"== $f\"; cat /proc/$f; done; echo '== end'; sleep 1 || exit; done");
    if (e == ERR_OK && !mkdtemp(dir))
        e = err_sys(ei, ERR_ENV, "cannot make a folder in /tmp");
    snprintf(fifo, sizeof(fifo), "%s/out", dir);
    if (e == ERR_OK && mkfifo(fifo, 0600) != 0)
        e = err_sys(ei, ERR_ENV, "cannot make a pipe in /tmp");
    if (e == ERR_OK && (r->fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        e = err_sys(ei, ERR_ENV, "cannot open a pipe in /tmp");
    if (e == ERR_OK)
        e = run_ssh(r, trust, buf_cstr(&script), fifo, ei);
    if (e == ERR_OK) {
        r->io = (struct io){.fd = r->fd, .fn = on_text};
        e = loop_io_add(r->loop, &r->io, EPOLLIN, ei);
    }
    unlink(fifo);
    rmdir(dir);
    buf_done(&script);
    return e;
}

enum err remote_new(struct remote **out, struct loop *loop, const char *host, const struct target *trust,
                    const struct remote_ops *ops, void *arg, struct errinfo *ei)
{
    struct remote *r = mem_zalloc(sizeof(*r));
    *r = (struct remote){.loop = loop, .ops = ops, .arg = arg, .fd = -1};
    buf_init(&r->text, HOST_SNAPSHOT_MAX);
    name_host(r, host);
    enum err e = judge(loop, r->host, 0, ei);
    if (e == ERR_OK)
        e = start(r, trust, ei);
    if (e == ERR_OK)
        *out = r;
    else
        remote_free(&r);
    return e;
}

const char *remote_problem(const struct remote *r)
{
    return r->problem;
}

void remote_free(struct remote **rp)
{
    struct remote *r = *rp;
    if (!r)
        return;
    hang_up(r);
    if (r->proc.pid && proc_end(r->loop, &r->proc, 1, SIGTERM, US_PER_S, NULL) != ERR_OK)
        proc_kill_session(&r->proc);
    buf_done(&r->text);
    MEM_FREE(*rp);
}
