#ifndef DRIVE_RESULT_PHASES_H
#define DRIVE_RESULT_PHASES_H
/* The parts of a command's course: set-up, window, checks. They follow each other without a gap and are all of it, so
 * that their requests are those of the whole. Begun by cmd_phase. Layer 2. */
#include "base/clock.h"

#define PHASES_MAX 8
struct phase_told {
    const char *name; /* static */
    int64_t us;
    uint64_t requests;
};
struct phases_told {
    struct phase_told of[PHASES_MAX];
    size_t n;
    struct mono began; /* the last one */
    uint64_t before;   /* requests sent until then */
};
#endif
