/* A request head and, when it says so, a chunked body: any split gives the same verdict, the same fields, the same
 * bytes. */
#include "base/buf.h"
#include "fuzz.h"
#include "server/http/head.h"

struct parsed {
    enum head_state state;
    int status;
    size_t used;
    struct buf log, body;
    enum err body_err;
    bool body_end;
};

static void note(struct parsed *o, const struct head_info *i)
{
    MUST(i->method && i->path.n > 0 && (i->path.p[0] == '/' || sv_eq_cstr(i->path, "*")));
    MUST(i->n_headers <= HEAD_HEADERS_MAX && i->content_length >= -1);
    MUST(!(i->chunked && i->content_length >= 0)); /* two lengths are how requests are smuggled */
    MUST(!buf_appendf(&o->log, "%s " SV_FMT " ? " SV_FMT " %lld %d%d%d%d%d", i->method, SV_ARG(i->path),
                      SV_ARG(i->query), (long long)i->content_length, i->chunked, i->keep_alive, i->http10,
                      i->expect_100, i->expect_other));
    for (size_t k = 0; k < i->n_headers; k++)
        for (size_t at = 0; at < i->headers[k].value.n; at++)
            MUST((unsigned char)i->headers[k].value.p[at] >= ' ' || i->headers[k].value.p[at] == '\t');
    for (size_t k = 0; k < i->n_headers; k++)
        MUST(!buf_appendf(&o->log, "\n" SV_FMT ": " SV_FMT, SV_ARG(i->headers[k].name), SV_ARG(i->headers[k].value)));
}

static size_t piece_of(size_t at, size_t left, size_t step)
{
    size_t piece = step ? 1 + at % step : left;

    return piece < left ? piece : left;
}

static void read_body(struct head *h, const char *p, size_t n, size_t step, struct parsed *o)
{
    char dst[512];

    for (size_t at = 0; at < n && !o->body_end && !o->body_err;) {
        size_t piece = piece_of(at, n - at, step), used = 0, got = 0;
        if (piece > sizeof dst)
            piece = sizeof dst;
        o->body_err = head_body(h, p + at, piece, &used, dst, &got, &o->body_end);
        MUST(used <= piece && got <= piece);
        MUST(!buf_append(&o->body, dst, got));
        if (!used && !o->body_end && !o->body_err)
            break; /* it wants more than it got: nothing may be lost */
        at += used;
    }
}

static struct parsed run(const char *p, size_t n, size_t step)
{
    struct head *h = head_new();
    struct parsed o = {.state = HEAD_MORE, .log = BUF_INIT(1 << 20), .body = BUF_INIT(64 << 20)};

    while (o.used < n && o.state == HEAD_MORE) {
        size_t piece = piece_of(o.used, n - o.used, step), used = 0;
        o.state = head_feed(h, p + o.used, piece, &used);
        MUST(used <= piece);
        MUST(o.state != HEAD_MORE || used == piece);
        o.used += used;
    }
    if (o.state == HEAD_BAD) {
        o.status = head_problem_status(h);
        MUST(o.status >= 400 && o.status < 600 && head_problem(h)[0]);
    }
    if (o.state == HEAD_DONE) {
        note(&o, head_info(h));
        if (head_info(h)->chunked)
            read_body(h, p + o.used, n - o.used, step, &o);
    }
    head_free(&h);
    return o;
}

static bool same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 5, 64};
    struct parsed whole = run((const char *)data, size, 0);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct parsed split = run((const char *)data, size, steps[i]);
        /* Which of several faults is told may depend on the split, that there is one may not. */
        MUST(split.state == whole.state);
        if (whole.state == HEAD_DONE) {
            MUST(split.used == whole.used && same(&split.log, &whole.log));
            MUST(split.body_err == whole.body_err && split.body_end == whole.body_end);
            MUST(whole.body_err || same(&split.body, &whole.body));
        }
        buf_done(&split.log);
        buf_done(&split.body);
    }
    buf_done(&whole.log);
    buf_done(&whole.body);
    return 0;
}
