/* Budgets: what has to be used up before the refusal comes, by logins that are there for nothing else. */
#include "base/mem.h"
#include "drive/wire.h"
#include "sim/refusals/stage.h"

#include <stdio.h>
#include <string.h>

#define LOGINS_MOST 100
#define SPENDERS    8
#define SAMPLE      200 /* requests after which the rest can be foretold */
#define ANSWER_US   (10 * US_PER_S)

/* ---- requests of a login ---- */

struct spending {
    struct stage *s;
    struct httpc_peer *peer;
    struct mono began;
    uint64_t sent;
    int64_t left; /* as the last answer told; -1: it did not */
    bool spent, given_up;
    char *why;
    size_t n;
};

static void foretell(struct spending *p)
{
    char took[32];
    int64_t us = mono_diff(mono_now(), p->began);
    if (p->left < 0 || p->sent < SAMPLE)
        return;
    double rest_us = (double)us / (double)p->sent * (double)p->left;
    if (us + (int64_t)rest_us <= p->s->conf.spend_max_us)
        return;
    p->given_up = true;
    str_format(p->why, p->n, "spending the %lld requests that are left would take %s: --spend allows for more",
               (long long)p->left, str_duration(took, sizeof(took), (int64_t)rest_us));
}

static MAY_YIELD void spender(void *arg)
{
    struct spending *p = arg;
    const struct http_req req = {.method = "GET", .path = "/api/user/storage"};
    while (!p->spent && !p->given_up && !*p->s->stop) {
        struct http_resp resp;
        struct errinfo ei = {0};
        p->sent++;
        if (httpc_perform(p->peer, &req, &resp, &ei) != ERR_OK) {
            p->given_up = true;
            str_format(p->why, p->n, "no answer while it was being spent: %s", err_message(&ei));
        } else if (resp.status == 429) {
            p->spent = true;
        } else {
            int64_t left;
            p->left = sv_to_i64(http_resp_header(&resp, "RateLimit-Remaining"), &left) ? left : -1;
            foretell(p);
        }
        http_resp_done(&resp);
        if (!p->given_up && mono_diff(mono_now(), p->began) > p->s->conf.spend_max_us) {
            p->given_up = true;
            str_format(p->why, p->n, "not spent after %s", COUNTED(p->sent, "request"));
        }
    }
}

bool refusal_spend_requests(struct stage *s, const struct refusal *f, char *why, size_t n)
{
    const char *absent;
    struct group g = {0};
    struct spending p = {
        .s = s, .peer = stage_peer(s, f->who, &absent), .began = mono_now(), .left = -1, .why = why, .n = n};
    if (!p.peer) {
        str_format(why, n, "%s", absent);
        return false;
    }
    for (int i = 0; i < SPENDERS; i++)
        group_spawn(s->ctx->loop, &g, spender, &p);
    group_wait(s->ctx->loop, &g);
    return p.spent;
}

/* ---- attempts to sign in ---- */

void refusal_ask_login(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    const char *why;
    char body[200];
    (void)nth;
    str_format(body, sizeof(body), "{\"email\":\"refusals-limiter%s\",\"password\":\"not-the-password\"}",
               DRIVE_EMAIL_DOMAIN);
    refusal_request(stage_peer(s, WHO_NOBODY, &why),
                    &(struct http_req){.method = f->method, .path = f->path, .body = sv_of(body)}, out);
}

bool refusal_spend_logins(struct stage *s, const struct refusal *f, char *why, size_t n)
{
    struct answer a;
    for (unsigned i = 0; i < LOGINS_MOST && !*s->stop; i++) {
        refusal_ask_login(s, f, i, &a);
        if (a.status == 429)
            return true;
        if (a.err != ERR_OK)
            break;
    }
    str_format(why, n, "%d attempts did not spend it", LOGINS_MOST);
    return false;
}

/* ---- event streams of a login ---- */

struct attempt {
    struct done done;
    struct answer *out;
};

static void on_open(void *arg)
{
    struct attempt *t = arg;
    if (!t->out)
        return;
    t->out->status = 200;
    done_set(&t->done);
}

static void on_event(void *arg, const struct api_event *ev)
{
    (void)arg;
    (void)ev;
}

static void on_close(void *arg, const struct api_result *r)
{
    struct attempt *t = arg;
    if (!t->out)
        return;
    t->out->err = r->status ? ERR_OK : r->err;
    t->out->status = r->status;
    t->out->retry_after_us = r->retry_after_us;
    str_format(t->out->reason, sizeof(t->out->reason), "%s", r->reason);
    str_format(t->out->code, sizeof(t->out->code), "%s", r->code);
    done_set(&t->done);
}

/* Opens one more stream; it stays in *at when the server let it. */
static MAY_YIELD void try_stream(struct stage *s, struct api *a, struct stage_stream *at, struct answer *out)
{
    static const struct api_stream_ops ops = {on_open, on_event, on_close};
    struct errinfo ei = {0};
    struct attempt *t = mem_zalloc(sizeof(*t));
    *out = (struct answer){.retry_after_us = -1};
    *t = (struct attempt){.out = out};
    at->attempt = t;
    struct mono sent = mono_now();
    out->err = api_stream_open(&at->stream, a, NULL, &ops, t, &ei);
    if (out->err != ERR_OK)
        str_format(out->reason, sizeof(out->reason), "%s", err_message(&ei));
    else if (!done_wait_until(s->ctx->loop, &t->done, mono_add(sent, ANSWER_US))) {
        out->err = ERR_TIMEOUT;
        str_format(out->reason, sizeof(out->reason), "timed out");
    }
    out->us = mono_diff(mono_now(), sent);
    t->out = NULL;
}

static void drop(struct stage_stream *at)
{
    api_stream_close(&at->stream);
    MEM_FREE(at->attempt);
}

bool refusal_take_streams(struct stage *s, const struct refusal *f, char *why, size_t n)
{
    struct api *a = s->logins[f->who];
    struct answer out;
    while (a && s->n_streams < ARRAY_LEN(s->streams) - 1) {
        struct stage_stream *at = &s->streams[s->n_streams];
        try_stream(s, a, at, &out);
        if (at->stream && out.err == ERR_OK && out.status == 200) {
            s->n_streams++;
            continue;
        }
        drop(at);
        if (out.status == 429)
            return true;
        break;
    }
    if (!a)
        str_format(why, n, "%s", s->why[f->who]);
    else if (s->n_streams == ARRAY_LEN(s->streams) - 1)
        str_format(why, n, "%zu streams were let in: the server has no such limit", s->n_streams);
    else
        str_format(why, n, "stream %zu did not open: %s", s->n_streams + 1, out.reason);
    return false;
}

void refusal_give_streams(struct stage *s)
{
    while (s->n_streams > 0)
        drop(&s->streams[--s->n_streams]);
}

void refusal_ask_stream(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    struct stage_stream extra = {0};
    (void)nth;
    try_stream(s, s->logins[f->who], &extra, out);
    drop(&extra);
}
