/* Event streams: one easy handle and one fresh connection each, in a multi of their own, because libcurl looks at every
 * connection to a host before it reuses one: 5,000 streams in the requests' multi would cost a request 50 times its
 * price (measured.md 3). BUFFERSIZE is libcurl's minimum. */
#include "base/shortage.h"
#include "net/httpc_xfer.h"

#include <string.h>
#include <sys/socket.h>

enum { STREAM_BUFFER = 1024, ERROR_BODY_MAX = 4096, HEADERS_MAX = 64 * 1024 };

struct httpc_stream {
    struct transfer t;
    struct httpc_stream *next, **at;
    struct httpc_stream **handle; /* the owner's */
    struct task task;             /* start, then remove */
    struct timer idle;
    int64_t idle_us, bytes_per_s; /* bytes_per_s: read no faster; 0: as it comes */
    struct mono last_byte;
    uint64_t *sent;                     /* the peer's counter when it was opened */
    int64_t away_us;                    /* shortage_away_us(), as far as it was given back to last_byte */
    const struct httpc_stream_ops *ops; /* NULL: closed by its owner, no further callback */
    void *arg;
    struct http_resp resp; /* status 0 until the head is complete; of a good answer no more than that is kept */
    enum err err;
    struct curl_slist *resolve;
    struct header_set *headers;
    char **own; /* copies: the request's headers */
    size_t n_own;
    char *target;
    struct curl_slist *nodes;
};

static bool good(const struct httpc_stream *s)
{
    return s->resp.status >= 200 && s->resp.status < 300;
}

/* ---- callbacks ---- */

static size_t give_up(struct httpc_stream *s, enum err err)
{
    s->err = err;
    return 0;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct httpc_stream *s = arg;
    n *= size;
    s->last_byte = loop_now(s->t.h->loop);
    if (s->ops == NULL)
        return 0;
    if (s->resp.status != 0)
        return n; /* a trailer */
    if (buf_append(&s->resp.headers, p, n) != ERR_OK)
        return give_up(s, ERR_LIMIT);
    if (n > 2 || (p[0] != '\r' && p[0] != '\n'))
        return n;
    long status = 0;
    curl_easy_getinfo(s->t.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) {
        buf_reset(&s->resp.headers); /* an interim answer */
        return n;
    }
    s->resp.status = (int)status;
    if (s->ops->on_open != NULL && !s->ops->on_open(s->arg, &s->resp))
        return give_up(s, ERR_CANCELLED);
    if (good(s))
        buf_done(&s->resp.headers);
    return s->ops != NULL ? n : 0;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct httpc_stream *s = arg;
    struct buf *kept = &s->resp.body;
    n *= size;
    s->last_byte = loop_now(s->t.h->loop);
    if (s->ops == NULL)
        return 0;
    if (!good(s)) { /* what is beyond the room is not waited for: it may be endless */
        size_t room = kept->max - kept->len;
        return buf_append(kept, p, n < room ? n : room) == ERR_OK && n <= room ? n : 0;
    }
    if (!s->ops->on_data(s->arg, p, n))
        return give_up(s, ERR_CANCELLED);
    return s->ops != NULL ? n : 0;
}

/* ---- the end ---- */

static void stream_free(struct httpc_stream *s)
{
    struct httpc *h = s->t.h;
    loop_timer_stop(&s->idle);
    httpc_untask(h, &s->task);
    if (s->t.easy != NULL) {
        curl_multi_remove_handle(h->streams_multi->curl, s->t.easy);
        curl_easy_cleanup(s->t.easy);
    }
    *s->at = s->next;
    if (s->next != NULL)
        s->next->at = s->at;
    h->stats.streams--;
    curl_slist_free_all(s->resolve);
    httpc_headers_release(&s->headers);
    http_resp_done(&s->resp);
    for (size_t i = 0; i < s->n_own; i++)
        mem_free(s->own[i]);
    mem_free(s->own);
    mem_free(s->target);
    mem_free(s->nodes);
    mem_free(s);
}

/* The last callback, after libcurl has let go: the owner may open the next stream in it. */
static void stream_end(struct httpc_stream *s, enum err err, const struct errinfo *why)
{
    const struct httpc_stream_ops *ops = s->ops;
    if (s->t.easy != NULL)
        curl_multi_remove_handle(s->t.multi->curl, s->t.easy);
    s->ops = NULL;
    LOGD("httpc", "%s: the stream ended: status %d, %s", s->target, s->resp.status, err_message(why));
    if (ops != NULL)
        *s->handle = NULL;
    if (ops != NULL && ops->on_close != NULL)
        ops->on_close(s->arg, err, &s->resp, why);
    stream_free(s);
}

void httpc_stream_finished(struct transfer *t, CURLcode rc)
{
    struct httpc_stream *s = t->stream;
    struct errinfo why = {0};
    if (s->ops == NULL) {
        stream_free(s);
        return;
    }
    enum err err = s->err;
    if (err == ERR_LIMIT)
        err = err_set(&why, err, "the answer's header is too large");
    else if (err == ERR_OK && (rc == CURLE_OK || rc == CURLE_PARTIAL_FILE))
        err = err_set(&why, ERR_CLOSED, "the server closed the stream");
    else if (err == ERR_OK)
        err = httpc_explain(t, rc, NULL, &why);
    if (s->resp.status != 0 && !good(s))
        err = ERR_OK; /* the refusal is what counts, whole or cut */
    stream_end(s, err, &why);
}

static void on_idle(struct timer *t)
{
    struct httpc_stream *s = container_of(t, struct httpc_stream, idle);
    int64_t away_us = shortage_away_us() - s->away_us; /* nobody here listened */
    s->away_us += away_us;
    s->last_byte = mono_add(s->last_byte, away_us);
    struct mono dead = mono_add(s->last_byte, s->idle_us);
    struct errinfo why;
    if (!mono_passed(dead))
        loop_timer_set(s->t.h->loop, t, dead);
    else
        stream_end(s, err_set(&why, ERR_TIMEOUT, "timed out"), &why);
}

static void on_remove(struct task *t)
{
    stream_free(container_of(t, struct httpc_stream, task));
}

static void close_quietly(struct httpc_stream *s)
{
    s->ops = NULL;
    s->task.fn = on_remove;
    loop_timer_stop(&s->idle);
    httpc_task(s->t.h, &s->task);
}

void httpc_stream_close(struct httpc_stream **sp)
{
    struct httpc_stream *s = *sp;
    *sp = NULL;
    if (s != NULL)
        close_quietly(s);
}

/* The peer goes: its streams live on without it until libcurl can be entered to remove them. */
void httpc_stream_close_all(struct httpc *h, const struct httpc_peer *of)
{
    for (struct httpc_stream *s = h->streams; s != NULL; s = s->next)
        if (s->t.peer == of) {
            close_quietly(s);
            s->t.peer = NULL;
        }
}

void httpc_stream_free_all(struct httpc *h)
{
    while (h->streams != NULL)
        stream_free(h->streams);
}

/* ---- the start ---- */

/* The name is known from now on: the list that introduced it is not needed any more. */
void httpc_stream_connects(struct httpc_stream *s, int fd)
{
    if (fd >= 0 && s->bytes_per_s > 0) /* before connecting, so that the window is small from the first segment on */
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){1}, sizeof(int));
    s->t.peer->origin->stream_aliases[s->t.peer->first_addr].resolved = true;
    if (s->resolve == NULL)
        return;
    curl_easy_setopt(s->t.easy, CURLOPT_RESOLVE, NULL);
    curl_slist_free_all(s->resolve);
    s->resolve = NULL;
}

static const char no_encoding[] = "Accept-Encoding:"; /* so that libcurl adds none */

static void set_up(struct httpc_stream *s)
{
    CURL *e = s->t.easy;
    struct origin *o = s->t.peer->origin;
    struct alias *alias = &o->stream_aliases[s->t.peer->first_addr];
    curl_easy_setopt(e, CURLOPT_CURLU, o->parsed);
    curl_easy_setopt(e, CURLOPT_REQUEST_TARGET, s->target);
    curl_easy_setopt(e, CURLOPT_CONNECT_TO, &alias->list);
    if (!alias->resolved) {
        s->resolve = httpc_alias_resolve(alias, o, s->t.peer->first_addr);
        curl_easy_setopt(e, CURLOPT_RESOLVE, s->resolve);
    }
    s->headers = s->t.peer->headers;
    s->headers->refs++;
    if (!httpc_headers_have(s->headers, no_encoding))
        s->own[s->n_own++] = mem_strdup(no_encoding);
    s->nodes = mem_realloc_array(NULL, s->n_own + s->headers->n, sizeof *s->nodes);
    struct curl_slist *list = httpc_header_list(s->t.peer, (const char *const *)s->own, s->n_own, s->nodes);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)STREAM_BUFFER);
    curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, ""); /* not asked for (below), but decoded if a proxy compresses */
    if (s->bytes_per_s > 0)
        curl_easy_setopt(e, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)s->bytes_per_s);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, s);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, s);
}

static void on_start(struct task *t)
{
    struct httpc_stream *s = container_of(t, struct httpc_stream, task);
    s->last_byte = mono_now();
    s->away_us = shortage_away_us();
    s->t.easy = httpc_easy_new(&s->t);
    if (s->t.easy == NULL) {
        struct errinfo why;
        stream_end(s, err_set(&why, ERR_ENV, "libcurl has no room for a stream"), &why);
        return;
    }
    set_up(s);
    if (s->idle_us > 0)
        loop_timer_set(s->t.h->loop, &s->idle, mono_add(s->last_byte, s->idle_us));
    s->t.h->stats.connects++;
    if (s->sent != NULL)
        ++*s->sent;
    curl_multi_add_handle(s->t.multi->curl, s->t.easy);
}

void httpc_stream_limit(struct httpc_stream *s, int64_t bytes_per_s)
{
    s->bytes_per_s = bytes_per_s;
}

static void link_stream(struct httpc_stream *s)
{
    struct httpc *h = s->t.h;
    s->at = &h->streams;
    s->next = h->streams;
    if (s->next != NULL)
        s->next->at = &s->next;
    h->streams = s;
    h->stats.streams++;
}

enum err httpc_stream_open(struct httpc_stream **out, struct httpc_peer *p, const char *path,
                           const char *const *headers, int64_t idle_us, const struct httpc_stream_ops *ops, void *arg,
                           struct errinfo *ei)
{
    struct http_req req = {.method = "GET", .path = path, .headers = headers};
    enum err err = httpc_request_valid(&req, ei);
    if (err != ERR_OK)
        return err;
    struct httpc_stream *s = mem_zalloc(sizeof *s);
    s->t = (struct transfer){.h = p->h, .peer = p, .multi = p->h->streams_multi, .stream = s};
    s->task.fn = on_start;
    s->idle.fn = on_idle;
    s->idle_us = idle_us;
    s->sent = p->count.sent;
    s->ops = ops;
    s->arg = arg;
    s->handle = out;
    buf_init(&s->resp.body, ERROR_BODY_MAX);
    buf_init(&s->resp.headers, HEADERS_MAX);
    s->target = httpc_target(p->origin, path);
    while (headers != NULL && headers[s->n_own] != NULL)
        s->n_own++;
    s->own = mem_realloc_array(NULL, s->n_own + 1, sizeof *s->own);
    for (size_t i = 0; i < s->n_own; i++)
        s->own[i] = mem_strdup(headers[i]);
    link_stream(s);
    httpc_task(p->h, &s->task);
    *out = s;
    return ERR_OK;
}
