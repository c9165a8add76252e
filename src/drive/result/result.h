#ifndef DRIVE_RESULT_RESULT_H
#define DRIVE_RESULT_RESULT_H
/* What a command leaves behind: its end, its counters, the tree, the checks, the thresholds. One struct, in
 * text and JSON with the keys of design.md; every other form is made of the JSON (result/rendering.h). The command
 * fills it, main renders it. Layer 2. */
#include "base/opt.h"
#include "base/percentiles.h"
#include "drive/result/phases.h"
#include "drive/stats.h"

struct tree_summary {
    bool known;
    uint64_t folders, files, depth, hot_folders, hot_files, bytes;
    char manifest_sha256[65];
};
enum check_status { CHECK_OK, CHECK_VIOLATED, CHECK_NOT_RUN };
struct check_result {
    const char *name; /* static */
    enum check_status status;
    uint64_t examined, wrong;
    bool blocked; /* not run though it should have: what it needs was named and could not be had. Exit status 3 */
    char summary[200];
    char **detail; /* owned, mem_alloc'ed, as are the strings */
    size_t n_detail;
    char **note; /* lines under the summary that are no complaints; owned likewise */
    size_t n_note;
};
struct app_summary {
    bool known;
    uint64_t planned, streams_up, streams_peak;
    int64_t rss_bytes_per_app;
};
struct generator_summary {
    bool known;
    int64_t cpu_us;
    int64_t lag_p99_us;     /* -1: no samples */
    int64_t peak_rss_bytes; /* the most memory that this process ever held; 0: not known */
    bool limited;           /* it was the limit: no time and no rate is the server's alone */
    bool late;              /* only its own delays are in the times: rates and counts of sessions stand */
    char why[400];          /* of either: the causes with their figures, then what to do */
    const char *cause;      /* the first one's key, static; NULL: none */
};
/* Of our logins: went on with a session of an earlier command; began one. */
struct session_summary {
    unsigned kept, signed_in;
};
/* Of the events that the acknowledged changes of a run owed to its apps, filled by the check "events". */
struct event_summary {
    bool known;
    uint64_t expected, seen, lost, duplicate, out_of_order, late;
    uint64_t resynced; /* not seen, but the app was told to list everything */
};
/* A number of one command alone: "pairs", "per_second", 9.8. Names are static, or owned by the caller for the
 * result's life. */
struct result_figure {
    const char *section; /* NULL: top level */
    const char *key;
    double value;
    int decimals;
    struct few few; /* of a percentile; else zeros */
};
/* A part of the JSON that only one command has, made by it. */
struct result_part {
    const char *key; /* static */
    char *json;      /* owned */
};
struct threshold;
struct series;
struct doc;

struct result {
    const char *command;
    char target[300], arguments[600]; /* what it was aimed at and asked for, escaped, without secrets; "" unknown */
    struct wall began;                /* us 0: unknown */
    int64_t seed;
    enum err err; /* the command's own end */
    struct errinfo why;
    bool interrupted, reader_gone; /* reader_gone: stdout was closed by the other side */
    bool judged;                   /* the summary ends with a verdict; it always does when something was checked */
    bool failures_matter; /* a failed operation makes the run unhealthy, unless a threshold speaks of failures */
    int64_t seconds_us;   /* of what was measured, a run's window; else of the whole */
    struct stats stats;   /* of the whole */
    struct phases_told phases;
    struct tree_summary tree;
    struct app_summary apps;
    struct generator_summary generator;
    struct event_summary events;
    struct session_summary sessions;
    int64_t server_peak_rss; /* -1: not known */
    struct check_result *checks;
    size_t n_checks;
    struct result_figure *figures;
    size_t n_figures;
    struct result_part *parts;
    size_t n_parts;
    struct threshold *thresholds;
    size_t n_thresholds;
    struct series *series;            /* the course along time, owned; NULL: none is kept */
    struct doc *shown;                /* an earlier command's result, rendered in place of this one's own; owned */
    char run_dir[256];                /* "" when the command keeps none */
    const char *run_holds;            /* what that folder is for, a word; static. NULL: "ledger" */
    char note[800];                   /* one more line of the summary: fallbacks in force; "" for none */
    bool caps_known;                  /* the server was asked what it has */
    unsigned caps;                    /* enum api_cap */
    void (*sample)(struct result *r); /* of the command's row, see cmd.h; NULL: it has no figures of its own */
    void (*sample_after)(struct result *r); /* likewise, of the checks that follow the command */
};

void result_init(struct result *r, const char *command);
void result_done(struct result *r);
void result_figure(struct result *r, const char *section, const char *key, double value, int decimals);
/* A percentile, in units of unit_us; one that the samples do not carry says so wherever it is told. Nothing when h is
 * empty. */
void result_percentile(struct result *r, const char *section, const char *key, const struct hist *h, double pct,
                       int64_t unit_us, int decimals);
/* One more member of the JSON's top level: takes the value that w has written and frees w's buffer. What outgrew the
 * buffer's limit is left out whole. */
void result_part(struct result *r, const char *key, struct jsonw *w);
/* A verdict of the command itself, among the checks: the same exit status, the same place in summary and JSON. */
struct check_result *result_check(struct result *r, const char *name); /* valid until the next one is added */
/* One wrong thing: raises wrong, makes it violated; escaped and cut; the first 50 are kept. */
void result_check_detail(struct check_result *c, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
void result_check_add(struct check_result *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A figure in words: "saves: 2,114 acknowledged, 2,114 found". */
void result_check_note(struct check_result *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A condition of health: "save.p99<200ms", "failed==0", "download.failed<=2", "rss_bytes_per_app<64KiB",
 * "checks.storage.wrong==0", "uploads.mb_per_s>50", "list_hot.p95<50ms". The path is one of the JSON's numbers;
 * "operations", the section of a lone name, the level "alone" and a unit may be left out, "slowest" is max_ms.
 * ERR_USAGE with a sentence when it is malformed or names no figure, one of the command's own (sample) included.
 */
enum err result_threshold(struct result *r, const char *expr, struct errinfo *ei) WARN_UNUSED;
/* For --help: the names of those that sample adds, a line a section; every row of a part is named by its key. */
void result_print_names(void (*sample)(struct result *r), FILE *out);
/* Judges every threshold by what the result holds now. One whose figure has no samples is missed. */
void result_judge(struct result *r);
#define RESULT_READER_GONE 141 /* what a program killed by SIGPIPE shows: 128 + 13 */
/* After result_judge: 0 healthy, 1 a check, a threshold or a failure, else what err says; RESULT_READER_GONE when it is
 * so. */
int result_exit_status(const struct result *r);

void result_print(const struct result *r, FILE *out, bool color); /* nothing when there is nothing to sum up */
enum err result_json(const struct result *r, struct buf *out) WARN_UNUSED;
#endif
