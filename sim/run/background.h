#ifndef SIM_RUN_BACKGROUND_H
#define SIM_RUN_BACKGROUND_H
/* Apps that work beside a command, as in a run without report or ledger, and how they fare before and while the
 * command does its own. What they did is added to the command's result at their end. Layer 3. */
#include "drive/cmd.h"

struct background;
struct background_conf {
    unsigned apps;
    unsigned open_folders;
    double per_minute; /* actions of each app */
};
/* Of all apps' operations but the first pass: a window's figures. */
struct background_window {
    uint64_t ok, failed;
    int64_t p95_us, p95_low_us, p95_high_us; /* -1: no samples; low and high: where it is with 99 % confidence */
    int64_t us;
    double idle; /* of the machine's processors, 0 to 1; -1: not known */
};

/* Signs in, reads the tree, starts the apps; returns when all of them have listed their folders. */
MAY_YIELD enum err background_start(struct background **out, struct cmd_ctx *ctx, const struct background_conf *conf,
                                    struct errinfo *ei) WARN_UNUSED;
/* Begins a window now; what was before is kept for the end only. */
void background_mark(struct background *b);
/* The window so far. */
void background_look(struct background *b, struct background_window *out);
/* From a signal: lets it drain; background_end is still to be called. */
void background_stop(struct background *b);
/* Drains, adds what was done to the command's result. NULL is fine. */
MAY_YIELD void background_end(struct background **b);

/* How a window compares with one before it. */
enum background_verdict { BACKGROUND_HELD, BACKGROUND_WORSE, BACKGROUND_UNSETTLED, BACKGROUND_CROWDED };
/* WORSE only when even the low end of the second p95 is above the high end of the first by more than that share;
 * UNSETTLED when the p95 itself is, but the samples do not prove it, or are fewer than 200; CROWDED when it is proven,
 * but no processor time was left in one of the windows. Pure. */
enum background_verdict background_compare(const struct background_window *before, const struct background_window *now,
                                           double share);
#endif
