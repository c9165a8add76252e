/* A server that refuses an upload may answer and close with unread data; its reset then fails our next send, while the
 * answer still waits in the socket. libcurl gives up at the failed send (1 to 60 of 60 answers lost: cases.md U01), so
 * the bytes are read here, and parsed leniently: what is missing at the end cannot come any more. */
#include "net/httpc_salvage.h"

#include <string.h>

/* The head of one answer, with its blank line; false when it is not all there. */
static bool split_head(struct sv *rest, struct sv *head)
{
    const char *end = memmem(rest->p, rest->n, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    *head = (struct sv){rest->p, (size_t)(end + 4 - rest->p)};
    rest->p += head->n;
    rest->n -= head->n;
    return true;
}

static int status_of(struct sv head)
{
    struct sv line, version, code;
    int64_t status = 0;
    if (!sv_starts(head, SV("HTTP/1.")) || !sv_split(&head, '\r', &line) || !sv_split(&line, ' ', &version) ||
        !sv_split(&line, ' ', &code) || !sv_to_i64(code, &status) || status < 100 || status > 999)
        return 0;
    return (int)status;
}

static bool chunk_size(struct sv line, size_t *size)
{
    *size = 0;
    size_t digits = 0;
    for (; digits < line.n && digits < 8; digits++) {
        static const char hex[] = "0123456789abcdef";
        const char *d = memchr(hex, line.p[digits] | 0x20, 16);
        if (d == NULL)
            break;
        *size = *size * 16 + (size_t)(d - hex);
    }
    return digits > 0;
}

static enum err append_chunks(struct buf *body, struct sv rest)
{
    struct sv line;
    size_t size;
    enum err err = ERR_OK;
    while (err == ERR_OK && sv_split(&rest, '\n', &line) && rest.p && chunk_size(line, &size) && size > 0) {
        size_t have = size < rest.n ? size : rest.n;
        err = buf_append(body, rest.p, have);
        size_t skip = have + 2 < rest.n ? have + 2 : rest.n;
        rest = (struct sv){rest.p + skip, rest.n - skip};
    }
    return err;
}

static enum err append_body(struct http_resp *r, struct sv rest)
{
    uint64_t length;
    if (sv_ieq(http_resp_header(r, "Transfer-Encoding"), SV("chunked")))
        return append_chunks(&r->body, rest);
    if (sv_to_u64(http_resp_header(r, "Content-Length"), &length) && length < rest.n)
        rest.n = (size_t)length;
    return buf_append(&r->body, rest.p, rest.n);
}

bool httpc_salvage(struct sv raw, struct http_resp *resp)
{
    struct sv head;
    int status;
    do {
        if (!split_head(&raw, &head) || (status = status_of(head)) == 0)
            return false;
    } while (status < 200);
    buf_reset(&resp->headers);
    buf_reset(&resp->body);
    if (buf_append(&resp->headers, head.p, head.n) != ERR_OK || append_body(resp, raw) != ERR_OK)
        return false;
    resp->status = status;
    if (resp->first_byte.us == 0)
        resp->first_byte = mono_now();
    return true;
}
