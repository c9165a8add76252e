/* The event stream: whole, byte by byte, cut once anywhere and in uneven ways, the same events, ids and waits come out,
 * and they are those of the standard's own steps, done one after the other on the whole text (WHATWG HTML,
 * "Interpreting an event stream"). */
#include "base/utf8.h"
#include "fuzz.h"
#include "net/sse.h"

#define EVENT_MAX 512 /* and inputs of some times that: many a second, which is what finds things */
#define INPUT_MAX 2048

struct seen {
    struct buf log; /* events, then the id that a reconnect sends */
    int64_t retry_ms;
};

static void note_event(struct seen *s, struct sv type, struct sv id, struct sv data)
{
    MUST(!buf_appendf(&s->log, "%zu %zu %zu:", type.n, id.n, data.n));
    MUST(!buf_append(&s->log, type.p, type.n) && !buf_append(&s->log, id.p, id.n));
    MUST(!buf_append(&s->log, data.p, data.n));
}

static void note(void *arg, const struct sse_event *ev)
{
    MUST(ev->type && ev->id && ev->data && ev->data[ev->data_n] == '\0' && ev->type[ev->type_n] == '\0');
    MUST(ev->data_n <= EVENT_MAX && utf8_valid((struct sv){ev->data, ev->data_n}));
    note_event(arg, (struct sv){ev->type, ev->type_n}, sv_of(ev->id), (struct sv){ev->data, ev->data_n});
}

/* In pieces; one that is more than half of the text is given in memory of its exact size, where an overrun shows. */
static enum err feed(const char *p, size_t n, size_t (*piece_at)(size_t at, size_t how), size_t how, struct seen *seen)
{
    struct sse s;
    enum err err = ERR_OK;

    buf_init(&seen->log, 64 << 20);
    sse_init(&s, EVENT_MAX, note, seen);
    MUST(!sse_resume(&s, "before"));
    for (size_t at = 0; at < n && !err;) {
        size_t piece = piece_at(at, how);
        piece = piece < n - at ? piece : n - at;
        char *exact = piece > n / 2 ? mem_dup(p + at, piece) : NULL;
        err = sse_feed(&s, exact ? exact : p + at, piece);
        mem_free(exact);
        at += piece;
    }
    note_event(seen, SV("end"), sv_of(sse_last_id(&s)), SV(""));
    seen->retry_ms = s.retry_ms;
    sse_done(&s);
    return err;
}

static size_t at_once(size_t at, size_t how)
{
    (void)at, (void)how;
    return SIZE_MAX;
}

static size_t uneven(size_t at, size_t most)
{
    return 1 + at % most;
}

static size_t cut_once(size_t at, size_t cut)
{
    return at < cut ? cut - at : SIZE_MAX;
}

/* ---- the standard's steps ---- */

static struct buf buffers[3]; /* data, event type, last event ID */

static void set(struct buf *b, struct sv v)
{
    buf_reset(b);
    MUST(!buf_append(b, v.p, v.n));
}

static struct sv view(const struct buf *b)
{
    return (struct sv){buf_cstr(b), b->len};
}

static void field(struct seen *seen, struct sv name, struct sv value)
{
    bool digits = value.n > 0;
    for (size_t i = 0; i < value.n; i++)
        digits &= value.p[i] >= '0' && value.p[i] <= '9';
    if (sv_eq_cstr(name, "event"))
        set(&buffers[1], value);
    else if (sv_eq_cstr(name, "data"))
        MUST(!buf_append(&buffers[0], value.p, value.n) && !buf_append_char(&buffers[0], '\n'));
    else if (sv_eq_cstr(name, "id") && !memchr(value.p, '\0', value.n))
        set(&buffers[2], value);
    else if (sv_eq_cstr(name, "retry") && digits && !sv_to_i64(value, &seen->retry_ms))
        seen->retry_ms = INT64_MAX;
}

static void dispatch(struct seen *seen, struct buf *last_id)
{
    set(last_id, view(&buffers[2]));
    if (buffers[0].len) {
        buffers[0].len--;
        note_event(seen, buffers[1].len ? view(&buffers[1]) : SV("message"), view(last_id), view(&buffers[0]));
    }
    buf_reset(&buffers[0]);
    buf_reset(&buffers[1]);
}

static void by_the_standard(const char *p, size_t n, struct seen *seen)
{
    struct buf text = BUF_INIT(64 << 20), last_id = BUF_INIT(64 << 20);
    struct sv rest = {p, n};

    seen->retry_ms = -1;
    buf_init(&seen->log, 64 << 20);
    for (size_t i = 0; i < ARRAY_LEN(buffers); i++)
        buf_init(&buffers[i], 64 << 20);
    if (sv_starts(rest, SV("\xEF\xBB\xBF")))
        rest = (struct sv){p + 3, n - 3};
    MUST(!utf8_append_repaired(&text, rest));
    set(&last_id, SV("before"));
    set(&buffers[2], SV("before"));
    for (const char *at = buf_cstr(&text), *end = at + text.len; at < end;) {
        const char *q = at;
        while (q < end && *q != '\r' && *q != '\n')
            q++;
        if (q == end)
            break;
        struct sv line = {at, (size_t)(q - at)};
        const char *colon = memchr(line.p, ':', line.n);
        struct sv name = {line.p, colon ? (size_t)(colon - line.p) : line.n};
        struct sv value = {colon ? colon + 1 : q, colon ? (size_t)(q - colon) - 1 : 0};
        if (value.n && *value.p == ' ')
            value = (struct sv){value.p + 1, value.n - 1};
        if (!line.n)
            dispatch(seen, &last_id);
        else if (name.n)
            field(seen, name, value);
        at = q + 1 + (*q == '\r' && q + 1 < end && q[1] == '\n');
    }
    note_event(seen, SV("end"), view(&last_id), SV(""));
    for (size_t i = 0; i < ARRAY_LEN(buffers); i++)
        buf_done(&buffers[i]);
    buf_done(&text);
    buf_done(&last_id);
}

static void same(struct seen *a, const struct seen *b)
{
    MUST(a->log.len == b->log.len && a->retry_ms == b->retry_ms);
    MUST(memcmp(a->log.data, b->log.data, a->log.len) == 0);
    buf_done(&a->log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    struct seen whole, other;
    if (size > INPUT_MAX)
        return 0;
    enum err err = feed(p, size, at_once, 0, &whole);

    for (size_t most = 1; most <= 5; most += 4) {
        MUST(feed(p, size, uneven, most, &other) == err);
        same(&other, &whole);
    }
    for (size_t i = 0; i < 2 && size; i++) { /* anywhere, as the input has it */
        size_t cut = (data[i * (size - 1)] | (size_t)data[size / 2] << 8) % size;
        MUST(feed(p, size, cut_once, cut, &other) == err);
        same(&other, &whole);
    }
    if (!err) { /* what was refused for its size the standard knows no end of */
        by_the_standard(p, size, &other);
        same(&other, &whole);
    }
    buf_done(&whole.log);
    return 0;
}
