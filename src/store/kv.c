/* The doubtful decision: the connection of the commands is one, not a pool. Redis runs one command at a time anyway,
 * and a single pipeline keeps publishes in the order of their commits. */
#include "store/kv.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/secret.h"
#include "net/guard.h"
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>

#define COMMAND_TIMEOUT_US (5 * US_PER_S)
#define BACKOFF_FIRST_US   (50 * US_PER_MS)
#define BACKOFF_MAX_US     (2 * US_PER_S)
#define MAX_ARGS           64

struct conn {
    struct kv *kv;
    redisAsyncContext *ac; /* NULL: down, retry is set */
    struct io io;
    struct timer retry, give_up; /* give_up: of a connection that is not up yet */
    int64_t backoff_us;
    bool up;
    bool pubsub;
};

struct kv {
    struct loop *loop;
    struct rng rng;
    char *host, *user, *password, *db;
    char *path; /* of a socket of this machine; then there is no host */
    int port;
    struct conn command, events;
    struct done *ready; /* of the caller that waits in kv_ready */
    char *pattern;
    void (*on_message)(void *arg, struct sv channel, struct sv payload);
    void (*on_up)(void *arg, bool up);
    void *arg;
    unsigned losses;
    char last_error[160];
};

static const char *own_name; /* of all connections of this process; NULL: none */

void kv_set_name(const char *name)
{
    own_name = name;
}

/* ---- replies ---- */

static void reply_copy(struct kv_reply *to, const redisReply *from)
{
    static const enum kv_type types[] = {
        [REDIS_REPLY_STRING] = KV_STR, [REDIS_REPLY_ARRAY] = KV_ARRAY,   [REDIS_REPLY_INTEGER] = KV_INT,
        [REDIS_REPLY_NIL] = KV_NIL,    [REDIS_REPLY_STATUS] = KV_STATUS, [REDIS_REPLY_ERROR] = KV_ERROR,
    };
    *to = (struct kv_reply){.type = types[from->type], .i = from->integer};
    if (to->type == KV_ARRAY) {
        to->items = mem_zalloc(from->elements * sizeof *to->items);
        to->n_items = from->elements;
        for (size_t i = 0; i < from->elements; i++) /* hiredis bounds the nesting at 7 */
            reply_copy(&to->items[i], from->element[i]);
    } else if (from->str) {
        to->n = from->len; /* binary: mem_strndup would stop at a NUL */
        to->s = mem_alloc(to->n + 1);
        memcpy(to->s, from->str, to->n);
        to->s[to->n] = '\0';
    }
}

void kv_reply_done(struct kv_reply *r)
{
    for (size_t i = 0; i < r->n_items; i++)
        kv_reply_done(&r->items[i]);
    mem_free(r->items);
    mem_free(r->s);
    *r = (struct kv_reply){.type = KV_NIL};
}

/* ---- the adapter between hiredis and the loop ---- */

static void interest(struct conn *c, uint32_t set, uint32_t clear)
{
    uint32_t events = (c->io.events | set) & ~clear;
    if (c->io.loop && events != c->io.events)
        loop_io_set(&c->io, events);
}

static void add_read(void *arg)
{
    interest(arg, EPOLLIN, 0);
}

static void del_read(void *arg)
{
    interest(arg, 0, EPOLLIN);
}

static void add_write(void *arg)
{
    interest(arg, EPOLLOUT, 0);
}

static void del_write(void *arg)
{
    interest(arg, 0, EPOLLOUT);
}

/* Either handler may free the context: it is looked up again before the second. */
static void on_io(struct io *io, uint32_t events)
{
    struct conn *c = container_of(io, struct conn, io);
    uint32_t wanted = io->events;
    redisAsyncContext *ac = c->ac;
    if (events & (EPOLLERR | EPOLLHUP))
        events |= wanted;
    if (events & EPOLLIN)
        redisAsyncHandleRead(ac);
    if ((events & EPOLLOUT) && c->ac == ac)
        redisAsyncHandleWrite(ac);
}

/* ---- connections: down -> connecting -> up -> down ---- */

static void conn_start(struct conn *c);

static void on_retry(struct timer *t)
{
    conn_start(container_of(t, struct conn, retry));
}

/* The context is gone or about to go; what waited for it has been told by its own callback. */
static void conn_down(struct conn *c, const char *why)
{
    struct kv *k = c->kv;
    bool was_up = c->up;
    loop_timer_stop(&c->give_up);
    c->ac = NULL;
    c->up = false;
    k->losses += was_up && !c->pubsub;
    snprintf(k->last_error, sizeof k->last_error, "%s", why && *why ? why : "connection lost");
    if (was_up)
        LOGW("kv", "redis: %s connection lost: %s", c->pubsub ? "events" : "command", k->last_error);
    c->backoff_us = c->backoff_us == 0 ? BACKOFF_FIRST_US : c->backoff_us * 2;
    if (c->backoff_us > BACKOFF_MAX_US)
        c->backoff_us = BACKOFF_MAX_US;
    int64_t pause = c->backoff_us / 2 + (int64_t)rng_below(&k->rng, (uint64_t)c->backoff_us / 2 + 1);
    loop_timer_set(k->loop, &c->retry, mono_add(mono_now(), pause));
    if (was_up && c->pubsub)
        k->on_up(k->arg, false);
}

static void cleanup(void *arg)
{
    struct conn *c = arg;
    loop_io_remove(&c->io);
    if (c->ac) /* hiredis frees it now */
        conn_down(c, c->ac->errstr);
}

/* hiredis tells running commands, then calls cleanup. */
static void conn_drop(struct conn *c, const char *why)
{
    redisAsyncContext *ac = c->ac;
    if (!ac)
        return;
    conn_down(c, why);
    redisAsyncFree(ac);
}

static void on_give_up(struct timer *t)
{
    conn_drop(container_of(t, struct conn, give_up), "no answer within 5 s");
}

static void conn_is_up(struct conn *c)
{
    struct kv *k = c->kv;
    loop_timer_stop(&c->give_up);
    c->up = true;
    c->backoff_us = 0;
    LOGD("kv", "%s connection up", c->pubsub ? "events" : "command");
    if (c->pubsub)
        k->on_up(k->arg, true);
    else if (k->ready)
        done_set(k->ready);
}

/* Answers to what greet queued; NULL when the connection was lost. A refusal (wrong password, no such database, still
 * loading) ends the connection: the next one may fare better, and until then callers are told why. */
static void on_greeting(redisAsyncContext *ac, void *reply, void *arg)
{
    const redisReply *r = reply;
    struct conn *c = arg;
    if (r && c->ac == ac && r->type == REDIS_REPLY_ERROR)
        conn_drop(c, r->str);
}

static void on_ping(redisAsyncContext *ac, void *reply, void *arg)
{
    const redisReply *r = reply;
    struct conn *c = arg;
    if (r && c->ac == ac && r->type == REDIS_REPLY_STATUS)
        conn_is_up(c);
    else
        on_greeting(ac, reply, arg);
}

static void on_pubsub(redisAsyncContext *ac, void *reply, void *arg)
{
    const redisReply *r = reply;
    struct conn *c = arg;
    if (!r || c->ac != ac || r->type != REDIS_REPLY_ARRAY || r->elements < 3)
        return;
    const char *kind = r->element[0]->str;
    if (strcmp(kind, "psubscribe") == 0)
        conn_is_up(c);
    else if (strcmp(kind, "pmessage") == 0 && r->elements == 4)
        c->kv->on_message(c->kv->arg, (struct sv){r->element[2]->str, r->element[2]->len},
                          (struct sv){r->element[3]->str, r->element[3]->len});
}

/* Queued at once; hiredis sends them when the connection stands. */
static void greet(struct conn *c)
{
    struct kv *k = c->kv;
    redisAsyncContext *ac = c->ac;
    if (k->user)
        redisAsyncCommand(ac, on_greeting, c, "AUTH %s %s", k->user, k->password);
    else if (k->password)
        redisAsyncCommand(ac, on_greeting, c, "AUTH %s", k->password);
    if (own_name) /* where that is forbidden, it goes without */
        redisAsyncCommand(ac, NULL, NULL, "CLIENT SETNAME %s", own_name);
    if (c->pubsub) {
        redisAsyncCommand(ac, on_pubsub, c, "PSUBSCRIBE %s", k->pattern);
        return;
    }
    if (k->db)
        redisAsyncCommand(ac, on_greeting, c, "SELECT %s", k->db);
    redisAsyncCommand(ac, on_ping, c, "PING");
}

static void on_connect(const redisAsyncContext *ac, int status)
{
    if (status != REDIS_OK)
        return; /* cleanup follows */
    unsigned timeout_ms = 15000;
    (void)setsockopt(ac->c.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

static void conn_start(struct conn *c)
{
    struct kv *k = c->kv;
    struct errinfo ei;
    redisAsyncContext *ac = k->path ? redisAsyncConnectUnix(k->path) : redisAsyncConnect(k->host, k->port);
    if (!ac || ac->err) {
        conn_down(c, ac ? ac->errstr : "out of memory");
        if (ac)
            redisAsyncFree(ac);
        return;
    }
    c->io = (struct io){.fd = ac->c.fd, .fn = on_io};
    if (loop_io_add(k->loop, &c->io, EPOLLIN | EPOLLOUT, &ei)) {
        conn_down(c, err_message(&ei));
        redisAsyncFree(ac);
        return;
    }
    c->ac = ac;
    ac->ev.data = c;
    ac->ev.addRead = add_read;
    ac->ev.delRead = del_read;
    ac->ev.addWrite = add_write;
    ac->ev.delWrite = del_write;
    ac->ev.cleanup = cleanup;
    redisAsyncSetConnectCallback(ac, on_connect);
    (void)redisEnableKeepAlive(&ac->c);
    loop_timer_set(k->loop, &c->give_up, mono_add(mono_now(), COMMAND_TIMEOUT_US));
    greet(c);
}

static void conn_init(struct conn *c, struct kv *k, bool pubsub)
{
    c->kv = k;
    c->pubsub = pubsub;
    c->retry.fn = on_retry;
    c->give_up.fn = on_give_up;
}

static void conn_end(struct conn *c)
{
    redisAsyncContext *ac = c->ac;
    c->ac = NULL;
    c->up = false;
    loop_timer_stop(&c->retry);
    loop_timer_stop(&c->give_up);
    if (ac)
        redisAsyncFree(ac);
}

/* ---- life ---- */

static char *decoded(struct sv s)
{
    struct buf b = BUF_INIT(4096);
    if (str_url_decode(&b, s)) {
        buf_done(&b);
        return NULL;
    }
    return buf_take(&b, NULL);
}

/* [[user]:password@] */
static bool parse_user(struct kv *k, struct sv *rest)
{
    const char *at = memrchr(rest->p, '@', rest->n);
    if (!at)
        return true;
    struct sv info = {rest->p, (size_t)(at - rest->p)};
    *rest = (struct sv){at + 1, rest->n - info.n - 1};
    const char *colon = memchr(info.p, ':', info.n);
    if (!colon)
        return false;
    struct sv user = {info.p, (size_t)(colon - info.p)};
    k->user = user.n ? decoded(user) : NULL;
    k->password = decoded((struct sv){colon + 1, info.n - user.n - 1});
    secret_add(sv_of(k->password));
    return k->password && (user.n == 0 || k->user);
}

/* host[:port], the host possibly a bracketed IPv6 address */
static bool parse_host(struct kv *k, struct sv s)
{
    int64_t port = 6379;
    struct sv host = s;
    const char *after = s.p;
    if (sv_starts(s, SV("["))) {
        const char *end = memchr(s.p, ']', s.n);
        if (!end)
            return false;
        host = (struct sv){s.p + 1, (size_t)(end - s.p - 1)};
        after = end + 1;
    }
    const char *colon = memchr(after, ':', s.n - (size_t)(after - s.p));
    if (colon) {
        if (after == s.p)
            host.n = (size_t)(colon - s.p);
        if (!sv_to_i64((struct sv){colon + 1, s.n - (size_t)(colon + 1 - s.p)}, &port) || port < 1 || port > 65535)
            return false;
    }
    k->host = mem_strndup(host.p, host.n);
    k->port = (int)port;
    return host.n > 0;
}

/* "/path?db=1" */
static bool parse_socket(struct kv *k, struct sv s)
{
    const char *query = memchr(s.p, '?', s.n);
    struct sv path = {s.p, query ? (size_t)(query - s.p) : s.n};
    struct sv db = {path.p + path.n, s.n - path.n};
    int64_t number;
    k->path = mem_strndup(path.p, path.n);
    if (db.n == 0)
        return path.n > 1;
    if (!sv_starts(db, SV("?db=")))
        return false;
    k->db = mem_strndup(db.p + 4, db.n - 4);
    return path.n > 1 && sv_to_i64(sv_of(k->db), &number) && number >= 0;
}

/* host[:port][/db] */
static bool parse_place(struct kv *k, struct sv rest)
{
    struct sv host;
    int64_t db = 0;
    if (!sv_split(&rest, '/', &host) || !parse_host(k, host))
        return false;
    if (rest.n == 0)
        return true;
    k->db = mem_strndup(rest.p, rest.n);
    return sv_to_i64(rest, &db) && db >= 0;
}

static enum err parse_url(struct kv *k, const char *url, struct errinfo *ei)
{
    struct sv rest = sv_of(url);
    bool tls = sv_starts(rest, SV("rediss://"));
    size_t scheme = tls ? 9 : sv_starts(rest, SV("redis://")) ? 8 : sv_starts(rest, SV("unix://")) ? 7 : 0;
    rest = (struct sv){rest.p + scheme, rest.n - scheme};
    bool understood = scheme && parse_user(k, &rest);
    if (understood)
        understood =
            sv_starts(rest, SV("/")) ? scheme == 7 && parse_socket(k, rest) : scheme > 7 && parse_place(k, rest);
    if (!understood)
        return err_set(ei, ERR_USAGE,
                       "redis url not understood, expected redis://[:password@]host:port/db or unix:///path");
    enum err err = k->host ? guard_judge(k->host, ei) : ERR_OK;
    if (!err && tls)
        err =
            err_set(ei, ERR_ENV, "redis is not reachable: drivesim speaks no TLS to it, name a plain port by redis://");
    return err;
}

static void forget_url(struct kv *k)
{
    mem_free(k->host);
    mem_free(k->path);
    mem_free(k->user);
    mem_free(k->password);
    mem_free(k->db);
}

enum err kv_url_judge(const char *url, struct errinfo *ei)
{
    struct kv k = {.loop = NULL};
    enum err err = parse_url(&k, url, ei);
    forget_url(&k);
    return err;
}

enum err kv_new(struct kv **out, struct loop *l, const char *url, struct errinfo *ei)
{
    uint64_t seed;
    struct kv *k = mem_zalloc(sizeof *k);
    k->loop = l;
    conn_init(&k->command, k, false);
    conn_init(&k->events, k, true);
    enum err err = parse_url(k, url, ei);
    if (err) {
        kv_free(&k);
        return err;
    }
    digest_random(&seed, sizeof seed);
    rng_init(&k->rng, seed, 0);
    snprintf(k->last_error, sizeof k->last_error, "not connected yet");
    conn_start(&k->command);
    *out = k;
    return ERR_OK;
}

void kv_free(struct kv **kp)
{
    struct kv *k = *kp;
    if (!k)
        return;
    conn_end(&k->command);
    conn_end(&k->events);
    forget_url(k);
    mem_free(k->pattern);
    MEM_FREE(*kp);
}

unsigned kv_losses(const struct kv *k)
{
    return k->losses;
}

bool kv_up(const struct kv *k)
{
    return k->command.up;
}

static enum err down(const struct kv *k, struct errinfo *ei)
{
    return err_set(ei, ERR_KV, "redis is not reachable: %s", k->last_error);
}

enum err kv_ready(struct kv *k, struct mono deadline, struct errinfo *ei)
{
    struct done ready = {0};
    bool in_time = true;
    while (!k->command.up && in_time) {
        k->ready = &ready;
        in_time = done_wait_until(k->loop, &ready, deadline);
        k->ready = NULL;
    }
    return k->command.up ? ERR_OK : down(k, ei);
}

/* ---- commands ---- */

struct call {
    struct kv_reply *out;
    struct errinfo *ei;
    enum err err;
    bool answered;
    struct done done;
};

static void on_reply(redisAsyncContext *ac, void *reply, void *arg)
{
    const redisReply *r = reply;
    struct call *call = arg;
    (void)ac;
    call->answered = true;
    if (!r)
        call->err = err_set(call->ei, ERR_KV, "redis: connection lost before the answer");
    else if (r->type == REDIS_REPLY_ERROR)
        call->err = err_set(call->ei, ERR_KV, "redis: %s", r->str);
    else if (call->out)
        reply_copy(call->out, r);
    done_set(&call->done);
}

static bool enqueue(struct kv *k, size_t argc, const struct sv *argv, redisCallbackFn *fn, void *arg)
{
    const char *parts[MAX_ARGS];
    size_t sizes[MAX_ARGS];
    if (argc > MAX_ARGS)
        return false;
    for (size_t i = 0; i < argc; i++) {
        parts[i] = argv[i].p;
        sizes[i] = argv[i].n;
    }
    return redisAsyncCommandArgv(k->command.ac, fn, arg, (int)argc, parts, sizes) == REDIS_OK;
}

/* What lies unread when the time is over came in time: then it was we who stood still. */
static MAY_YIELD bool answered_in_time(struct kv *k, struct call *call)
{
    struct pollfd look = {.fd = k->command.io.fd, .events = POLLIN};
    if (done_wait_until(k->loop, &call->done, mono_add(mono_now(), COMMAND_TIMEOUT_US)))
        return true;
    return poll(&look, 1, 0) > 0 && done_wait_until(k->loop, &call->done, mono_add(mono_now(), COMMAND_TIMEOUT_US));
}

enum err kv_command(struct kv *k, size_t argc, const struct sv *argv, struct kv_reply *out, struct errinfo *ei)
{
    struct call call = {.out = out, .ei = ei};
    if (!k->command.up)
        return down(k, ei);
    if (!enqueue(k, argc, argv, on_reply, &call))
        return err_set(ei, ERR_KV, "redis: command not accepted (at most %d arguments)", MAX_ARGS);
    if (!answered_in_time(k, &call) && !call.answered)
        conn_drop(&k->command, "no answer within 5 s"); /* answers this call and all others */
    return call.err;
}

bool kv_send(struct kv *k, size_t argc, const struct sv *argv)
{
    return k->command.up && enqueue(k, argc, argv, NULL, NULL);
}

enum err kv_subscribe(struct kv *k, const char *pattern,
                      void (*on_message)(void *arg, struct sv channel, struct sv payload),
                      void (*on_up)(void *arg, bool up), void *arg, struct errinfo *ei)
{
    if (k->pattern)
        return err_set(ei, ERR_USAGE, "already subscribed to %s", k->pattern);
    k->pattern = mem_strdup(pattern);
    k->on_message = on_message;
    k->on_up = on_up;
    k->arg = arg;
    conn_start(&k->events);
    return ERR_OK;
}
