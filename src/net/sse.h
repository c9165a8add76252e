#ifndef NET_SSE_H
#define NET_SSE_H
/* Incremental parser of text/event-stream (WHATWG HTML, "Interpreting an event stream"): any split of the bytes gives
 * the same events; CR, LF and CRLF end lines, one leading BOM is dropped, comments are skipped, what is no UTF-8
 * becomes U+FFFD. An event or a line above max_event bytes is ERR_LIMIT. Layer 1. */
#include "base/str.h"

#include <stdbool.h>

struct sse_event {
    const char *type; /* "message" unless named */
    const char *id;   /* the last event id so far, "" if none */
    const char *data; /* valid UTF-8, NUL-terminated, may hold NULs */
    size_t type_n, data_n;
};
struct sse {
    struct buf line, data, type, id, last_id; /* id: of the event being read; last_id: what a reconnect sends */
    bool after_cr, failed;
    int bom_seen;     /* bytes of it; -1: past the start */
    int64_t retry_ms; /* -1 until the server sent one; what does not fit is INT64_MAX */
    void (*on_event)(void *arg, const struct sse_event *ev);
    void *arg;
};
/* on_event must not feed or free its parser. */
void sse_init(struct sse *s, size_t max_event, void (*on_event)(void *, const struct sse_event *), void *arg);
void sse_done(struct sse *s);
/* Before the first byte: the id that earlier connections of the same stream ended with, which this one goes on from. */
enum err sse_resume(struct sse *s, const char *last_id) WARN_UNUSED;
/* After ERR_LIMIT the parser is spent: close the stream and reconnect with a new one. */
enum err sse_feed(struct sse *s, const char *p, size_t n) WARN_UNUSED;
/* The id for Last-Event-ID: only whole events move it, also those without data. "" if none. */
const char *sse_last_id(const struct sse *s);
#endif
