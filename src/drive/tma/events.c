/* The event stream of the tma dialect: frames with or without ids, single events and batches. */
#include "drive/tma/events.h"
#include "base/mem.h"
#include "net/sse.h"
#include <stdio.h>
#include <string.h>

#define EVENT_MAX (1024 * 1024)

struct tma_stream {
    struct api_stream base;
    struct httpc_stream *http;
    struct sse sse;
    struct api_stream_memory *memory; /* NULL: nobody's */
    struct api_stream **handle;       /* the owner's */
    const struct api_stream_ops *ops;
    void *arg;
    char broken[120]; /* why it was ended here; "": it was not */
    bool in_callback; /* the owner's is on the stack: a close has to wait for it */
    bool closing;     /* closed by its owner: no further callback */
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
    const char *own = json_str(json_get(j, "cursor")), *name = json_str(json_get(data, "name"));
    if (!type || s->closing)
        return;
    struct api_event ev = {
        .type = type,
        .op = op_of(type),
        .cursor = own ? own : cursor,
        .file_id = json_str(json_get(data, "id")),
        .name = name ? name : "",
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

/* After the owner's callbacks. False: it closed the stream in one, which is gone now. */
static bool still_wanted(struct tma_stream *s)
{
    s->in_callback = false;
    if (!s->closing)
        return true;
    httpc_stream_close(&s->http);
    stream_free(s);
    return false;
}

static bool give_up(struct tma_stream *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool give_up(struct tma_stream *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    str_vformat(s->broken, sizeof s->broken, fmt, ap);
    va_end(ap);
    return false;
}

static bool on_open(void *arg, const struct http_resp *head)
{
    struct tma_stream *s = arg;
    struct sv type = http_resp_header(head, "Content-Type"), essence = type;
    if (head->status != 200)
        return head->status / 100 != 2; /* an error's body is read for its reason */
    if (!sv_split(&type, ';', &essence) || !sv_ieq(sv_trim(essence), SV("text/event-stream")))
        return give_up(s, "the server answered %s%s instead of an event stream", essence.n ? "with " : "",
                       essence.n ? SHOWN(essence) : "without a content type");
    s->in_callback = true;
    if (s->ops->on_open)
        s->ops->on_open(s->arg);
    return still_wanted(s);
}

/* What a reconnect is to know. */
static void remember(const struct tma_stream *s)
{
    struct api_stream_memory *m = s->memory;
    const char *id = sse_last_id(&s->sse);
    if (!m)
        return;
    if (strcmp(id, m->last_event_id ? m->last_event_id : "") != 0) {
        mem_free(m->last_event_id);
        m->last_event_id = *id ? mem_strdup(id) : NULL;
    }
    if (s->sse.retry_ms >= 0)
        m->retry_us = s->sse.retry_ms < INT64_MAX / US_PER_MS ? s->sse.retry_ms * US_PER_MS : INT64_MAX;
}

/* An event beyond the limit ends the stream: it cannot be skipped, as nobody knows where it ends. */
static bool on_data(void *arg, const char *p, size_t n)
{
    struct tma_stream *s = arg;
    s->in_callback = true;
    enum err err = sse_feed(&s->sse, p, n);
    if (!s->closing)
        remember(s);
    if (!still_wanted(s))
        return false;
    if (err)
        return give_up(s, "an event of more than %d KiB: the stream was given up", EVENT_MAX >> 10);
    return true;
}

/* An answer that is no stream. */
static void refused(const struct http_resp *answer, struct api_result *r)
{
    struct sv to = http_resp_header(answer, "Location");
    r->outcome = outcome_of_status(r->status);
    if (!wire_error((struct sv){buf_cstr(&answer->body), answer->body.len}, r->reason, sizeof r->reason, r->code))
        str_format(r->reason, sizeof r->reason, "HTTP %d without a reason", r->status);
    api_wait_asked(r, answer);
    if (r->status == 404 || r->status == 405)
        str_fit(r->code, sizeof r->code, API_CODE_ABSENT);
    if (to.n && r->status / 100 == 3)
        str_format(r->reason, sizeof r->reason, "the server redirects to %s, which is not followed", SHOWN(to));
    if (r->status == 204)
        str_fit(r->code, sizeof r->code, API_CODE_NO_MORE);
    if (r->status / 100 == 2)
        str_format(r->reason, sizeof r->reason, "%s",
                   r->status == 204 ? "the server wants no event stream to be opened again"
                                    : "no content of an event stream");
    if (r->outcome == OUT_OK) /* 2xx, 304 */
        r->outcome = OUT_WRONG;
}

static void ended(const struct tma_stream *s, enum err err, const struct errinfo *why, struct api_result *r)
{
    r->err = err ? err : ERR_CLOSED;
    r->outcome = err == ERR_TIMEOUT     ? OUT_TIMEOUT
                 : err == ERR_CANCELLED ? OUT_UNFINISHED
                 : err == ERR_LOCAL     ? OUT_LOCAL
                                        : OUT_TRANSPORT;
    api_reason(r, err_message(why));
    if (s->broken[0]) {
        r->err = s->sse.failed ? ERR_LIMIT : ERR_WRONG;
        r->outcome = OUT_WRONG;
        str_format(r->reason, sizeof r->reason, "%s", s->broken);
    }
}

static void on_close(void *arg, enum err err, const struct http_resp *answer, const struct errinfo *why)
{
    struct tma_stream *s = arg;
    struct api_result r;
    api_result_init(&r);
    r.status = answer->status;
    r.done = mono_now();
    if (r.status && r.status != 200)
        refused(answer, &r);
    else
        ended(s, err, why, &r);
    *s->handle = NULL;
    s->ops->on_close(s->arg, &r);
    stream_free(s);
}

enum err tma_stream_open(struct api_stream **out, struct api *a, struct api_stream_memory *memory,
                         const struct api_stream_ops *ops, void *arg, struct errinfo *ei)
{
    static const struct httpc_stream_ops stream_ops = {on_open, on_data, on_close};
    const char *last = memory ? memory->last_event_id : NULL, *headers[3] = {"Accept: text/event-stream"};
    struct tma_stream *s = mem_zalloc(sizeof *s);
    s->base.dialect = a->dialect;
    s->memory = memory;
    s->handle = out;
    s->ops = ops;
    s->arg = arg;
    sse_init(&s->sse, EVENT_MAX, on_frame, s);
    struct buf header = BUF_INIT(EVENT_MAX);
    enum err err = last ? sse_resume(&s->sse, last) : ERR_OK;
    if (!err && last)
        err = buf_appendf(&header, "Last-Event-ID: %s", last);
    headers[1] = last ? buf_cstr(&header) : NULL;
    if (!err)
        err = httpc_stream_open(&s->http, a->peer, "/api/files/events", headers, a->stream_idle_us, &stream_ops, s, ei);
    buf_done(&header);
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
    s->closing = true;
    if (!s->in_callback)
        still_wanted(s);
}
