#ifndef DRIVE_CMD_H
#define DRIVE_CMD_H
/* What every command shares: its table row, the context it runs in, and the result it leaves behind, which main renders as text, JSON and exit status. Layer 2. */
#include "base/opt.h"
#include "drive/stats.h"
#include "drive/target.h"

struct cmd_common {                  /* options of every command */
    const char *json_file, *csv_file;
    struct opt_list fail_on;
    int64_t seed;                    /* --seed, default 1 */
    const char *trace, *log_level, *allow_host, *cafile;
    bool insecure, no_color, quiet;
};
struct tree_summary { bool known; uint64_t folders, files, depth, hot_folders, hot_files, bytes; char manifest_sha256[65]; };
enum check_status { CHECK_OK, CHECK_VIOLATED, CHECK_NOT_RUN };
struct check_result { const char *name; enum check_status status; uint64_t examined, wrong; char summary[200]; char **detail; size_t n_detail; };
struct app_summary { bool known; uint64_t planned, streams_up, streams_peak; int64_t rss_bytes_per_app; };
struct generator_summary { bool known; int64_t cpu_us; int64_t lag_p99_us; bool limited; char why[120]; };
struct result {
    const char *command;
    enum err err; struct errinfo why;   /* the command's own end */
    bool interrupted; int64_t seconds_us;
    struct stats stats;
    struct tree_summary tree;
    struct app_summary apps;
    struct generator_summary generator;
    int64_t server_peak_rss;         /* -1: not known */
    struct check_result *checks; size_t n_checks;
    char run_dir[256];               /* "" when the command keeps none */
};
struct cmd_ctx {
    const struct cmd_common *common;
    struct target *target;
    struct loop *loop;
    struct httpc *http;
    struct result *result;
    FILE *out;                       /* results: stdout */
    bool tty, color;                 /* of out */
    volatile int *interrupts;        /* how many SIGINT/SIGTERM so far: 1 drains, 2 ends */
    void (*on_interrupt)(void *arg); void *on_interrupt_arg;       /* called on the loop at each; set by the command */
};
enum cmd_flags { CMD_NEEDS_URL = 1, CMD_THEN_CHECK = 2, CMD_NO_LOOP = 4 };
struct command {                     /* one row of the table in sim/main.c; each command's file defines its own */
    const char *name, *summary, *usage, *examples;
    const struct opt_pos *pos; const struct opt *opts;
    size_t conf_size; const void *defaults;   /* defaults copied over conf before parsing; NULL: zeros */
    unsigned flags;
    MAY_YIELD enum err (*run)(void *conf, struct cmd_ctx *ctx, struct errinfo *ei);
};
/* Progress on one line with rate and ETA on a terminal, a plain line every 15 s in a pipe; NO_COLOR honoured. */
struct progress;
struct progress *progress_new(FILE *out, bool tty, const char *what, uint64_t total);
void progress_set(struct progress *p, uint64_t n, const char *bound);   /* bound: the named limit, may be NULL */
void progress_free(struct progress **p);             /* ends the line */
#endif
