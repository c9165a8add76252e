/* The event stream of the tma dialect: frames with or without ids, single events and batches. */
#include "drive/tma/events.h"
#include "base/mem.h"
#include "net/sse.h"
#include <stdio.h>
#include <string.h>

#define EVENT_MAX    (1024 * 1024)
#define RETRY_MAX_MS 60000 /* what a stream's "retry:" may ask for */

struct tma_stream {
    struct api_stream base;
    struct httpc_stream *http;
    struct sse sse;
    const struct api_stream_ops *ops;
    void *arg;
    enum err broken; /* what the parser ended it for */
    bool in_feed;    /* a callback is on the stack: a close has to wait for it */
    bool closing;    /* closed by its owner: no further callback */
};

/* clang-format off */
static const struct {
    const char *type;
    enum drive_op op;
} tells_of[] = {
    {"file.uploaded", OP_UPLOAD}, {"file.updated", OP_SAVE}, {"file.renamed", OP_RENAME}, {"file.moved", OP_MOVE},
    {"file.copied", OP_COPY}, {"file.deleted", OP_TRASH}, {"file.restored", OP_RESTORE},
    {"file.permanently_deleted", OP_PURGE}, {"folder.created", OP_NEW_FOLDER},
};
/* clang-format on */

static enum drive_op op_of(const char *type)
{
    for (size_t i = 0; i < ARRAY_LEN(tells_of); i++)
        if (strcmp(type, tells_of[i].type) == 0)
            return tells_of[i].op;
    return OP_COUNT;
}

static void stream_free(struct tma_stream *s)
{
    sse_done(&s->sse);
    mem_free(s);
}

static void deliver(struct tma_stream *s, const struct json *j, const char *cursor)
{
    const struct json *data = json_get(j, "data");
    const char *type = json_str(json_get(j, "type")), *at = json_str(json_get(j, "timestamp"));
    const char *own = json_str(json_get(j, "cursor"));
    if (!type || s->closing)
        return;
    struct api_event ev = {
        .type = type,
        .op = op_of(type),
        .cursor = own ? own : cursor,
        .file_id = json_str(json_get(data, "id")),
        .name = json_str(json_get(data, "name")),
        .parent_id = json_str(json_get(data, "parentId")),
        .old_parent_id = json_str(json_get(data, "oldParentId")),
        .connected = strcmp(type, "connected") == 0,
        .resync = strcmp(type, "resync") == 0,
    };
    ev.names_folders = json_get(data, "parentId") && (strcmp(type, "file.moved") != 0 || json_get(data, "oldParentId"));
    if (at && !wall_parse(at, &ev.at))
        ev.at.us = 0;
    s->ops->on_event(s->arg, &ev);
}

static void on_frame(void *arg, const struct sse_event *frame)
{
    struct tma_stream *s = arg;
    struct json *j = NULL;
    /* A frame that is no JSON tells nothing that could be acted on; the minute check finds what it hid. */
    if (json_parse(frame->data, frame->data_n, &j, NULL))
        return;
    const char *type = json_str(json_get(j, "type")), *own = json_str(json_get(j, "cursor"));
    const struct json *batch = json_get(json_get(j, "data"), "events");
    if (type && strcmp(type, "file.batch") == 0 && batch) {
        for (const struct json *it = json_first(batch); it; it = json_next(it))
            deliver(s, it, own ? own : frame->id);
    } else {
        deliver(s, j, frame->id);
    }
    json_free(&j);
}

static void on_open(void *arg, int status)
{
    struct tma_stream *s = arg;
    s->in_feed = true;
    if (!s->closing && s->ops->on_open)
        s->ops->on_open(s->arg, status);
    s->in_feed = false;
}

static bool on_data(void *arg, const char *p, size_t n)
{
    struct tma_stream *s = arg;
    s->in_feed = true;
    enum err err = sse_feed(&s->sse, p, n);
    s->in_feed = false;
    s->broken = err;
    return !err && !s->closing;
}

/* An event beyond the limit ends the stream: it cannot be skipped, as nobody knows where it ends. */
static void close_broken(struct api_result *r)
{
    r->err = ERR_LIMIT;
    r->outcome = OUT_WRONG;
    snprintf(r->reason, sizeof r->reason, "an event of more than %d KiB: the stream was given up", EVENT_MAX >> 10);
}

static void close_result(enum err err, int status, const struct buf *body, struct sv retry_after, struct api_result *r)
{
    r->status = status;
    r->done = mono_now();
    if (status && status != 200) {
        r->outcome = outcome_of_status(status);
        struct sv text = body ? (struct sv){buf_cstr(body), body->len} : sv_of("");
        if (!wire_error(text, r->reason, sizeof r->reason, r->code))
            snprintf(r->reason, sizeof r->reason, "HTTP %d without a reason", status);
        api_wait_asked(r, retry_after);
        if (status == 404 || status == 405)
            snprintf(r->code, sizeof r->code, "%s", API_CODE_ABSENT);
        return;
    }
    r->err = err ? err : ERR_CLOSED;
    r->outcome = err == ERR_TIMEOUT ? OUT_TIMEOUT : err == ERR_CANCELLED ? OUT_UNFINISHED : OUT_TRANSPORT;
    snprintf(r->reason, sizeof r->reason, "%s", err ? err_text(err) : "the server closed the stream");
}

static void on_close(void *arg, enum err err, int status, const struct buf *body, struct sv retry_after)
{
    struct tma_stream *s = arg;
    struct api_result r;
    api_result_init(&r);
    s->http = NULL;
    s->in_feed = true; /* a close by the callback must not free twice */
    if (!s->closing) {
        close_result(err, status, body, retry_after, &r);
        if (s->broken)
            close_broken(&r);
        else if (r.status == 200 && s->sse.retry_ms >= 0)
            r.retry_after_us = s->sse.retry_ms < RETRY_MAX_MS ? s->sse.retry_ms * US_PER_MS : RETRY_MAX_MS * US_PER_MS;
        s->ops->on_close(s->arg, &r);
    }
    stream_free(s);
}

enum err tma_stream_open(struct api_stream **out, struct api *a, const char *last_event_id,
                         const struct api_stream_ops *ops, void *arg, struct errinfo *ei)
{
    static const struct httpc_stream_ops stream_ops = {on_open, on_data, on_close};
    char last[160];
    const char *headers[3] = {"Accept: text/event-stream"};
    struct tma_stream *s = mem_zalloc(sizeof *s);
    s->base.dialect = a->dialect;
    s->ops = ops;
    s->arg = arg;
    sse_init(&s->sse, EVENT_MAX, on_frame, s);
    if (last_event_id && *last_event_id) {
        snprintf(last, sizeof last, "Last-Event-ID: %s", last_event_id);
        headers[1] = last;
    }
    enum err err =
        httpc_stream_open(&s->http, a->peer, "/api/files/events", headers, a->stream_idle_us, &stream_ops, s, ei);
    if (err) {
        stream_free(s);
        return err;
    }
    httpc_stream_limit(s->http, a->stream_bytes_per_s);
    *out = &s->base;
    return ERR_OK;
}

void tma_stream_close(struct api_stream **stream)
{
    struct tma_stream *s = container_of(*stream, struct tma_stream, base);
    *stream = NULL;
    if (s->in_feed) { /* from inside a callback: on_data ends the connection, on_close frees */
        s->closing = true;
        return;
    }
    if (s->http)
        httpc_stream_close(&s->http);
    stream_free(s);
}
