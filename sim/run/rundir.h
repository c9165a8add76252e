#ifndef SIM_RUN_RUNDIR_H
#define SIM_RUN_RUNDIR_H
/* The folder of a run: ledger.bin (drive/ledger.h), intervals.jsonl (drive/result/series.h) and run.json, which says
 * what was run: settings, logins in the order that the ledger's numbers mean, the plan's fingerprint, what the checks'
 * counters stood at, and in the end when it ended. With it `sim check --run` judges as the run itself did. Layer 3. */
#include "sim/app/worker.h"

struct rundir {
    char path[256]; /* "": none is kept */
    struct timer flush;
    struct worker *w;
    uint64_t actions, fingerprint; /* of the plan */
    bool warned;                   /* of a write error */
};
/* Makes "runs/20261130T091002Z-1", with "-2" and so on behind when that is taken: of two that start at once each has
 * its own. ERR_IO, ERR_ENV. */
enum err rundir_default(char *dst, size_t size, uint64_t seed, struct errinfo *ei) WARN_UNUSED;
/* Whether a run's folder can be made there, before there is a run: ERR_USAGE when its name is empty or too long, or it
 * stands where nothing can be made. NULL: the default, which can. */
enum err rundir_judge(const char *dir, struct errinfo *ei) WARN_UNUSED;
/* dir NULL: runs/<stamp>-<seed>, the first free of that name. Opens the ledger into w. */
enum err rundir_create(struct rundir *d, struct worker *w, const char *dir, struct errinfo *ei) WARN_UNUSED;
/* Writes run.json. fingerprint: of the planned actions. */
enum err rundir_describe(struct rundir *d, uint64_t actions, uint64_t fingerprint, struct errinfo *ei) WARN_UNUSED;
/* Closes the ledger and writes run.json anew, with the end; the first write error of the run comes out here. */
enum err rundir_close(struct rundir *d, struct errinfo *ei) WARN_UNUSED;
/* Keeps the figures along time from now on: in the folder, or, where there is none (""), in memory if a form of the
 * result that was asked for shows them. */
enum err rundir_keep_course(struct cmd_ctx *ctx, const char *dir, struct errinfo *ei) WARN_UNUSED;
#endif
