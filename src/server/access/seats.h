#ifndef SERVER_ACCESS_SEATS_H
#define SERVER_ACCESS_SEATS_H
/* How many sessions may be at work at once (sim serve --max-sessions). A session has a seat from its sign-in until it
 * signs out, or until it was silent for 3 minutes; one that comes back after that takes a seat again, whatever the
 * limit. A sign-in under way holds one already, so that a crowd at the door cannot all see the last one free. Of this
 * process alone. Layer 3, no I/O. */
#include "base/clock.h"
#include "base/str.h"

#define SEATS_SILENT_US (180 * US_PER_S)

struct seats;
struct seats *seats_new(int64_t max); /* 0: no limit, and nothing is counted */
void seats_free(struct seats **s);
bool seats_reserve(struct seats *s, struct mono now);                     /* false: all are taken */
void seats_give_up(struct seats *s);                                      /* what was reserved is not needed */
void seats_sit(struct seats *s, const char *session_id, struct mono now); /* what was reserved is this session's */
void seats_touch(struct seats *s, const char *session_id, struct mono now);
void seats_leave(struct seats *s, const char *session_id);
size_t seats_taken(const struct seats *s);
#endif
