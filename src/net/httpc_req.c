/* The life of one request: start, timers, the decision what an end means, and the one retry. */
#include "base/shortage.h"
#include "net/httpc_salvage.h"
#include "net/httpc_xfer.h"

#include <string.h>

enum { HEADERS_MAX = 256 << 10, DEFAULT_MAX_BODY = 16 << 20 };
#define DEFAULT_TIMEOUT (60 * US_PER_S)

static int64_t info(CURL *e, CURLINFO which)
{
    curl_off_t v = 0;
    curl_easy_getinfo(e, which, &v);
    return v;
}

static long info_long(CURL *e, CURLINFO which)
{
    long v = 0;
    curl_easy_getinfo(e, which, &v);
    return v;
}

static int64_t timeout_of(const struct http_req *req)
{
    return req->timeout_us > 0 ? req->timeout_us : DEFAULT_TIMEOUT;
}

static void collect(struct xfer *x)
{
    struct http_resp *r = x->resp;
    CURL *e = x->handle->t.easy;
    r->done = mono_now();
    if (httpc_has_body(x->req))
        r->bytes_up = (uint64_t)info(e, CURLINFO_SIZE_UPLOAD_T);
    r->request_sent = x->attempts > 0 && (r->status != 0 || info_long(e, CURLINFO_REQUEST_SIZE) > 0);
    if (!r->reused) {
        int64_t tls = info(e, CURLINFO_APPCONNECT_TIME_T);
        r->connect_us = tls > 0 ? tls : info(e, CURLINFO_CONNECT_TIME_T);
    }
}

/* ---- the connections that are kept ---- */

/* When more would be idle than are kept, a request's connection is closed after it. Asked anew whenever a request of
 * the peer begins or ends, so that the first to end leaves the connection that the others need not keep. */
static void balance(const struct httpc_peer *p)
{
    if (p->keep == 0)
        return;
    unsigned open = 0, busy = 0;
    for (const struct sock *s = p->socks; s != NULL; s = s->next)
        open += s->multi == p->multi && s->io.events != 0; /* without events: the server has closed it */
    for (const struct xfer *x = p->running; x != NULL; x = x->next)
        busy += x->handle != NULL;
    bool last = open >= busy + p->keep;
    for (struct xfer *x = p->running; x != NULL; x = x->next)
        if (x->handle != NULL && x->handle->is_last != last) {
            curl_easy_setopt(x->handle->t.easy, CURLOPT_FORBID_REUSE, last ? 1L : 0L);
            x->handle->is_last = last;
        }
}

static void let_go(struct xfer *x)
{
    if (x->handle == NULL)
        return;
    httpc_handle_give(x->handle);
    x->handle = NULL;
    if (x->opened)
        httpc_forget_stale(x->peer);
    balance(x->peer);
}

/* ---- the end ---- */

/* Gives everything back and wakes the caller. */
static void end(struct xfer *x, enum err result)
{
    struct httpc *h = x->peer->h;
    x->result = result;
    loop_timer_stop(&x->timer);
    httpc_untask(h, &x->start);
    httpc_untask(h, &x->cancel);
    httpc_unwatch_upload(x);
    let_go(x);
    *x->at = x->next;
    if (x->next != NULL)
        x->next->at = x->at;
    h->stats.in_flight--;
    h->stats.bytes_up += x->resp->bytes_up;
    h->stats.bytes_down += x->resp->bytes_down;
    done_set(&x->done);
}

/* A refusal that came while the body was being sent is an answer, whatever became of the connection afterwards. */
static bool refused_early(struct xfer *x)
{
    if (!x->head_done && x->raw.len > 0)
        x->head_done = x->cut = httpc_salvage((struct sv){x->raw.data, x->raw.len}, x->resp);
    return x->cut && x->head_done && httpc_has_body(x->req);
}

static enum err judge(struct xfer *x, CURLcode rc)
{
    if (x->err == ERR_CANCELLED || x->err == ERR_LIMIT || x->err == ERR_WRONG)
        return x->err;
    if (rc == CURLE_OK && x->err == ERR_OK)
        return ERR_OK;
    if (refused_early(x)) {
        if (x->ei != NULL)
            *x->ei = (struct errinfo){.code = ERR_OK};
        return ERR_OK;
    }
    if (x->err != ERR_OK)
        return x->err;
    if (x->blocked)
        rc = CURLE_RECV_ERROR;
    return httpc_explain(&x->handle->t, rc, x->handle->error, x->ei);
}

/* ---- the retry ---- */

static bool safe_method(const char *method)
{
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "PROPFIND"};
    for (size_t i = 0; i < ARRAY_LEN(safe); i++)
        if (strcmp(method, safe[i]) == 0)
            return true;
    return false;
}

/* The server closed a kept connection just as it was used again. */
static bool worth_a_retry(const struct xfer *x, CURLcode rc)
{
    const struct http_resp *r = x->resp;
    bool broke = x->blocked || rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR || rc == CURLE_GOT_NOTHING;
    bool untouched = r->reused && r->retries == 0 && r->first_byte.us == 0 && x->raw.len == 0 && !x->pulled;
    return broke && untouched && x->err == ERR_OK && (safe_method(x->req->method) || !r->request_sent);
}

/* A server that does not know Expect is asked once more without it; not a byte of the body has gone. */
static bool expectation_failed(const struct xfer *x)
{
    return x->expect_100 && x->resp->status == 417 && !x->pulled && x->body_sent == 0 && x->err == ERR_OK;
}

static void start_again(struct xfer *x)
{
    struct http_resp *r = x->resp;
    httpc_unwatch_upload(x);
    let_go(x);
    x->attempts = 0;
    x->opened = x->blocked = x->head_done = x->cut = false;
    x->body_sent = x->moved = 0;
    r->status = 0;
    r->bytes_down = 0;
    r->first_byte.us = 0;
    buf_reset(&r->headers);
    buf_reset(&r->body);
    httpc_task(x->peer->h, &x->start);
}

void httpc_request_finished(struct transfer *t, CURLcode rc)
{
    struct xfer *x = t->x;
    curl_multi_remove_handle(t->multi->curl, t->easy);
    collect(x);
    if (worth_a_retry(x, rc)) {
        x->fresh = true;
        x->resp->retries++;
        t->h->stats.retries++;
        start_again(x);
    } else if (expectation_failed(x)) {
        x->expect_100 = false;
        start_again(x);
    } else {
        end(x, judge(x, rc));
    }
}

/* ---- ending it ourselves ---- */

/* x->err is set. On the loop's stack, outside libcurl. */
static void break_off(struct xfer *x)
{
    if (x->handle != NULL) {
        curl_multi_remove_handle(x->handle->t.multi->curl, x->handle->t.easy);
        collect(x);
    }
    end(x, judge(x, CURLE_ABORTED_BY_CALLBACK));
}

static void on_cancel(struct task *t)
{
    break_off(container_of(t, struct xfer, cancel));
}

void httpc_cancel(struct httpc *h, struct httpc_peer *p)
{
    for (struct httpc_peer *one = h->peers; p == NULL && one != NULL; one = one->next)
        httpc_cancel(h, one);
    for (struct xfer *x = p != NULL ? p->running : NULL; x != NULL; x = x->next) {
        x->err = err_set(x->ei, ERR_CANCELLED, "cancelled");
        httpc_task(h, &x->cancel);
    }
}

static uint64_t bytes_moved(CURL *e)
{
    return (uint64_t)(info(e, CURLINFO_SIZE_UPLOAD_T) + info(e, CURLINFO_SIZE_DOWNLOAD_T) +
                      info_long(e, CURLINFO_HEADER_SIZE) + info_long(e, CURLINFO_REQUEST_SIZE));
}

static void arm(struct xfer *x)
{
    struct mono at = x->attempts == 0 ? mono_earlier(x->connect_by, x->deadline) : x->deadline;
    if (x->req->stall_us > 0) { /* looked at four times a stall, so that one is noticed at most a quarter late */
        at = mono_earlier(at, mono_add(loop_now(x->peer->h->loop), x->req->stall_us / 4 + 1));
    }
    loop_timer_set(x->peer->h->loop, &x->timer, at);
}

static bool stalled(struct xfer *x, struct mono now)
{
    if (x->req->stall_us <= 0 || x->handle == NULL)
        return false;
    uint64_t moved = bytes_moved(x->handle->t.easy);
    if (moved != x->moved) {
        x->moved = moved;
        x->moved_at = now;
    }
    return mono_diff(now, x->moved_at) >= x->req->stall_us;
}

/* A time limit is for the server: what this process was away for does not count. */
static bool was_away(struct xfer *x)
{
    int64_t us = shortage_away_us() - x->away_us;
    x->away_us += us;
    x->deadline = mono_add(x->deadline, us);
    x->connect_by = mono_add(x->connect_by, us);
    x->moved_at = mono_add(x->moved_at, us);
    return us > 0;
}

static void on_time(struct timer *t)
{
    struct xfer *x = container_of(t, struct xfer, timer);
    if (was_away(x)) {
        arm(x);
        return;
    }
    struct mono now = mono_now();
    const struct http_url *u = &x->peer->origin->url;
    char how_long[32];
    if (!mono_before(now, x->deadline)) {
        str_duration(how_long, sizeof how_long, timeout_of(x->req));
        x->err = err_set(x->ei, ERR_TIMEOUT, "no %s from %s:%d within %s",
                         x->resp->first_byte.us == 0 ? "answer" : "complete answer", u->host, u->port, how_long);
    } else if (x->handle != NULL && x->attempts == 0 && !mono_before(now, x->connect_by)) {
        x->err = httpc_explain(&x->handle->t, CURLE_OPERATION_TIMEDOUT, NULL, x->ei);
    } else if (stalled(x, now)) {
        str_duration(how_long, sizeof how_long, x->req->stall_us);
        x->err = err_set(x->ei, ERR_TIMEOUT, "no byte moved for %s to or from %s:%d", how_long, u->host, u->port);
    } else {
        arm(x);
        return;
    }
    break_off(x);
}

/* ---- the start ---- */

static void on_start(struct task *t)
{
    struct xfer *x = container_of(t, struct xfer, start);
    struct httpc *h = x->peer->h;
    struct request_handle *hd = httpc_handle_take(h);
    if (hd == NULL) {
        end(x, err_set(x->ei, ERR_ENV, "libcurl cannot start a request"));
        return;
    }
    x->handle = hd;
    httpc_handle_setup(hd, x);
    h->stats.requests++;
    uint64_t *counter = x->resp->retries > 0 ? x->count.again : x->count.sent;
    if (counter != NULL)
        ++*counter;
    struct mono now = x->resp->sent = x->moved_at = mono_now();
    if (x->deadline.us == 0)
        x->away_us = shortage_away_us();
    if (x->deadline.us == 0)
        x->deadline = mono_add(now, timeout_of(x->req));
    x->connect_by = mono_add(now, CONNECT_TIMEOUT_MS * US_PER_MS);
    arm(x);
    curl_multi_add_handle(hd->t.multi->curl, hd->t.easy);
    balance(x->peer);
}

static void link_running(struct xfer *x)
{
    struct httpc_peer *p = x->peer;
    x->at = &p->running;
    x->next = p->running;
    if (x->next != NULL)
        x->next->at = &x->next;
    p->running = x;
    p->h->stats.in_flight++;
}

enum err httpc_perform(struct httpc_peer *p, const struct http_req *req, struct http_resp *resp, struct errinfo *ei)
{
    memset(resp, 0, sizeof *resp);
    buf_init(&resp->headers, HEADERS_MAX);
    buf_init(&resp->body, req->max_body > 0 ? req->max_body : DEFAULT_MAX_BODY);
    enum err err = httpc_request_valid(req, ei);
    if (err != ERR_OK)
        return err;
    struct xfer x = {
        .peer = p,
        .req = req,
        .resp = resp,
        .ei = ei,
        .count = p->count,
        .start.fn = on_start,
        .cancel.fn = on_cancel,
        .timer.fn = on_time,
        .expect_100 = req->expect_100,
    };
    link_running(&x);
    httpc_task(p->h, &x.start);
    done_wait(p->h->loop, &x.done);
    buf_done(&x.raw);
    return x.result;
}
