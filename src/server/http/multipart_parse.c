/* The parser of multipart bodies, fed from memory. A delimiter is "CRLF--boundary"; a CR occurs in it only at its
 * start, so that a partial match which fails is content as a whole and the search goes on with the very byte that
 * failed: no backing up, whatever the split of the bytes. The CRLF before the first delimiter, and before one that
 * follows a part's head directly, is not there in the body: `virtual` counts such bytes of a match, which are never
 * content. */
#include "base/mem.h"
#include "server/http/multipart.h"
#include <ctype.h>
#include <string.h>

#define PART_HEAD_MAX (16 * 1024)
#define BOUNDARY_MAX  70

enum mp_state { PREAMBLE, DELIMITED, CLOSING, PADDING, LINE_END, HEAD, CONTENT, EPILOGUE, BROKEN };
struct mp_parser {
    enum mp_state state;
    char delim[4 + BOUNDARY_MAX + 1];
    size_t delim_len, matched, virtual;
    struct buf head;
    const char *problem;
    enum err code;
};

struct mp_parser *mp_new(struct sv boundary)
{
    if (boundary.n < 1 || boundary.n > BOUNDARY_MAX || memchr(boundary.p, '\r', boundary.n))
        return NULL;
    struct mp_parser *p = mem_zalloc(sizeof *p);
    memcpy(p->delim, "\r\n--", 4);
    memcpy(p->delim + 4, boundary.p, boundary.n);
    p->delim_len = 4 + boundary.n;
    p->matched = p->virtual = 2;
    buf_init(&p->head, PART_HEAD_MAX);
    return p;
}

void mp_free(struct mp_parser **p)
{
    if (!*p)
        return;
    buf_done(&(*p)->head);
    MEM_FREE(*p);
}

struct sv mp_head(const struct mp_parser *p)
{
    return (struct sv){buf_cstr(&p->head), p->head.len};
}

const char *mp_problem(const struct mp_parser *p)
{
    return p->problem ? p->problem : "";
}

enum err mp_problem_code(const struct mp_parser *p)
{
    return p->code;
}

size_t mp_tail_len(const struct mp_parser *p)
{
    return p->delim_len + 4;
}

static enum mp_event fail(struct mp_parser *p, enum err code, const char *why)
{
    p->state = BROKEN;
    p->code = code;
    p->problem = why;
    return MP_ERROR;
}

static char take(struct sv *in)
{
    char c = *in->p;
    in->p++;
    in->n--;
    return c;
}

/* Content up to the next delimiter. MP_DATA with what can be told to be content; MP_MORE when *in is used up;
 * MP_PART_END with the delimiter taken. */
static enum mp_event scan(struct mp_parser *p, struct sv *in, struct sv *data)
{
    while (in->n > 0) {
        if (p->matched == 0) {
            const char *cr = memchr(in->p, '\r', in->n);
            size_t plain = cr ? (size_t)(cr - in->p) : in->n;
            if (plain > 0) {
                *data = (struct sv){in->p, plain};
                *in = (struct sv){in->p + plain, in->n - plain};
                return MP_DATA;
            }
        }
        if (*in->p == p->delim[p->matched]) {
            take(in);
            if (++p->matched < p->delim_len)
                continue;
            p->matched = p->virtual = 0;
            return MP_PART_END;
        }
        *data = (struct sv){p->delim + p->virtual, p->matched - p->virtual};
        p->matched = p->virtual = 0;
        if (data->n > 0)
            return MP_DATA;
    }
    return MP_MORE;
}

/* The bytes behind a delimiter: "--" ends the body; padding and CRLF begin a part. */
static enum mp_event after_delimiter(struct mp_parser *p, char c)
{
    static const char bad[] = "a boundary is followed by something else than a line end";
    if (p->state == LINE_END) {
        if (c != '\n')
            return fail(p, ERR_PARSE, bad);
        p->state = HEAD;
        buf_reset(&p->head);
    } else if (p->state == CLOSING) {
        if (c != '-')
            return fail(p, ERR_PARSE, bad);
        p->state = EPILOGUE;
        return MP_END;
    } else if (c == '-' && p->state == DELIMITED) {
        p->state = CLOSING;
    } else if (c == ' ' || c == '\t') {
        p->state = PADDING;
    } else if (c == '\r') {
        p->state = LINE_END;
    } else {
        return fail(p, ERR_PARSE, bad);
    }
    return MP_MORE;
}

static bool head_complete(const struct buf *h)
{
    return (h->len == 2 && memcmp(h->data, "\r\n", 2) == 0) ||
           (h->len >= 4 && memcmp(h->data + h->len - 4, "\r\n\r\n", 4) == 0);
}

static enum mp_event take_head(struct mp_parser *p, struct sv *in)
{
    while (in->n > 0) {
        char c = take(in);
        if (c == '\0')
            return fail(p, ERR_PARSE, "a part's head holds a NUL byte");
        if (buf_append_char(&p->head, c) != ERR_OK)
            return fail(p, ERR_LIMIT, "a part's head is longer than 16 KiB");
        if (c == '\n' && head_complete(&p->head)) {
            p->state = CONTENT;
            p->matched = p->virtual = 2;
            return MP_PART;
        }
    }
    return MP_MORE;
}

enum mp_event mp_feed(struct mp_parser *p, struct sv *in, struct sv *data)
{
    while (in->n > 0 && p->state != BROKEN) {
        enum mp_event ev = MP_MORE;
        switch (p->state) {
        case PREAMBLE:
            if (scan(p, in, data) == MP_PART_END)
                p->state = DELIMITED;
            break;
        case CONTENT:
            ev = scan(p, in, data);
            if (ev == MP_PART_END)
                p->state = DELIMITED;
            break;
        case HEAD:
            ev = take_head(p, in);
            break;
        case EPILOGUE:
            in->p += in->n;
            in->n = 0;
            break;
        case BROKEN:
            break;
        default:
            ev = after_delimiter(p, take(in));
        }
        if (ev != MP_MORE)
            return ev;
    }
    return p->state == BROKEN ? MP_ERROR : MP_MORE;
}

/* Takes one ';'-separated parameter off *rest: name="value" or name=value. A quoted value ends at the next quote;
 * nothing escapes it. False at the end, or with *bad set. */
static bool parameter(struct sv *rest, struct sv *name, struct sv *value, bool *bad)
{
    *rest = sv_trim(*rest);
    if (rest->n == 0)
        return false;
    *bad = true;
    if (take(rest) != ';')
        return false;
    *rest = sv_trim(*rest);
    const char *eq = memchr(rest->p, '=', rest->n);
    if (rest->n == 0) {
        *bad = false;
        return false;
    }
    if (!eq)
        return false;
    *name = sv_trim((struct sv){rest->p, (size_t)(eq - rest->p)});
    *rest = (struct sv){eq + 1, rest->n - (size_t)(eq + 1 - rest->p)};
    if (rest->n > 0 && *rest->p == '"') {
        take(rest);
        const char *end = memchr(rest->p, '"', rest->n);
        if (!end)
            return false;
        *value = (struct sv){rest->p, (size_t)(end - rest->p)};
        *rest = (struct sv){end + 1, rest->n - value->n - 1};
    } else {
        const char *end = memchr(rest->p, ';', rest->n);
        *value = (struct sv){rest->p, end ? (size_t)(end - rest->p) : rest->n};
        *rest = (struct sv){rest->p + value->n, rest->n - value->n};
        *value = sv_trim(*value);
    }
    *bad = false;
    return true;
}

/* %22, %0D and %0A, and nothing else: multipart.h says why. */
static struct sv decode_name(struct arena *mem, struct sv s)
{
    char *out = arena_alloc(mem, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%' && i + 2 < s.n) {
            char a = s.p[i + 1], b = (char)toupper((unsigned char)s.p[i + 2]);
            char plain = a == '2' && b == '2' ? '"' : a == '0' && b == 'D' ? '\r' : a == '0' && b == 'A' ? '\n' : '\0';
            if (plain) {
                c = plain;
                i += 2;
            }
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return (struct sv){out, n};
}

static struct sv last_segment(struct sv s)
{
    const char *slash = memrchr(s.p, '/', s.n);
    return slash ? (struct sv){slash + 1, (size_t)(s.p + s.n - slash - 1)} : s;
}

/* Cuts "type" off "type; a=b; c=d". */
static struct sv leading_token(struct sv *rest)
{
    const char *semi = memchr(rest->p, ';', rest->n);
    size_t n = semi ? (size_t)(semi - rest->p) : rest->n;
    struct sv token = {rest->p, n};
    *rest = (struct sv){rest->p + n, rest->n - n};
    return sv_trim(token);
}

static bool disposition_parse(struct arena *mem, struct sv value, struct multipart_part *out)
{
    struct sv name, param;
    bool bad = false, named = false;
    if (!sv_ieq(leading_token(&value), SV("form-data")))
        return false;
    while (parameter(&value, &name, &param, &bad)) {
        if (sv_ieq(name, SV("name"))) {
            out->name = decode_name(mem, param);
            named = true;
        } else if (sv_ieq(name, SV("filename"))) {
            out->filename = last_segment(decode_name(mem, param));
            out->has_filename = true;
        }
    }
    return named && !bad;
}

bool mp_part_parse(struct arena *mem, struct sv head, struct multipart_part *out)
{
    bool found = false;
    *out = (struct multipart_part){SV(""), SV(""), SV(""), false};
    while (head.n > 0) {
        const char *end = memmem(head.p, head.n, "\r\n", 2);
        size_t n = end ? (size_t)(end - head.p) : head.n;
        struct sv line = {head.p, n}, name;
        head = (struct sv){head.p + n + (end ? 2 : 0), head.n - n - (end ? 2 : 0)};
        if (!memchr(line.p, ':', line.n) || !sv_split(&line, ':', &name))
            continue;
        name = sv_trim(name);
        line = sv_trim(line);
        if (sv_ieq(name, SV("content-disposition")) && !found) {
            found = true;
            if (!disposition_parse(mem, line, out))
                return false;
        } else if (sv_ieq(name, SV("content-type"))) {
            out->type = (struct sv){arena_strndup(mem, line.p, line.n), line.n};
        }
    }
    return found;
}

bool mp_boundary(struct sv content_type, struct sv *out)
{
    struct sv name, value;
    bool bad = false;
    if (!content_type.p || !sv_ieq(leading_token(&content_type), SV("multipart/form-data")))
        return false;
    while (parameter(&content_type, &name, &value, &bad)) {
        if (sv_ieq(name, SV("boundary"))) {
            *out = value;
            return value.n >= 1 && value.n <= BOUNDARY_MAX;
        }
    }
    return false;
}
