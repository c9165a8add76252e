#ifndef SIM_RUN_CHAOS_H
#define SIM_RUN_CHAOS_H
/* Outages that a run orders: parts of the stack killed, stopped, paused, filled at a second of its window, and brought
 * back. Only for the stack of the working folder, and only where the target is its server. What fails meanwhile is
 * counted apart (meter.h); the checks decide whether the server kept its word. Layer 3. */
#include "sim/app/worker.h"

#define CHAOS_PARTS 4
struct chaos_step;
struct chaos {
    struct worker *w;
    struct chaos_step *steps;
    size_t n; /* 0: nothing is ordered */
    size_t running;
    struct sem parts[CHAOS_PARTS]; /* one order at a time: bringing back may take longer than planned */
    struct group group;
    const char *log; /* what the tools said */
    enum err err;    /* the first order that could not be carried out */
    struct errinfo ei;
    bool stopping;
};
/* Whether text can be an order at all, before there is anything: ERR_USAGE as below. */
enum err chaos_judge(const char *text, int64_t window_us, struct errinfo *ei) WARN_UNUSED;
/* text: "kill:server@20,pause:redis@40+10", VERB:PART@SECOND[+SECONDS]; NULL: nothing. ERR_USAGE when it is malformed
 * or outside the window, ERR_ENV when the target is not the stack of this folder. */
enum err chaos_init(struct chaos *c, struct worker *w, const char *text, struct errinfo *ei) WARN_UNUSED;
/* The window begins now. log: a file that is appended to, borrowed. */
void chaos_begin(struct chaos *c, const char *log);
/* Nothing begins any more, and what is away is brought back at once. */
void chaos_stop(struct chaos *c);
/* Waits until all is back. The error is that of the first order that failed. */
MAY_YIELD enum err chaos_end(struct chaos *c, struct errinfo *ei) WARN_UNUSED;
void chaos_done(struct chaos *c); /* after chaos_end */
/* "kill server at 20.0 s for 3.0 s, …" into dst; "" when there is nothing. */
char *chaos_text(const struct chaos *c, char *dst, size_t n);
#endif
