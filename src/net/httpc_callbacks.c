/* What libcurl calls while a request runs. The body is pulled by callbacks, so that it can be cut as soon as a refusal
 * arrives: libcurl alone would send on when the refusal also closes the connection, and lose the answer to the send
 * error. */
#include "net/httpc_xfer.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

enum { RAW_MAX = 16 << 20 };

/* ---- callbacks: the answer ---- */

static size_t fail(struct xfer *x, enum err err, const char *why)
{
    x->err = err_set(x->ei, err, "%s", why);
    return 0;
}

static struct sv status_line_code(struct sv line)
{
    const char *space = memchr(line.p, ' ', line.n);
    return space != NULL && line.n - (size_t)(space - line.p) >= 4 ? (struct sv){space + 1, 3} : (struct sv){"", 0};
}

enum { HEAD_ROOM = 512, BODY_ROOM = 64 << 10 };

/* Room for all of a usual answer at once, instead of growing by doubling. */
static void make_room(struct xfer *x)
{
    curl_off_t length = -1;
    curl_easy_getinfo(x->handle->t.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length > 0 && x->req->sink == NULL)
        (void)!buf_reserve(&x->resp->body, length < BODY_ROOM ? (size_t)length : BODY_ROOM);
}

static void head_complete(struct xfer *x)
{
    long status = 0;
    curl_easy_getinfo(x->handle->t.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return;
    x->resp->status = (int)status;
    x->head_done = true;
    x->cut = status >= 300;
    make_room(x);
}

static bool is_status_line(const char *p, size_t n)
{
    return p[0] == 'H' && n >= 5 && memcmp(p, "HTTP/", 5) == 0 && status_line_code((struct sv){p, n}).n > 0;
}

/* ---- a header line that continues none ----
 * libcurl 7.83 to 8.0 appends the first header line of an answer, when it starts with a blank, to the last one of the
 * handle's answer before, in freed memory (curl's pull request 11103), and does so before on_header sees the line. Its
 * trace shows the line in time, and while a transfer is paused no header is stored: so it is made to trace from the
 * status line to the line after it. A new handle for each request would do as well, but costs 9 to 22 % of the
 * throughput, this 1 to 3 %. */

bool httpc_first_header_is_unsafe(void)
{
    unsigned version = curl_version_info(CURLVERSION_NOW)->version_num;
    return version >= 0x075300 && version < 0x080100;
}

void httpc_trace(struct request_handle *hd, bool on)
{
    if (hd->traces != on)
        curl_easy_setopt(hd->t.easy, CURLOPT_VERBOSE, on ? 1L : 0L);
    hd->traces = on;
}

static int on_trace(CURL *e, curl_infotype type, char *p, size_t n, void *arg)
{
    struct transfer *t = arg;
    struct xfer *x = t->x;
    if (type != CURLINFO_HEADER_IN || sv_starts((struct sv){p, n}, SV("HTTP/")) || p[0] == '\r' || p[0] == '\n')
        return 0;
    httpc_trace(x->handle, false);
    if (p[0] != ' ' && p[0] != '\t')
        return 0;
    curl_easy_pause(e, CURLPAUSE_RECV);
    x->err = httpc_explain(t, CURLE_BAD_FUNCTION_ARGUMENT, NULL, x->ei);
    httpc_task(t->h, &x->cancel);
    return 0;
}

/* ---- callbacks: the answer's head ---- */

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct xfer *x = ((struct transfer *)arg)->x;
    struct http_resp *r = x->resp;
    n *= size;
    if (r->first_byte.us == 0) {
        r->first_byte = mono_now();
        (void)!buf_reserve(&r->headers, HEAD_ROOM);
        httpc_trace(x->handle, x->handle->t.h->trace_first_header);
    }
    if (is_status_line(p, n)) {
        buf_reset(&r->headers); /* an interim answer came before */
        buf_reset(&r->body);
        x->head_done = false;
    }
    if (buf_append(&r->headers, p, n) != ERR_OK)
        return fail(x, ERR_LIMIT, "the answer's header is too large");
    if (n <= 2 && (p[0] == '\r' || p[0] == '\n') && !x->head_done)
        head_complete(x);
    return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct xfer *x = ((struct transfer *)arg)->x;
    const struct http_req *req = x->req;
    n *= size;
    x->resp->bytes_down += n;
    if (req->sink != NULL && x->resp->status >= 200 && x->resp->status < 300) {
        if (req->sink(req->sink_arg, p, n) != 0)
            return fail(x, ERR_WRONG, "the answer's content is not what was expected");
        return n;
    }
    if (buf_append(&x->resp->body, p, n) != ERR_OK)
        return fail(x, ERR_LIMIT, "the answer is larger than allowed");
    return n;
}

/* ---- callbacks: the body ---- */

static size_t on_body_wanted(char *dst, size_t size, size_t n, void *arg)
{
    struct xfer *x = ((struct transfer *)arg)->x;
    n *= size;
    if (x->cut)
        return 0;
    uint64_t left = httpc_body_size(x->req) - x->body_sent;
    if (n > left)
        n = (size_t)left;
    if (x->req->body_read != NULL) {
        x->pulled = true;
        int64_t got = n > 0 ? x->req->body_read(x->req->body_arg, x->body_sent, dst, n) : 0;
        if (got < 0 || (uint64_t)got > n) {
            x->err = err_set(x->ei, ERR_CANCELLED, "the content to upload could not be read");
            return CURL_READFUNC_ABORT;
        }
        n = (size_t)got;
    } else {
        memcpy(dst, x->req->body.p + x->body_sent, n);
    }
    x->body_sent += n;
    return n;
}

static int64_t part_read(const struct http_part *part, uint64_t offset, char *dst, size_t cap)
{
    if (part->read != NULL)
        return part->read(part->arg, offset, dst, cap);
    size_t left = part->value.n - offset;
    size_t n = left < cap ? left : cap;
    if (n > 0)
        memcpy(dst, part->value.p + offset, n);
    return (int64_t)n;
}

size_t httpc_on_part_wanted(char *dst, size_t size, size_t n, void *arg)
{
    struct pull *pull = arg;
    struct xfer *x = pull->x;
    n *= size;
    if (x->cut)
        return 0;
    x->pulled |= pull->part->read != NULL;
    int64_t got = part_read(pull->part, pull->offset, dst, n);
    if (got < 0 || (uint64_t)got > n) {
        x->err = err_set(x->ei, ERR_CANCELLED, "the content to upload could not be read");
        return CURL_READFUNC_ABORT;
    }
    pull->offset += (uint64_t)got;
    return (size_t)got;
}

/* ---- callbacks: the connection ---- */

/* libcurl replays any request whose reused connection broke before an answer came, POST too, and one that got a 417,
 * with the same Expect. Replaying is decided in httpc_req.c instead. */
static bool may_send(struct xfer *x)
{
    x->blocked |= x->attempts > 0;
    return x->attempts == 0;
}

bool httpc_request_may_connect(struct xfer *x)
{
    if (!may_send(x))
        return false;
    x->opened = true;
    return true;
}

static bool bound_to(const struct sock *s, const char *ip, int port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } sa;
    socklen_t n = sizeof sa;
    char text[INET6_ADDRSTRLEN];
    if (!httpc_sock_alive(s) || getsockname(s->io.fd, &sa.any, &n) != 0)
        return false;
    bool v6 = sa.any.sa_family == AF_INET6;
    inet_ntop(sa.any.sa_family, v6 ? (void *)&sa.v6.sin6_addr : (void *)&sa.v4.sin_addr, text, sizeof text);
    return ntohs(v6 ? sa.v6.sin6_port : sa.v4.sin_port) == port && strcmp(text, ip) == 0;
}

/* libcurl tells the local address of the connection that it is about to use, not the descriptor. */
static void watch_upload(struct xfer *x, const char *ip, int port)
{
    struct sock *s = x->peer->socks;
    while (s != NULL && !bound_to(s, ip, port))
        s = s->next;
    x->sock = s;
    if (s != NULL)
        s->upload = x;
}

void httpc_unwatch_upload(struct xfer *x)
{
    if (x->sock != NULL)
        x->sock->upload = NULL;
    x->sock = NULL;
}

static int on_before_send(void *arg, char *peer_ip, char *local_ip, int peer_port, int local_port)
{
    struct transfer *t = arg;
    struct xfer *x = t->x;
    (void)peer_ip, (void)peer_port;
    t->peer->alias.resolved = true;
    if (!may_send(x))
        return CURL_PREREQFUNC_ABORT;
    x->resp->reused = !x->opened;
    x->attempts++;
    if (x->opened)
        t->h->stats.connects++;
    if (httpc_has_body(x->req))
        watch_upload(x, local_ip, local_port);
    return CURL_PREREQFUNC_OK;
}

void httpc_request_last_words(struct sock *s)
{
    struct xfer *x = s->upload;
    httpc_unwatch_upload(x);
    if (strcmp(x->peer->origin->url.scheme, "http") != 0)
        return; /* what is left is ciphertext */
    buf_init(&x->raw, RAW_MAX);
    while (buf_reserve(&x->raw, 4096) == ERR_OK) {
        ssize_t n = recv(s->io.fd, x->raw.data + x->raw.len, 4096, MSG_DONTWAIT);
        if (n <= 0)
            return;
        x->raw.len += (size_t)n;
    }
}

void httpc_callbacks_set(struct request_handle *hd)
{
    struct transfer *t = &hd->t;
    CURL *e = t->easy;
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, hd->error);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_READFUNCTION, on_body_wanted);
    curl_easy_setopt(e, CURLOPT_READDATA, t);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_before_send);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(e, CURLOPT_DEBUGFUNCTION, on_trace);
    curl_easy_setopt(e, CURLOPT_DEBUGDATA, t);
}
