/* One pass over the bytes: a line that lies whole in one chunk is parsed where it lies, the rest is gathered first. */
#include "net/sse.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

static const char bom[] = "\xEF\xBB\xBF";

enum {
    KEEP_BYTES =
        4096, /* a buffer that one large event has grown beyond this is freed: there are thousands of parsers */
    FIELD_MAX = 64 * 1024,
    NAME_ROOM = 16, /* a line is a field's name, a colon and a value: the limit is the value's */
};

void sse_init(struct sse *s, size_t max_event, void (*on_event)(void *, const struct sse_event *), void *arg)
{
    memset(s, 0, sizeof *s);
    size_t field_max = max_event < FIELD_MAX ? max_event : FIELD_MAX;
    buf_init(&s->line, max_event + NAME_ROOM);
    buf_init(&s->data, max_event + 1); /* and the line end that dispatch takes off again */
    buf_init(&s->type, field_max);
    buf_init(&s->id, field_max);
    buf_init(&s->last_id, field_max);
    s->retry_ms = -1;
    s->on_event = on_event;
    s->arg = arg;
}

void sse_done(struct sse *s)
{
    buf_done(&s->line);
    buf_done(&s->data);
    buf_done(&s->type);
    buf_done(&s->id);
    buf_done(&s->last_id);
}

const char *sse_last_id(const struct sse *s)
{
    return buf_cstr(&s->last_id);
}

static void empty(struct buf *b)
{
    if (b->cap > KEEP_BYTES)
        buf_done(b);
    else
        buf_reset(b);
}

static enum err set(struct buf *b, struct sv value)
{
    buf_reset(b);
    return utf8_append_repaired(b, value);
}

enum err sse_resume(struct sse *s, const char *last_id)
{
    enum err err = set(&s->id, sv_of(last_id));
    return err == ERR_OK ? set(&s->last_id, sv_of(last_id)) : err;
}

/* ---- fields ---- */

static enum err field_data(struct sse *s, struct sv value)
{
    enum err err = utf8_append_repaired(&s->data, value);
    return err == ERR_OK ? buf_append_char(&s->data, '\n') : err;
}

static enum err field_event(struct sse *s, struct sv value)
{
    return set(&s->type, value);
}

static enum err field_id(struct sse *s, struct sv value)
{
    bool ignored = value.n > 0 && memchr(value.p, '\0', value.n) != NULL;
    return ignored ? ERR_OK : set(&s->id, value);
}

static enum err field_retry(struct sse *s, struct sv value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < '0' || value.p[i] > '9')
            return ERR_OK;
    if (value.n > 0 && !sv_to_i64(value, &s->retry_ms))
        s->retry_ms = INT64_MAX;
    return ERR_OK;
}

static const struct {
    struct sv name;
    enum err (*apply)(struct sse *s, struct sv value);
} fields[] = {
    {{"data", 4}, field_data},
    {{"event", 5}, field_event},
    {{"id", 2}, field_id},
    {{"retry", 5}, field_retry},
};

/* ---- lines ---- */

/* The blank line: what was gathered is an event, unless it has no data. Only here does the id become the stream's. */
static enum err dispatch(struct sse *s)
{
    struct sv id = {buf_cstr(&s->id), s->id.len}, last = {buf_cstr(&s->last_id), s->last_id.len};
    enum err err = sv_eq(id, last) ? ERR_OK : set(&s->last_id, id);
    if (err == ERR_OK && s->data.len > 0) {
        s->data.data[--s->data.len] = '\0';
        struct sse_event ev = {
            .type = s->type.len > 0 ? buf_cstr(&s->type) : "message",
            .type_n = s->type.len > 0 ? s->type.len : sizeof "message" - 1,
            .id = sse_last_id(s),
            .data = buf_cstr(&s->data),
            .data_n = s->data.len,
        };
        s->on_event(s->arg, &ev);
    }
    empty(&s->data);
    buf_reset(&s->type);
    return err;
}

static enum err parse_line(struct sse *s, struct sv line)
{
    if (line.n == 0)
        return dispatch(s);
    const char *colon = memchr(line.p, ':', line.n);
    struct sv name = {line.p, colon != NULL ? (size_t)(colon - line.p) : line.n};
    struct sv value = {line.p + line.n, 0};
    if (colon != NULL) {
        value = (struct sv){colon + 1, line.n - name.n - 1};
        if (value.n > 0 && value.p[0] == ' ') {
            value.p++;
            value.n--;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (sv_eq(name, fields[i].name))
            return fields[i].apply(s, value);
    return ERR_OK; /* a comment, or a field of the future */
}

static enum err end_line(struct sse *s, const char *p, size_t n)
{
    if (s->line.len == 0) /* the same limit as for a line that came in pieces */
        return n > s->line.max && p[0] != ':' ? ERR_LIMIT : parse_line(s, (struct sv){p, n});
    bool comment = s->line.data[0] == ':';
    enum err err = comment ? ERR_OK : buf_append(&s->line, p, n);
    if (err == ERR_OK && !comment)
        err = parse_line(s, (struct sv){s->line.data, s->line.len});
    empty(&s->line);
    return err;
}

/* A comment is not kept: only its first byte, so that the rest of the line is known for one. */
static enum err keep_part(struct sse *s, const char *p, size_t n)
{
    bool comment = s->line.len > 0 ? s->line.data[0] == ':' : n > 0 && p[0] == ':';
    if (comment)
        n = s->line.len > 0 || n == 0 ? 0 : 1;
    return n > 0 ? buf_append(&s->line, p, n) : ERR_OK;
}

/* Returns how many bytes of the chunk belong to the byte-order mark, giving back what only looked like one. */
static size_t skip_bom(struct sse *s, const char *p, size_t n, enum err *err)
{
    size_t i = 0;
    while (s->bom_seen >= 0 && i < n) {
        if (p[i] == bom[s->bom_seen]) {
            i++;
            if (++s->bom_seen == (int)sizeof bom - 1)
                s->bom_seen = -1;
        } else {
            size_t false_start = (size_t)s->bom_seen;
            s->bom_seen = -1;
            if (false_start > 0)
                *err = buf_append(&s->line, bom, false_start);
        }
    }
    return i;
}

static enum err feed_lines(struct sse *s, const char *p, const char *end)
{
    while (p < end) {
        if (s->after_cr) {
            s->after_cr = false;
            if (*p == '\n') {
                p++;
                continue;
            }
        }
        const char *q = p;
        while (q < end && *q != '\n' && *q != '\r')
            q++;
        size_t n = (size_t)(q - p);
        enum err err = q < end ? end_line(s, p, n) : keep_part(s, p, n);
        if (err != ERR_OK)
            return err;
        if (q < end)
            s->after_cr = *q++ == '\r';
        p = q;
    }
    return ERR_OK;
}

enum err sse_feed(struct sse *s, const char *p, size_t n)
{
    if (s->failed)
        return ERR_LIMIT;
    enum err err = ERR_OK;
    size_t skipped = skip_bom(s, p, n, &err);
    if (err == ERR_OK)
        err = feed_lines(s, p + skipped, p + n);
    s->failed = err != ERR_OK;
    return err;
}
