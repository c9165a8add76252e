#ifndef DRIVE_API_EVENTS_H
#define DRIVE_API_EVENTS_H
/* The event stream of a login: frames become struct api_event, batches are taken apart. Callbacks run on the loop's
 * stack and must not yield. Layer 2. */
#include "drive/api/session.h"

/* Strings live until the callback returns; "" when the frame had none, ids NULL. */
struct api_event {
    const char *type, *cursor;
    enum drive_op op; /* the operation that it tells of; OP_COUNT: none */
    const char *file_id, *name;
    const char *parent_id, *old_parent_id; /* NULL: the root or not told */
    bool connected, resync;
    bool names_folders; /* false: a change whose folders the frame does not tell */
    struct wall at;     /* us 0: not told */
};
/* What a client remembers over the ends of its streams (WHATWG HTML, "The EventSource interface"). Zeroed before the
 * first; its owner frees last_event_id. */
struct api_stream_memory {
    char *last_event_id; /* sent when it is opened again; NULL: there is none */
    int64_t retry_us;    /* what the server last asked to wait before that; 0: nothing */
};
struct api_stream;
struct api_stream_ops {
    void (*on_open)(void *arg); /* it is an event stream; any other answer is on_close's */
    void (*on_event)(void *arg, const struct api_event *ev);
    /* The last call; the stream is freed after it, and its owner's handle is NULL already. Never OUT_OK. */
    void (*on_close)(void *arg, const struct api_result *r);
};
#define API_CODE_NO_MORE "NO_MORE" /* result code of a stream that is not to be opened again (204) */
/* Declared dead when nothing, not even a comment, came for api_conf.stream_idle_us. memory is read now, kept up to date
 * while the stream lasts, and may be NULL; *out becomes NULL when it ends: both have to live as long. */
enum err api_stream_open(struct api_stream **out, struct api *a, struct api_stream_memory *memory,
                         const struct api_stream_ops *ops, void *arg, struct errinfo *ei) WARN_UNUSED;
void api_stream_close(struct api_stream **s); /* no further callback; fine inside one */
#endif
