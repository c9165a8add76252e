#ifndef DRIVE_STACK_STACK_H
#define DRIVE_STACK_STACK_H
/* The throwaway stack: Postgres, Redis, an S3 store and the reference server, private to one working folder. Native
 * processes where no Docker engine answers, containers of docker-compose.yml where one does. Its state lives in .sim/
 * of the folder: stack.json (pids with start times, ports, secrets), env (what target.h reads), logs/, a folder a part,
 * and sessions/ (api/token_store.h). Every call that changes something holds .sim/lock. Layer 2; one loop's thread. */
#include "base/err.h"
#include "net/coro.h"
#include <stdio.h>

struct httpc;
struct stack;
enum stack_mode { STACK_AUTO, STACK_NATIVE, STACK_DOCKER };
struct stack_conf {          /* borrowed for the life of the stack */
    const char *dir;         /* NULL: the current folder */
    enum stack_mode mode;    /* of a new stack; an existing one keeps its own */
    bool no_server;          /* up: leave the reference server out */
    const char *server_args; /* more options for `sim serve`, split at spaces; NULL: as before */
    const char *account;     /* as root: who runs Postgres; NULL: postgres, else nobody */
    FILE *progress;          /* a line a step; NULL: none */
};

/* Reads the state, if there is one. Takes the lock when it is to be changed (a new folder .sim is made then), waiting
 * for another process that holds it. */
enum err stack_open(struct stack **out, struct loop *l, struct httpc *h, const struct stack_conf *conf, bool change,
                    struct errinfo *ei) WARN_UNUSED;
void stack_close(struct stack **s);
bool stack_exists(const struct stack *s);

/* Brings up what is not there yet and waits until it answers. A failure names the part, shows the end of its log on
 * progress and takes down what this call made. */
MAY_YIELD enum err stack_up(struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* Installs what stack_up would get from elsewhere (the npm package of the store), where it is missing. */
MAY_YIELD enum err stack_fetch(struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* Ends every process or container of the stack and removes its files, whatever state they are in. */
MAY_YIELD enum err stack_down(struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* From a signal: ends a running stack_up, start or fill early, with ERR_INTERRUPTED. */
void stack_cancel(struct stack *s);

/* The process of a part ("server", "store") of this folder's stack, where url is its server and it runs natively.
 * False: there is none. */
struct proc;
bool stack_find_process(struct loop *l, struct httpc *h, const char *url, const char *name, struct proc *out);
/* Whether url is the reference server of this folder's stack; *native: its parts are processes, not containers. ERR_ENV
 * with a sentence when it is not. */
enum err stack_owns(struct loop *l, struct httpc *h, const char *url, bool *native, struct errinfo *ei) WARN_UNUSED;

/* What stack_up needs of this machine and whether it is there, for `sim doctor`. */
struct stack_need {
    const char *name; /* "Postgres" */
    bool there;
    char detail[160];    /* what was found: version or path; or why it is not enough */
    const char *package; /* Debian's; NULL: another command brings it */
    const char *command; /* when it is not a package */
};
#define STACK_NEEDS_MAX 8
/* Returns how many. *docker: an engine answers, so that the programs are not needed. */
MAY_YIELD size_t stack_needs(struct stack *s, struct stack_need out[STACK_NEEDS_MAX], bool *docker);

/* The lines NAME=value, with `export ` before each for a shell to eval. */
enum err stack_print_env(const struct stack *s, FILE *out, bool export, struct errinfo *ei) WARN_UNUSED;
/* A table. ERR_ENV when a part is down or there is no stack. */
MAY_YIELD enum err stack_print_status(struct stack *s, FILE *out, struct errinfo *ei) WARN_UNUSED;
/* The last lines of one part's log, or with NULL of each; lines 0: all. */
MAY_YIELD enum err stack_print_logs(struct stack *s, const char *part, int64_t lines, FILE *out,
                                    struct errinfo *ei) WARN_UNUSED;
/* ERR_SAFETY when DOCKER_HOST names an engine on a host that the guard (net/guard.h) forbids: before docker is run. */
enum err stack_docker_judge(struct errinfo *ei) WARN_UNUSED;
#endif
