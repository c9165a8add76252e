#ifndef SIM_APP_RECORDER_H
#define SIM_APP_RECORDER_H
/* The course of a command that has no run folder, for the forms that show one (page, HDR log): kept in memory, and
 * only where such a form was asked for. A line each tenth of a second, each one longer as the command goes on, so that
 * an hour takes some hundreds. Layer 3. */
#include "drive/cmd.h"
#include "drive/stats.h"
#include "net/loop.h"

struct recorder {
    struct cmd_ctx *ctx;
    struct stats *interval; /* borrowed: what was counted since the last line */
    struct timer tick;
    struct mono began, from;
};
/* Whether a form that shows the course was asked for. */
bool recorder_wanted(const struct cmd_common *c);
/* From here on *interval is added to the command's result, and starts again from zero, by each line and by each
 * recorder_add. Does so without any line where none is wanted. What was counted before, since
 * began, is a line of its own. */
void recorder_start(struct recorder *r, struct cmd_ctx *ctx, struct stats *interval, struct mono began);
void recorder_add(struct recorder *r); /* brings the result up to date now */
void recorder_stop(struct recorder *r);
#endif
