/* multipart/form-data: the input's first line is the Content-Type, the rest the body. Any split of the body gives the
 * same parts and the same bytes. */
#include "base/arena.h"
#include "base/buf.h"
#include "fuzz.h"
#include "server/http/multipart.h"

struct parsed {
    struct buf log; /* heads and contents, one after the other */
    enum err problem;
    bool ended;
};

static void note_part(struct mp_parser *p, struct parsed *o)
{
    struct arena *mem = arena_new(1024);
    struct sv head = mp_head(p);
    struct multipart_part part;

    MUST(!buf_append_str(&o->log, "\nPART ") && !buf_append(&o->log, head.p, head.n));
    if (mp_part_parse(mem, head, &part)) {
        MUST(part.name.p[part.name.n] == '\0');
        MUST(!part.has_filename ||
             (part.filename.p[part.filename.n] == '\0' && !memchr(part.filename.p, '/', part.filename.n)));
    }
    arena_free(&mem);
}

/* False once nothing more can come. */
static bool feed(struct mp_parser *p, struct sv in, struct parsed *o)
{
    for (;;) {
        struct sv data, before = in;
        enum mp_event ev = mp_feed(p, &in, &data);
        MUST(in.n <= before.n);
        switch (ev) {
        case MP_MORE:
            MUST(in.n == 0);
            return true;
        case MP_PART:
            note_part(p, o);
            break;
        case MP_DATA:
            MUST(data.n > 0);
            MUST(!buf_append(&o->log, data.p, data.n));
            break;
        case MP_PART_END:
            MUST(!buf_append_str(&o->log, "\nEND"));
            break;
        case MP_END:
            o->ended = true;
            return false;
        case MP_ERROR:
            MUST(mp_problem(p));
            o->problem = mp_problem_code(p);
            MUST(o->problem);
            return false;
        }
    }
}

static struct parsed run(struct sv boundary, struct sv body, size_t step)
{
    struct mp_parser *p = mp_new(boundary);
    struct parsed o = {.log = BUF_INIT(64 << 20)};
    bool more = p != NULL; /* a boundary that no header could carry */

    for (size_t at = 0; at < body.n && more;) {
        size_t piece = step ? 1 + at % step : body.n;
        if (piece > body.n - at)
            piece = body.n - at;
        more = feed(p, (struct sv){body.p + at, piece}, &o);
        at += piece;
    }
    mp_free(&p);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 5, 64};
    struct sv rest = {(const char *)data, size}, type, boundary;

    if (!size || !sv_split(&rest, '\n', &type) || !mp_boundary(type, &boundary) || !rest.n)
        return 0;
    MUST(boundary.n >= 1 && boundary.n <= 70);
    struct parsed whole = run(boundary, rest, 0);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct parsed split = run(boundary, rest, steps[i]);
        MUST(split.ended == whole.ended && split.problem == whole.problem);
        if (whole.ended)
            MUST(split.log.len == whole.log.len &&
                 (!whole.log.len || !memcmp(split.log.data, whole.log.data, whole.log.len)));
        buf_done(&split.log);
    }
    buf_done(&whole.log);
    return 0;
}
