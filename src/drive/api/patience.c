#include "drive/api/patience.h"

#include "base/str.h"

#define LEAST_US (300 * US_PER_S)
#define TIMES    4 /* one window, and those of the others who come back when it ends */

bool patience_bears(struct patience *p, int64_t asked_us, struct mono now)
{
    if (p->since.us == 0)
        *p = (struct patience){.since = now};
    if (asked_us > DRIVE_WAIT_MOST_US)
        return false;
    if (asked_us > p->asked_us)
        p->asked_us = asked_us;
    int64_t most = TIMES * p->asked_us;
    most = most < LEAST_US ? LEAST_US : most > DRIVE_WAIT_MOST_US ? DRIVE_WAIT_MOST_US : most;
    return mono_diff(now, p->since) <= most;
}

void patience_told(struct patience *p, struct api_result *r, struct mono now)
{
    char said[80], waited[32];
    if (r->outcome != OUT_THROTTLED) {
        if (r->status != 429)
            p->since.us = 0;
        return;
    }
    if (patience_bears(p, r->retry_after_us, now))
        return;
    str_shown(said, sizeof(said), sv_of(r->reason));
    r->outcome = OUT_REFUSED;
    str_format(r->reason, sizeof(r->reason),
               "nothing but 429 for %s (%s): raise the server's limit, or try again later",
               str_duration(waited, sizeof(waited), mono_diff(now, p->since)), said);
}
