#ifndef SIM_RAMP_RAMP_H
#define SIM_RAMP_RAMP_H
/* A ramp: steps of so many sessions at once, each step ramped in at a rate, held, measured without its first part, and
 * drained before the next. What a session does is session.h's; this is the course and the figures of each step. What
 * was agreed beforehand ends it early (ramp/stop.c); what it all says is told at the end (ramp/verdict.c). Layer 3. */
#include "drive/health.h"
#include "sim/app/worker.h"
#include "sim/ramp/line.h"
#include "sim/ramp/plan.h"

#define RAMP_LINES_MAX  64
#define RAMP_REPEAT_MAX 20

struct ramp_conf {
    struct ramp_steps steps;
    unsigned repeat; /* the whole ramp, so many times */
    unsigned limit;  /* sessions that the server is told to allow: pushed past at the end; 0: not */
    struct ramp_work work;
    double arrive_per_s, link_bytes_per_s; /* 0: all at once; 0: not told */
    int64_t hold_us;                       /* 0: each session does its work once */
    int64_t settle_us, drain_us, timeout_us;
    unsigned open_folders; /* of an app, with per_minute */
    double per_minute;
    bool own_sign_in; /* each session signs in, even if that spends the logins' budgets */
    bool keep;        /* what was uploaded stays */
    struct ramp_line stop[RAMP_LINES_MAX], expect[RAMP_LINES_MAX];
    size_t n_stop, n_expect;
    const char *run_dir; /* NULL: runs/TIME-SEED */
    FILE *out;           /* for people; NULL: nothing */
};

/* One step and what came of it. asked = ok + refused + timed_out + failed + unfinished, when it has ended. */
struct ramp_step {
    unsigned pass, number, asked; /* pass, number: from 1 */
    double arrive_per_s;
    unsigned entered;  /* in, or turned away */
    unsigned up, peak; /* signed in and not yet gone; the most at once */
    unsigned admitted; /* signed in, whether gone since or not */
    unsigned ok, refused, timed_out, failed, unfinished;
    struct hist *refusals; /* how soon a session was told that it is refused; NULL: none was */
    char refused_why[120];
    struct stats stats;                   /* sign-ins of the whole step, everything else of the measured part */
    struct mono began, last_in;           /* last_in: of the last sign-in that went well */
    struct mono measure_from, measure_to; /* MONO_NEVER: not yet */
    bool once, over;                      /* over: no new work */
    bool held;                            /* to its end */
    bool desktop;                         /* its sessions were apps */
    uint64_t requests;                    /* sent in the measured part, of whatever cause */
    double done;                          /* uploads of the measured part; one that lies in it by half counts by half */
    int64_t measured_us, took_us, drained_us;
    struct ramp_measure measured, expected;
    struct watch_values server; /* over the measured part */
    char limited[400];          /* why its times are partly the generator's own; "": they are not */
    const char *cause;          /* the name of that, static */
    bool crowded;               /* limited, but only since others took the machine, on which the server is as well */
    /* While it runs, where the step keeps its own counters and sessions (session_apps.c): brings the figures up to
     * date; ends all of it at once. NULL: nothing to do. */
    void (*refresh)(void *arg);
    void (*halt)(void *arg);
    void *arg;
};

/* Takes over what the generator showed while the step ran. */
void ramp_generator(struct ramp_step *s, const struct health_verdict *v);

/* Which condition ended the ramp. */
struct ramp_tripped {
    const struct ramp_line *line; /* NULL: none */
    const struct ramp_step *step;
    double value;
    struct wall at;
    int64_t into_us; /* the step */
};
/* What came of pushing past the limit (ramp/limit.c). */
struct ramp_past {
    bool known;
    unsigned inside, own, extra; /* own: logins of the set-up, which count as sessions as well */
    struct ramp_step in, more;   /* those inside while the others push; the others */
    uint64_t before, during;     /* uploads of those inside */
    double before_ms, during_ms; /* their p95; < 0: they did nothing that could be timed */
};
struct ramp_guard;
struct ramp_folders;

struct ramp {
    const struct ramp_conf *conf;
    struct worker *w;
    struct ramp_step *steps; /* of all passes */
    unsigned n;              /* begun */
    bool shares_sign_ins;    /* uploads go on with the set-up's sessions: own ones would spend the logins' budgets */
    FILE *log;               /* one line a sign-in or upload: sessions.csv of the run's folder */
    struct ramp_folders *folders; /* of the uploads (ramp/folder.c); NULL: not made */
    char run_dir[256];
    struct mono began, course_from; /* course_from: where the next line of the course begins */
    int64_t quiet_us;               /* how fast a probe is answered while nothing runs; -1: it cannot be asked */
    struct ramp_guard *guard;
    struct progress *progress; /* of the step that runs or drains; NULL: none */
    char progress_of[64];
    struct ramp_tripped tripped;
    struct ramp_past past;
};
/* ERR_STOPPED with a sentence when a condition ended it. */
MAY_YIELD enum err ramp_run(struct worker *w, const struct ramp_conf *conf, struct errinfo *ei) WARN_UNUSED;
extern const char *const ramp_stop_defaults[]; /* conditions, ends with NULL */
void ramp_sample(struct result *out);          /* as struct command's */
#endif
