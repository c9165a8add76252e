/* Asking for a refusal and judging what came. Bodies are made while they are sent: a body of any size costs no memory,
 * and one that a server takes instead of refusing it is given up after a bound. */
#include "base/mem.h"
#include "drive/wire.h"
#include "net/http_date.h"
#include "sim/refusals/stage.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_US (30 * US_PER_S)

int64_t refusal_bytes(const struct stage *s, enum refusal_size size)
{
    switch (size) {
    case SIZE_NONE:
        return 0;
    case SIZE_SMALL:
        return 1000;
    case SIZE_ROOM_AND_ONE:
        return REFUSAL_ROOM + 1;
    case SIZE_OVER:
        return REFUSAL_ROOM + (INT64_C(8) << 20);
    case SIZE_300_MIB:
        return INT64_C(300) << 20;
    case SIZE_OVER_MAX:
        return s->conf.max_upload_bytes + 1;
    case SIZE_FAR_OVER_MAX: /* by more than a form's framing may be */
        return s->conf.max_upload_bytes + (INT64_C(64) << 20);
    }
    return 0;
}

/* ---- words of a row that stand for things ---- */

static const char *const words[THING_COUNT] = {
#define X(sym, word) [THING_##sym] = word,
    REFUSAL_THINGS(X)
#undef X
};

static bool thing_named(struct sv word, enum refusal_thing *out)
{
    for (int i = 0; i < THING_COUNT; i++) {
        if (sv_eq_cstr(word, words[i])) {
            *out = (enum refusal_thing)i;
            return true;
        }
    }
    return false;
}

/* The row's name as a JSON string without its quotes. */
static enum err add_name(struct buf *out, const char *name)
{
    struct buf quoted = BUF_INIT(4096);
    struct jsonw w;
    jsonw_init(&w, &quoted);
    jsonw_array(&w, NULL);
    jsonw_str(&w, NULL, name);
    jsonw_end_array(&w);
    enum err e = w.err ? w.err : buf_append(out, quoted.data + 2, quoted.len - 4);
    buf_done(&quoted);
    return e;
}

static bool add_thing(const struct stage *s, const struct refusal *f, struct sv word, struct buf *out, bool *known,
                      const char **missing)
{
    enum refusal_thing t;
    *known = thing_named(word, &t);
    if (!*known)
        return true;
    if (t == THING_NAME)
        return f->name && add_name(out, f->name) == ERR_OK;
    *missing = words[t];
    return s->things[t][0] && buf_append_str(out, s->things[t]) == ERR_OK;
}

bool refusal_fill(const struct stage *s, const struct refusal *f, const char *pattern, struct buf *out,
                  const char **missing)
{
    enum err e = ERR_OK;
    for (const char *p = pattern; *p && e == ERR_OK;) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        bool known = false;
        if (end && !add_thing(s, f, (struct sv){p + 1, (size_t)(end - p - 1)}, out, &known, missing))
            return false;
        if (known)
            p = end + 1;
        else
            e = buf_append_char(out, *p++);
    }
    return e == ERR_OK;
}

/* ---- bodies ---- */

struct body {
    int64_t size, pulled;
    bool too_much; /* the server took more than any refusal needs */
};

static int64_t body_read(void *arg, uint64_t offset, char *dst, size_t cap)
{
    struct body *b = arg;
    int64_t left = b->size - (int64_t)offset;
    size_t n = left < (int64_t)cap ? (size_t)left : cap;
    if ((int64_t)offset >= REFUSAL_TAKEN_MAX) {
        b->too_much = true;
        return -1;
    }
    const struct content c = {.key = 1, .revision = 1, .size = (uint64_t)b->size, .ext = "bin"};
    content_fill(&c, offset, dst, n);
    b->pulled = (int64_t)(offset + n);
    return (int64_t)n;
}

/* ---- one request ---- */

void answer_read(struct answer *a, struct sv body)
{
    if (!wire_error(body, a->reason, sizeof(a->reason), a->code))
        a->reason[0] = a->code[0] = '\0';
}

void refusal_request(struct httpc_peer *peer, const struct http_req *req, struct answer *out)
{
    struct http_resp resp;
    struct errinfo ei = {0};
    *out = (struct answer){.retry_after_us = -1};
    out->err = httpc_perform(peer, req, &resp, &ei);
    out->us = mono_diff(resp.done, resp.sent);
    out->status = resp.status;
    if (out->err != ERR_OK)
        str_format(out->reason, sizeof(out->reason), "%s", err_message(&ei));
    else
        answer_read(out, (struct sv){buf_cstr(&resp.body), resp.body.len});
    out->retry_after_us = http_retry_after_us(&resp, wall_now());
    if (out->err == ERR_OK && req->expect_100 && resp.bytes_up > 0 && out->us < US_PER_S / 2)
        str_format(out->besides, sizeof(out->besides), "the body was asked for nevertheless");
    http_resp_done(&resp);
}

bool refusal_things_there(const struct stage *s, const struct refusal *f, char *why, size_t n)
{
    const char *const patterns[] = {f->path, f->body, f->header}, *missing = "";
    bool there = true;
    for (size_t i = 0; i < ARRAY_LEN(patterns) && there; i++) {
        struct buf text = BUF_INIT(64 << 10);
        there = !patterns[i] || refusal_fill(s, f, patterns[i], &text, &missing);
        buf_done(&text);
    }
    if (!there)
        str_format(why, n, "the server gave no {%s} to ask about", missing);
    return there;
}

static bool fill(struct stage *s, const struct refusal *f, const char *pattern, struct buf *out, struct answer *a)
{
    const char *missing = "";
    if (!pattern || refusal_fill(s, f, pattern, out, &missing))
        return true;
    *a = (struct answer){.err = ERR_USAGE, .retry_after_us = -1};
    str_format(a->reason, sizeof(a->reason), "there is no {%s} to ask about", missing);
    return false;
}

void refusal_ask(struct stage *s, const struct refusal *f, enum refusal_who who, struct answer *out)
{
    struct buf path = BUF_INIT(4096), body = BUF_INIT(64 << 10), header = BUF_INIT(1024);
    const char *why;
    struct httpc_peer *peer = stage_peer(s, who, &why);
    struct body file = {.size = refusal_bytes(s, f->size)};
    if (!peer) {
        *out = (struct answer){.err = ERR_ENV, .retry_after_us = -1};
        str_format(out->reason, sizeof(out->reason), "%s", why);
        return;
    }
    if (!fill(s, f, f->path, &path, out) || !fill(s, f, f->body, &body, out) || !fill(s, f, f->header, &header, out))
        goto out;
    const char *const headers[] = {buf_cstr(&header), NULL};
    const struct http_part parts[] = {
        {.name = "parentId", .value = {buf_cstr(&body), body.len}},
        {.name = "file",
         .filename = f->name ? f->name : "refused.bin",
         .type = "application/octet-stream",
         .read = body_read,
         .arg = &file,
         .size = f->flags & ROW_CHUNKED ? -1 : file.size},
    };
    bool form = f->size != SIZE_NONE, parent = body.len > 0;
    const struct http_req req = {
        .method = f->method,
        .path = buf_cstr(&path),
        .headers = f->header ? headers : NULL,
        .body = form ? (struct sv){"", 0} : (struct sv){buf_cstr(&body), body.len},
        .parts = form ? parts + !parent : NULL,
        .n_parts = form ? 1 + (size_t)parent : 0,
        .timeout_us = TIMEOUT_US,
        .expect_100 = f->flags & ROW_EXPECT,
    };
    refusal_request(peer, &req, out);
    if (file.too_much) {
        out->err = ERR_WRONG;
        str_format(out->reason, sizeof(out->reason), "not refused: the server took %lld MiB of it",
                   (long long)(file.pulled >> 20));
    }
out:
    buf_done(&path);
    buf_done(&body);
    buf_done(&header);
}

/* ---- the verdict on one answer ---- */

const char *refusal_problem(const struct refusal *f, const struct answer *a, int64_t within_us, char *dst, size_t n)
{
    char took[32], most[32];
    if (a->err != ERR_OK)
        str_format(dst, n, "no answer: %s", a->reason);
    else if (a->status / 100 == 2 && f->status / 100 != 2)
        str_format(dst, n, "not refused, the server did it: %d", a->status);
    else if (a->status != f->status && (!f->or_status || a->status != f->or_status))
        str_format(dst, n, "%d instead of %d%s%s", a->status, f->status, a->reason[0] ? ": " : "", a->reason);
    else if (!a->reason[0])
        str_format(dst, n, "%d without a reason", a->status);
    else if (f->code && strcmp(f->code, a->code) != 0)
        str_format(dst, n, "%d with the code \"%s\" instead of %s", a->status, a->code, f->code);
    else if ((f->flags & ROW_RETRY) && a->retry_after_us < 0)
        str_format(dst, n, "%d without Retry-After", a->status);
    else if (a->besides[0])
        str_format(dst, n, "%d, but %s", a->status, a->besides);
    else if (a->us > within_us)
        str_format(dst, n, "after %s, not within %s", str_duration(took, sizeof(took), a->us),
                   str_duration(most, sizeof(most), within_us));
    else
        return NULL;
    return dst;
}
