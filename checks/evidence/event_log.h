#ifndef CHECKS_EVIDENCE_EVENT_LOG_H
#define CHECKS_EVIDENCE_EVENT_LOG_H
/* What a run's apps heard on their event streams, arranged for the check of events: by app, and as what was published
 * in each account, of which each app should have heard. Layer 3. */
#include "checks/check.h"

struct event_stream { /* of one app; reconnects included */
    uint32_t app, login, account;
    int64_t first_up_us; /* INT64_MAX: never */
    int64_t until_us;    /* changes that were answered up to here should have come; INT64_MAX: all */
    int64_t resync_us;   /* the last time that it was told to list everything; -1: never */
    bool slow;           /* reads slowly on purpose */
};
struct event { /* one that an app got */
    const struct journal_note *note;
    int64_t up_us; /* since when the stream was up that brought it */
    uint32_t account;
    bool repeated; /* the app had got it before */
};
struct event_log {
    struct event *events; /* as they came */
    size_t n;
    const struct event **by_app;    /* by app, file, operation, identity */
    const struct event **published; /* one of each, as the first app heard it: by account, file, operation, number */
    size_t n_published;
    struct event_stream *streams; /* by app */
};

struct event_log *event_log_new(const struct journal *j);
void event_log_free(struct event_log **l);
const struct event_stream *event_log_stream(const struct event_log *l, uint32_t app);
/* What the app got of that very change; NULL: nothing. */
const struct event *event_log_find(const struct event_log *l, uint32_t app, const struct event *published);
/* What was published of the account's file and operation, in order: how many, and where they begin. */
size_t event_log_published(const struct event_log *l, uint32_t account, const char *file_id, uint8_t op,
                           const struct event *const **first);
#endif
