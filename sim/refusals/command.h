#ifndef SIM_REFUSALS_COMMAND_H
#define SIM_REFUSALS_COMMAND_H
/* The command `sim refusals` as it runs: what was asked for, what came of each row, how the apps beside it fared. Its
 * course is cmd_refusals.c's, what it tells told.c's. Layer 3. */
#include "drive/cmd.h"
#include "sim/refusals/stage.h"
#include "sim/run/background.h"

struct refusals_conf { /* of the options */
    int64_t tries, background, before_us, within_us, max_upload_bytes, spend_us;
    double per_minute;
    struct opt_list only, except;
    bool list;
};
/* NOT_TRIED: why says what was missing. ALLOWED: the server did it, which is its own policy (ROW_MAY_ALLOW). */
enum refusal_verdict { VERDICT_HELD, VERDICT_FAILED, VERDICT_NOT_TRIED, VERDICT_ALLOWED };
struct verdict_row { /* of one refusal */
    enum refusal_verdict verdict;
    unsigned tries, ok;
    struct hist *took; /* us of each answer; NULL: the row was not asked for */
    int status;        /* of the first answer */
    char came[240];    /* its reason */
    char why[300];     /* what is wrong, or why it was not tried; "" */
};
struct command_refusals {
    const struct refusals_conf *conf;
    struct cmd_ctx *ctx;
    struct stage stage;
    struct background *background;
    struct background_window before, during;
    enum background_verdict held; /* whether the background did as well during as before */
    struct verdict_row *rows;
    bool stop;
};

/* told.c */
void refusals_print_list(FILE *out); /* --list */
void refusals_print_head(FILE *out);
void refusals_print_row(const struct command_refusals *c, const struct refusal *f, const struct verdict_row *v);
/* The check "refusals", the result's parts, the sentence about the background. */
void refusals_report(struct command_refusals *c);
void refusals_sample(struct result *r); /* as struct command's */
#endif
