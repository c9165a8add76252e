#ifndef DRIVE_CMD_H
#define DRIVE_CMD_H
/* What every command shares: its table row, the options of all commands and the context it runs in. Layer 2. */
#include "base/opt.h"
#include "drive/result/rendering.h"
#include "drive/target.h"
#include "net/httpc.h"

struct cmd_common {                     /* options of every command */
    const char *files[RENDERING_COUNT]; /* of the forms asked for; NULL: not this one */
    struct opt_list fail_on, allow_hosts;
    int64_t seed; /* --seed, default 1 */
    const char *trace, *log_level, *cafile, *dialect, *users_file, *known_hosts, *ssh_key;
    bool insecure, fresh_sign_in, no_color, quiet; /* quiet: no progress, no reports; the summary stays */
};
struct loop;
struct httpc;
struct api_space;
struct kill_switch;

struct cmd_ctx {
    const struct cmd_common *common;
    struct target *target;
    struct loop *loop; /* NULL with CMD_NO_LOOP, as is http */
    struct httpc *http;
    struct api_space *space; /* of all clients of the target */
    uint64_t *requests;      /* of each cause, where those sent now are counted: the result's, or of who works for it */
    enum cause cause;        /* of a client that is made now */
    struct kill_switch *kill_switch; /* of a command that makes load; else NULL */
    struct result *result;
    FILE *out;                /* for people: stdout, line-buffered; stderr when a form of the result goes to stdout */
    bool tty, color;          /* of out */
    volatile int *interrupts; /* how many SIGINT/SIGTERM so far: 1 drains, 2 ends */
    const char
        *baseline; /* JSON: what the checks' counters stood at before; a run keeps it in its folder. NULL: none */
    /* Set by the command; called on the loop's stack at the first signal and at the second. At the first: stop making
     * work, finish what runs, let go of locks, return. At the second: bring result up to date; everything that waits
     * for an answer gets ERR_CANCELLED, and a second later the program ends with what result then holds. */
    void (*on_interrupt)(void *arg);
    void *on_interrupt_arg;
};

enum cmd_flags {
    CMD_SERVES = 16,         /* runs until a signal asks it to end: that is its good end; stdout may be closed */
    CMD_NEEDS_URL = 1,       /* TMA_URL must name a server that answers and may be aimed at */
    CMD_THEN_CHECK = 2,      /* the checks follow when it ended well */
    CMD_NO_LOOP = 4,         /* runs without a loop and an HTTP client */
    CMD_PROVES = 64,         /* proves by itself that the server's parts belong together (belong.h), once it can */
    CMD_LOADS = 32,          /* makes load: 'sim stop' ends it */
    CMD_FAILURES_MATTER = 8, /* failed operations make the exit status 1 unless --fail-on speaks of failures */
};
struct command { /* one row of the table in sim/main.c; each command's file defines its own */
    const char *name, *summary, *usage;
    const char *examples; /* one a line */
    const struct opt_pos *pos;
    const struct opt *opts;
    size_t conf_size;
    const void *defaults; /* copied over conf before parsing; NULL: zeros */
    unsigned flags;
    /* What the tables cannot tell about these arguments: ERR_USAGE with a sentence. Asked before anything is needed or
     * asked of a server; what it had to read it may keep in conf, as a pipe is read but once. NULL: nothing. */
    enum err (*verify)(void *conf, struct errinfo *ei);
    MAY_YIELD enum err (*run)(void *conf, struct cmd_ctx *ctx, struct errinfo *ei);
    /* True when these arguments ask no server: it is then neither probed before nor judged after. NULL: never. */
    bool (*offline)(const void *conf);
    /* Adds the figures and parts that this command alone may report, whatever their values, so that --fail-on and
     * --help can name them before they are there. NULL: it has none. */
    void (*sample)(struct result *r);
};

/* The next part of the command's course begins now; NULL: the last one ends. */
void cmd_phase(const struct cmd_ctx *ctx, const char *name);
/* A line of the course that is kept, of a part in which only this cause asked: what it counted since `before`. */
void cmd_course(const struct cmd_ctx *ctx, const char *phase, struct mono from, enum cause cause, uint64_t before);
/* For a peer that asks the target without a client of the API. */
struct httpc_counters cmd_counters(const struct cmd_ctx *ctx, enum cause cause);

/* Progress: on a terminal one line rewritten in place, in a pipe a plain line every 15 s, with rate and the time left.
 * out may be NULL: then nothing is printed. */
struct progress;
struct progress *progress_new(FILE *out, bool tty, const char *what, uint64_t total); /* total 0: not known */
void progress_set(struct progress *p, uint64_t n, const char *bound); /* bound: the named limit, may be NULL */
void progress_free(struct progress **p);                              /* prints the last state and ends the line */
/* Of time that has to pass: n and total are seconds, without a rate. */
struct progress *progress_new_seconds(FILE *out, bool tty, const char *what, uint64_t total);
void progress_drop(struct progress **p); /* leaves nothing on a terminal, and nothing more in a pipe */
#endif
