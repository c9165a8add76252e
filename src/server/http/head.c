/* http-parser is paused when the head is complete and never resumed: it takes a chunk's end on trust, so that bodies
 * are ours (body.c, chunked.c). What it lets pass in a head although RFC 9112 bars it is looked for once the head is
 * whole. Offsets instead of pointers are kept while the text may still move. */
#include "server/http/head.h"
#include "base/mem.h"
#include "server/http/chunked.h"
#include <ctype.h>
#include <http_parser.h>
#include <string.h>

struct span {
    uint32_t at, n;
};

struct head {
    http_parser parser;
    struct buf text;
    struct span target, name[HEAD_HEADERS_MAX], value[HEAD_HEADERS_MAX];
    size_t n;
    bool in_value, complete;
    const char *problem;
    int status;
    struct head_info info;
    struct http_header headers[HEAD_HEADERS_MAX];
    struct chunked body;
};

static const char folded[] = "a header field goes on over several lines";

static int refuse(struct head *h, int status, const char *why)
{
    if (!h->problem) {
        h->problem = why;
        h->status = status;
    }
    return 1;
}

static struct head *of(http_parser *p)
{
    return p->data;
}

/* Grows the span by what the parser found next to it. A gap means a folded header line. */
static bool span_grow(struct head *h, struct span *s, const char *p, size_t n)
{
    uint32_t at = (uint32_t)(p - h->text.data);
    if (s->n == 0)
        s->at = at;
    else if (s->at + s->n != at)
        return false;
    s->n += (uint32_t)n;
    return true;
}

static int on_url(http_parser *p, const char *at, size_t n)
{
    span_grow(of(p), &of(p)->target, at, n);
    return 0;
}

static int on_field(http_parser *p, const char *at, size_t n)
{
    struct head *h = of(p);
    if (h->n == 0 || h->in_value) {
        if (h->n == HEAD_HEADERS_MAX)
            return refuse(h, 431, "too many header fields");
        h->name[h->n] = h->value[h->n] = (struct span){0, 0};
        h->n++;
        h->in_value = false;
    }
    span_grow(h, &h->name[h->n - 1], at, n);
    return 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
    struct head *h = of(p);
    h->in_value = true;
    if (n > 0 && !span_grow(h, &h->value[h->n - 1], at, n))
        return refuse(h, 400, folded);
    return 0;
}

static int on_head_complete(http_parser *p)
{
    of(p)->complete = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_head_complete,
};

struct head *head_new(void)
{
    struct head *h = mem_zalloc(sizeof *h);
    buf_init(&h->text, HEAD_BYTES_MAX);
    http_parser_set_max_header_size(HEAD_BYTES_MAX);
    head_reset(h);
    return h;
}

void head_free(struct head **h)
{
    if (!*h)
        return;
    buf_done(&(*h)->text);
    MEM_FREE(*h);
}

void head_reset(struct head *h)
{
    http_parser_init(&h->parser, HTTP_REQUEST);
    h->parser.data = h;
    buf_reset(&h->text);
    h->target = (struct span){0, 0};
    h->n = 0;
    h->in_value = h->complete = false;
    h->body = (struct chunked){0};
    h->problem = NULL;
    h->status = 0;
}

bool head_started(const struct head *h)
{
    for (size_t i = 0; i < h->text.len; i++)
        if (h->text.data[i] != '\r' && h->text.data[i] != '\n')
            return true;
    return false;
}

const struct head_info *head_info(const struct head *h)
{
    return &h->info;
}

int head_problem_status(const struct head *h)
{
    return h->status;
}

const char *head_problem(const struct head *h)
{
    return h->problem ? h->problem : "";
}

static struct sv span_sv(const struct head *h, struct span s)
{
    return s.n ? (struct sv){h->text.data + s.at, s.n} : (struct sv){"", 0};
}

/* The non-strict build of http-parser lets a space pass in a name: "Content-Length : 5" means different things to
 * different servers, so it is refused (RFC 9112 5.1). */
static bool is_token(struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && !(s.p[i] && strchr("!#$%&'*+-.^_`|~", s.p[i])))
            return false;
    return s.n > 0;
}

static int set_length(struct head *h, struct sv value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < '0' || value.p[i] > '9')
            return refuse(h, 400, "Content-Length is no number");
    if (!sv_to_i64(value, &h->info.content_length))
        return refuse(h, 400, "Content-Length is no number that a body can have");
    return 0;
}

static int set_coding(struct head *h, struct sv value)
{
    if (h->info.chunked || !sv_ieq(value, SV("chunked")))
        return refuse(h, 501, "the only transfer coding known here is chunked");
    if (h->info.http10)
        return refuse(h, 400, "HTTP/1.0 has no transfer codings");
    h->info.chunked = true;
    return 0;
}

static int set_expect(struct head *h, struct sv value)
{
    if (h->info.http10)
        return 0; /* RFC 9110 10.1.1: ignored */
    if (sv_ieq(value, SV("100-continue")))
        h->info.expect_100 = true;
    else
        h->info.expect_other = true;
    return 0;
}

/* RFC 9110 5.5: what else may stand in a value is taken for a line's end by some. */
static bool is_value(struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return true;
}

/* A name or address with a port, or nothing: RFC 9110 7.2, as far as two readers could disagree. */
static bool is_host(struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f || strchr(",/?#@\\<>\"", s.p[i]))
            return false;
    return true;
}

/* "METHOD target HTTP/1.1" with single spaces, and each line ended by CRLF (RFC 9112 2.2, 3). */
static const char *wrong_lines(const struct head *h)
{
    struct sv rest = {h->text.data, h->text.len}, line;
    while (sv_starts(rest, SV("\r\n")))
        rest = (struct sv){rest.p + 2, rest.n - 2};
    for (bool first = true; sv_split(&rest, '\n', &line) && rest.p; first = false) {
        size_t spaces = 0;
        if (!sv_ends(line, SV("\r")))
            return "a line feed without carriage return";
        for (size_t i = 0; i + 1 < line.n && first; i++) {
            spaces += line.p[i] == ' ';
            if ((unsigned char)line.p[i] < ' ' || line.p[i] == 0x7f)
                return "the request line holds a control character";
        }
        if (first && spaces != 2)
            return "the request line is not of three words";
    }
    return NULL;
}

static int read_headers(struct head *h, unsigned *hosts)
{
    static const struct {
        const char *name;
        int (*set)(struct head *h, struct sv value);
    } known[] = {{"content-length", set_length}, {"transfer-encoding", set_coding}, {"expect", set_expect}};

    *hosts = 0;
    for (size_t i = 0; i < h->n; i++) {
        struct http_header *f = &h->headers[i];
        *f = (struct http_header){span_sv(h, h->name[i]), sv_trim(span_sv(h, h->value[i]))};
        const char *name_end = f->name.p + f->name.n;
        if (h->value[i].n && memchr(name_end, '\n', (size_t)(f->value.p - name_end)))
            return refuse(h, 400, folded);
        if (!is_token(f->name))
            return refuse(h, 400, "a header field's name holds characters that don't belong there");
        if (!is_value(span_sv(h, h->value[i])))
            return refuse(h, 400, "a header field holds a control character");
        bool host = sv_ieq(f->name, SV("host"));
        *hosts += host;
        if (host && !is_host(f->value))
            return refuse(h, 400, "the Host header names no host");
        for (size_t k = 0; k < ARRAY_LEN(known); k++)
            if (sv_ieq(f->name, sv_of(known[k].name)) && known[k].set(h, f->value))
                return 1;
    }
    return 0;
}

/* "/a?b" or "http://host/a?b"; a fragment, which no client should send, is dropped. */
static int set_target(struct head *h, struct sv t)
{
    if (t.n > 0 && t.p[0] != '/') {
        const char *slashes = memmem(t.p, t.n, "://", 3);
        if (!slashes) {
            if (sv_eq_cstr(t, "*")) {
                h->info.path = t;
                return 0;
            }
            return refuse(h, 400, "the request names no path");
        }
        const char *host = slashes + 3, *end = t.p + t.n;
        const char *path = memchr(host, '/', (size_t)(end - host));
        t = path ? (struct sv){path, (size_t)(end - path)} : SV("/");
    }
    const char *hash = memchr(t.p, '#', t.n);
    if (hash)
        t.n = (size_t)(hash - t.p);
    const char *mark = memchr(t.p, '?', t.n);
    h->info.path = mark ? (struct sv){t.p, (size_t)(mark - t.p)} : t;
    h->info.query = mark ? (struct sv){mark + 1, (size_t)(t.p + t.n - mark - 1)} : SV("");
    return 0;
}

static int finish(struct head *h)
{
    unsigned hosts;
    h->info = (struct head_info){
        .method = http_method_str((enum http_method)h->parser.method),
        .headers = h->headers,
        .n_headers = h->n,
        .content_length = -1,
        .query = SV(""),
        .http10 = h->parser.http_minor == 0,
        .keep_alive = http_should_keep_alive(&h->parser),
    };
    if (h->parser.http_major != 1 || h->parser.http_minor > 1)
        return refuse(h, 505, "this server speaks HTTP/1.1");
    const char *wrong = wrong_lines(h);
    if (wrong)
        return refuse(h, 400, wrong);
    if (set_target(h, span_sv(h, h->target)) || read_headers(h, &hosts))
        return 1;
    if (hosts > 1 || (hosts == 0 && !h->info.http10))
        return refuse(h, 400, "a request has one Host header");
    if (h->info.chunked && h->info.content_length >= 0)
        return refuse(h, 400, "a body is either chunked or has a Content-Length");
    return 0;
}

static enum head_state bad(struct head *h)
{
    refuse(h, 400, http_errno_description(HTTP_PARSER_ERRNO(&h->parser)));
    return HEAD_BAD;
}

enum head_state head_feed(struct head *h, const char *p, size_t n, size_t *used)
{
    *used = 0;
    if (h->problem)
        return HEAD_BAD;
    if (n == 0)
        return HEAD_MORE;
    size_t from = h->text.len, room = HEAD_BYTES_MAX - from, take = n < room ? n : room;
    if (buf_append(&h->text, p, take) != ERR_OK)
        return bad(h);
    size_t parsed = http_parser_execute(&h->parser, &settings, h->text.data + from, take);
    if (!h->complete) {
        *used = take;
        if (h->problem || HTTP_PARSER_ERRNO(&h->parser) != HPE_OK)
            return bad(h);
        if (h->text.len < HEAD_BYTES_MAX)
            return HEAD_MORE;
        refuse(h, h->n ? 431 : 414, "the request's head is longer than 16 KiB");
        return HEAD_BAD;
    }
    /* Paused on the last LF, which the parser takes only when it is resumed. */
    if (h->text.data[from + parsed] != '\n') {
        refuse(h, 400, "a carriage return without line feed");
        return HEAD_BAD;
    }
    *used = parsed + 1;
    h->text.len = from + parsed + 1;
    h->text.data[h->text.len] = '\0';
    if (finish(h))
        return HEAD_BAD;
    return HEAD_DONE;
}

enum err head_body(struct head *h, const char *p, size_t n, size_t *used, char *dst, size_t *got, bool *end)
{
    return chunked_feed(&h->body, p, n, used, dst, got, end);
}
