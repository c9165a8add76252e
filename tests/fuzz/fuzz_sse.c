/* The event stream: whole, byte by byte and in two uneven ways the same events come out. */
#include "fuzz.h"
#include "net/sse.h"

#define EVENT_MAX 4096

struct seen {
    struct buf log;
};

static void note(void *arg, const struct sse_event *ev)
{
    struct seen *s = arg;

    MUST(ev->type && ev->id && ev->data && ev->data[ev->data_n] == '\0');
    MUST(ev->data_n <= EVENT_MAX);
    MUST(!buf_appendf(&s->log, "%zu %zu %zu:", strlen(ev->type), strlen(ev->id), ev->data_n));
    MUST(!buf_append_str(&s->log, ev->type) && !buf_append_str(&s->log, ev->id));
    MUST(!buf_append(&s->log, ev->data, ev->data_n));
}

/* step 0: all at once; else pieces of 1..step bytes. */
static enum err feed(const char *p, size_t n, size_t step, struct seen *seen)
{
    struct sse s;
    enum err err = ERR_OK;

    buf_init(&seen->log, 64 << 20);
    sse_init(&s, EVENT_MAX, note, seen);
    for (size_t at = 0; at < n && !err;) {
        size_t piece = step ? 1 + at % step : n;
        if (piece > n - at)
            piece = n - at;
        err = sse_feed(&s, p + at, piece);
        at += piece;
    }
    MUST(sse_last_id(&s));
    sse_done(&s);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 3, 7};
    struct seen whole, split;
    enum err err = feed((const char *)data, size, 0, &whole);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        MUST(feed((const char *)data, size, steps[i], &split) == err);
        MUST(split.log.len == whole.log.len);
        MUST(!whole.log.len || memcmp(split.log.data, whole.log.data, whole.log.len) == 0);
        buf_done(&split.log);
    }
    buf_done(&whole.log);
    return 0;
}
