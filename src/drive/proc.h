#ifndef DRIVE_PROC_H
#define DRIVE_PROC_H
/* Other programs: tools that are waited for and daemons that stay. A process is named by pid and start time, so that
 * one that merely got a dead one's number is never taken for it. Waiting is for the kernel's word (pidfd), never a
 * guess. Layer 2; one loop's thread. */
#include "base/buf.h"
#include "net/coro.h"
#include <sys/types.h>

struct account; /* of this machine: account.h */
struct proc {
    pid_t pid;      /* 0: none */
    uint64_t start; /* field 22 of /proc/PID/stat: clock ticks since boot */
};

struct proc_spec {
    const char *const *argv; /* argv[0] is looked up in PATH unless it has a slash */
    const char *const *env;  /* "NAME=value" lines that replace or join ours, less those with secrets; NULL: none */
    const char *cwd;
    const char *log;          /* stdout and stderr are appended here (made with 0600) */
    const struct account *as; /* NULL: as us */
    bool dies_with_us;        /* killed when this process ends, however it ends: tools, not daemons */
};
/* Starts it in a session of its own, with nothing of ours open, no signal blocked. ERR_ENV when it cannot be executed.
 * *pidfd is the caller's to close. */
enum err proc_start(const struct proc_spec *spec, struct proc *out, int *pidfd, struct errinfo *ei) WARN_UNUSED;
/* Runs a tool to its end or to the deadline (then it is killed with all its children: ERR_TIMEOUT). *status is the exit
 * status, 128 + n after signal n. *running, when given, names it meanwhile: proc_kill_session(*running) ends it. */
MAY_YIELD enum err proc_run(struct loop *l, const struct proc_spec *spec, struct mono deadline, struct proc *running,
                            int *status, struct errinfo *ei) WARN_UNUSED;
/* The same for a short question: what it said, both streams together, its first n - 1 bytes as text into dst. */
MAY_YIELD enum err proc_ask(struct loop *l, const char *const *argv, struct mono deadline, char *dst, size_t n,
                            int *status, struct errinfo *ei) WARN_UNUSED;
void proc_kill_session(const struct proc *p);

bool proc_alive(const struct proc *p);   /* zombies are dead */
bool proc_stopped(const struct proc *p); /* by SIGSTOP, which takes effect when it would run next */
int proc_pidfd(const struct proc *p);    /* -1 when it is gone */
bool proc_exe(const struct proc *p, char *dst, size_t n);
/* Resident bytes now and at most since it began; false: it is gone, or not ours to look at. */
bool proc_memory(const struct proc *p, int64_t *rss, int64_t *peak);
bool proc_of_pid(pid_t pid, struct proc *out); /* false: there is none */
struct wall proc_started(const struct proc *p);
bool proc_listens(const struct proc *p,
                  int port); /* on this TCP port of an IPv4 address; needs to be its owner or root */
/* Processes that run this executable with their working folder inside folder. Returns how many, at most max. */
size_t proc_find(const char *exe, const char *folder, struct proc *out, size_t max);
/* Sends signo and waits; what is left after grace_us is killed. ERR_ENV when something survives even that. */
MAY_YIELD enum err proc_end(struct loop *l, const struct proc *procs, size_t n, int signo, int64_t grace_us,
                            struct errinfo *ei) WARN_UNUSED;
/* The full path of a program in PATH (or in an extra colon-separated list, which may be NULL). False: not installed. */
bool proc_which(const char *name, const char *more, char *dst, size_t n);
#endif
