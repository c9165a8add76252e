#ifndef NET_SSE_H
#define NET_SSE_H
/* Incremental parser of text/event-stream (WHATWG HTML, "Interpreting an event stream"): any split of the bytes gives the same events; CR, LF
 * and CRLF end lines, one leading BOM is dropped, comments count as life. An event above max_event bytes is ERR_LIMIT. Layer 1. */
#include "base/buf.h"
struct sse_event { const char *type; const char *id; const char *data; size_t data_n; };   /* id: last event id so far, "" if none; data NUL-terminated */
struct sse {
    struct buf line, data, type, id;
    bool seen_start, after_cr, has_data;
    int bom_seen;
    int64_t retry_ms;                                /* -1 until the server sent one */
    void (*on_event)(void *arg, const struct sse_event *ev);
    void *arg;
};
void sse_init(struct sse *s, size_t max_event, void (*on_event)(void *, const struct sse_event *), void *arg);
void sse_done(struct sse *s);
enum err sse_feed(struct sse *s, const char *p, size_t n) WARN_UNUSED;
#endif
