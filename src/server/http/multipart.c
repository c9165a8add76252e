/* The parser on top of a request's body: one buffer, which the parser's pieces borrow from until they are copied out.
 */
#include "server/http/multipart.h"
#include "base/mem.h"
#include <string.h>

#define PIECE_BYTES  (64 * 1024)
#define PARTS_MAX    20000
#define EPILOGUE_MAX (64 * 1024)

struct multipart {
    struct request *r;
    struct mp_parser *parser;
    char *piece;
    struct sv in, data; /* of piece: not parsed yet; content not handed out yet */
    bool in_part, ended;
    unsigned parts;
};

static void free_multipart(void *arg)
{
    struct multipart *m = arg;
    mp_free(&m->parser);
    mem_free(m->piece);
}

enum err multipart_open(struct request *r, struct multipart **out, struct errinfo *ei)
{
    struct sv boundary;
    if (!mp_boundary(req_header(r, "Content-Type"), &boundary))
        return err_set(ei, ERR_PARSE, "expected multipart/form-data with a boundary of 1 to 70 characters");
    struct multipart *m = arena_alloc(r->mem, sizeof *m);
    m->r = r;
    m->parser = mp_new(boundary);
    m->piece = mem_alloc(PIECE_BYTES);
    req_defer(r, free_multipart, m);
    *out = m;
    return ERR_OK;
}

static enum err body_error(enum err err, struct errinfo *ei)
{
    if (err == ERR_TIMEOUT)
        return err_set(ei, err, "the body did not come in time");
    if (err == ERR_CLOSED)
        return err_set(ei, err, "the client left before the body was complete");
    return err_set(ei, err, "the body's chunked coding is malformed");
}

/* Runs the parser to its next event; a body that ends before is an error. */
static MAY_YIELD enum err step(struct multipart *m, enum mp_event *ev, struct errinfo *ei)
{
    for (;;) {
        *ev = mp_feed(m->parser, &m->in, &m->data);
        if (*ev == MP_ERROR)
            return err_set(ei, mp_problem_code(m->parser), "%s", mp_problem(m->parser));
        if (*ev != MP_MORE)
            return ERR_OK;
        size_t got;
        enum err err = req_read(m->r, m->piece, PIECE_BYTES, &got);
        if (err)
            return body_error(err, ei);
        m->in = (struct sv){m->piece, got};
        if (got == 0)
            return err_set(ei, ERR_PARSE, "Unexpected end of form");
    }
}

/* What follows the closing boundary has no meaning, but the next request stands behind it. */
static MAY_YIELD enum err drop_epilogue(struct multipart *m, struct errinfo *ei)
{
    size_t got = 1, total = 0;
    m->ended = true;
    while (got > 0 && total < EPILOGUE_MAX) {
        enum err err = req_read(m->r, m->piece, PIECE_BYTES, &got);
        if (err)
            return body_error(err, ei);
        total += got;
    }
    return ERR_OK;
}

enum err multipart_next(struct multipart *m, struct multipart_part *out, bool *end, struct errinfo *ei)
{
    *end = m->ended;
    m->in_part = false;
    while (!m->ended) {
        enum mp_event ev;
        enum err err = step(m, &ev, ei);
        if (err)
            return err;
        if (ev == MP_END) {
            *end = true;
            return drop_epilogue(m, ei);
        }
        if (ev != MP_PART)
            continue;
        if (++m->parts > PARTS_MAX)
            return err_set(ei, ERR_LIMIT, "more than %d parts in one form", PARTS_MAX);
        if (!mp_part_parse(m->r->mem, mp_head(m->parser), out))
            return err_set(ei, ERR_PARSE, "a part has no usable Content-Disposition: form-data with a name");
        m->in_part = true;
        m->data = SV(""); /* what was left of the part before */
        return ERR_OK;
    }
    return ERR_OK;
}

enum err multipart_read(struct multipart *m, char *dst, size_t cap, size_t *got, struct errinfo *ei)
{
    *got = 0;
    while (m->in_part && m->data.n == 0) {
        enum mp_event ev;
        enum err err = step(m, &ev, ei);
        if (err)
            return err;
        m->in_part = ev == MP_DATA;
    }
    *got = m->data.n < cap ? m->data.n : cap;
    if (*got)
        memcpy(dst, m->data.p, *got);
    m->data = (struct sv){m->data.p + *got, m->data.n - *got};
    return ERR_OK;
}

enum err multipart_text(struct multipart *m, size_t max, struct sv *out, struct errinfo *ei)
{
    struct buf text = BUF_INIT(max);
    char piece[4096];
    size_t got = 0;
    enum err err;
    do {
        err = multipart_read(m, piece, sizeof piece, &got, ei);
        if (!err && buf_append(&text, piece, got) != ERR_OK)
            err = err_set(ei, ERR_LIMIT, "a field is longer than %zu bytes", max);
    } while (!err && got > 0);
    if (!err && memchr(buf_cstr(&text), '\0', text.len))
        err = err_set(ei, ERR_PARSE, "a field holds a NUL byte");
    if (!err)
        *out = (struct sv){arena_strndup(m->r->mem, buf_cstr(&text), text.len), text.len};
    buf_done(&text);
    return err;
}

int64_t multipart_bytes_left(const struct multipart *m)
{
    int64_t left = req_bytes_left(m->r);
    if (left < 0)
        return -1;
    left += (int64_t)(m->in.n + m->data.n) - (int64_t)mp_tail_len(m->parser);
    return left > 0 ? left : 0;
}
