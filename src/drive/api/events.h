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
struct api_stream;
struct api_stream_ops {
    void (*on_open)(void *arg, int status);
    void (*on_event)(void *arg, const struct api_event *ev);
    void (*on_close)(void *arg, const struct api_result *r); /* last call; the stream is freed after it */
};
/* Declared dead when nothing, not even a comment, came for api_conf.stream_idle_us. last_event_id NULL or "": from now
 * on. */
enum err api_stream_open(struct api_stream **out, struct api *a, const char *last_event_id,
                         const struct api_stream_ops *ops, void *arg, struct errinfo *ei) WARN_UNUSED;
void api_stream_close(struct api_stream **s); /* no further callback */
#endif
