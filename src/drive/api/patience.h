#ifndef DRIVE_API_PATIENCE_H
#define DRIVE_API_PATIENCE_H
/* How long a server that answers 429 is waited for, so that no loop that waits such an answer out is endless. What is
 * counted is the time from the first 429 of an unbroken row: four times the longest wait that the server asked for in
 * it, at least 5 min and at most DRIVE_WAIT_MOST_US; after that it is refusing. A login's requests are a row each, and
 * so are all sign-ins of the program, which limiters count by address. Layer 2. */
#include "drive/api/types.h"

struct patience { /* {0}: no row */
    struct mono since;
    int64_t asked_us;
};
/* Every answer passes here, told at that time. Where it is one 429 too many its outcome becomes OUT_REFUSED, and its
 * reason says for how long it was waited, what the server said, and what to do. */
void patience_told(struct patience *p, struct api_result *r, struct mono now);
/* Of a 429 alone, that asked for so long (-1: did not say): whether it is waited out. */
bool patience_bears(struct patience *p, int64_t asked_us, struct mono now);
#endif
