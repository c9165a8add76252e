#ifndef SIM_RAMP_KNEE_H
#define SIM_RAMP_KNEE_H
/* Where a server stops scaling, out of the figures of a ramp's steps. By the asymptotic bounds of a closed system
 * (Denning & Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3), 1978; Lazowska
 * et al., "Quantitative System Performance", 1984, ch. 5): work done a second is at most N times that of one session
 * alone, and at most what the slowest part can do, X_max. The two lines cross at N* = X_max / (X_1 / N_1), and there
 * the knee is. A step is on track while it does at least 90 % of what the lower of the lines allows; the crossing
 * counts only as far as the last step on track and the first one off it have it between them. With a link given, whose
 * line is drawn beforehand, a step that should fill it must keep its p95 within 1.5 times what that alone causes, too,
 * and the knee is the middle of the two steps. Where the pieces of work come at random, a step may fall
 * short by two standard deviations of their number and still be on track. Nothing is said of more sessions than were
 * tried. Layer 3, pure. */
#include "base/err.h"
#include <stddef.h>

#define KNEE_TRACK 0.9 /* of the expected rate */
#define KNEE_SLOW  1.5 /* times the expected p95 */
#define KNEE_SHARE 0.7 /* of the knee: the limit that is recommended */

struct knee_step {
    unsigned sessions;
    double rate;           /* work a second; < 0: it was not held to its end, and is off track */
    double drawn;          /* how many pieces of work came at random in it, as apps act; 0: it was not random */
    double p95, p95_bound; /* in one unit; the bound is that of the link; < 0: not known */
};
enum knee_state {
    KNEE_UNKNOWN, /* fewer than two steps, or the first one did nothing */
    KNEE_NONE,    /* every step was on track */
    KNEE_BELOW,   /* at or below the first step: there is nothing to measure it from */
    KNEE_FOUND
};
struct knee {
    enum knee_state state;
    double at;              /* sessions; FOUND and BELOW */
    unsigned on, off;       /* sessions of the last step on track and of the first one off it; 0: there is none */
    size_t on_row, off_row; /* where those stand in the steps given, if they are there */
    unsigned highest;       /* most sessions held */
    unsigned recommended;   /* 0: none, unless FOUND */
};

/* The lower line; link_rate <= 0: no link is known. */
double knee_expected(const struct knee_step *first, unsigned sessions, double link_rate);
/* The steps in any order. */
struct knee knee_find(const struct knee_step *steps, size_t n, double link_rate);
/* "about 150 sessions (100 on track, 200 not)", "none up to 400 sessions". Returns dst. */
char *knee_text(const struct knee *k, char *dst, size_t n);
#endif
