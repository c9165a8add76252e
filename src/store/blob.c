/* Objects, by libs3 in worker threads. The doubtful decision: libs3 2.0 has no timeout of its own but 15 s below 1
 * KiB/s, no hook for one, and an event interface made of fd_set; so its calls block in threads, and a gate in front of
 * them keeps a dead store from holding all threads for 15 s again and again. */
#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "net/guard.h"
#include "net/xml.h"
#include "store/blob_impl.h"
#include "store/s3xml.h"
#include <errno.h>
#include <libs3.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS 5000
#define SILENT_US          (10 * US_PER_S) /* a failure that took this long was libs3's 15 s limit */
#define QUIET_US           (2 * US_PER_S)  /* then one call tries again: those that queued meanwhile need not */
#define SLOW_SOURCE_US     (5 * US_PER_S)
#define REPLAY_MAX         (64 * 1024) /* libcurl's upload buffer: what it may have read before a stale connection shows */

/* libs3 stamps requests by gmtime() from several threads; the linker sends that call here (--wrap=gmtime). */
struct tm *__wrap_gmtime(const time_t *t);
struct tm *__wrap_gmtime(const time_t *t)
{
    static _Thread_local struct tm tm;
    return gmtime_r(t, &tm);
}

/* One call. Filled by the loop's thread, run by a worker, read by the loop's thread again. */
struct job {
    struct blob *b;
    const char *key;
    void (*start)(struct job *j, const S3BucketContext *bucket);
    uint64_t offset, length;
    uint64_t size;     /* put: of the whole body */
    const char *data;  /* put from memory */
    struct wpipe *src; /* put from a stream */
    struct wpipe *dst; /* get into a stream */
    struct buf *out;   /* get into memory */
    struct buf replay; /* what was read from src so far, while it fits */
    bool replayable;
    uint64_t moved;    /* bytes of this attempt */
    uint64_t expected; /* get: as the answer's headers say */
    int64_t waited_us; /* for the other side of the pipe */
    enum err pipe_err; /* why a callback gave up */
    struct blob_info info;
    S3Status status;
    char why[160]; /* the store's own words */
    enum err err;
    struct errinfo ei;
};

/* ---- the gate ---- */

/* Connects once with a time limit that libs3 does not have. */
static bool reachable(const struct blob *b, char *why, size_t why_n)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char port[8];
    snprintf(port, sizeof port, "%d", b->port);
    int r = getaddrinfo(b->connect_host, port, &hints, &list);
    if (r) {
        snprintf(why, why_n, "%s: %s", b->connect_host, gai_strerror(r));
        return false;
    }
    int error = ETIMEDOUT;
    for (const struct addrinfo *a = list; a && error; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t n = sizeof error;
        if (fd < 0 || (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS))
            error = errno;
        else if (poll(&p, 1, CONNECT_TIMEOUT_MS) != 1)
            error = ETIMEDOUT;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
        if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(list);
    if (error)
        snprintf(why, why_n, "%s", strerror(error));
    return error == 0;
}

static bool gate_enter(struct job *j, bool *alone)
{
    struct blob *b = j->b;
    pthread_mutex_lock(&b->lock);
    bool refused = b->silent && (b->trying || !mono_passed(b->quiet_until));
    bool proven = b->proven;
    *alone = b->silent && !refused;
    if (*alone)
        b->trying = true;
    pthread_mutex_unlock(&b->lock);
    if (refused) {
        snprintf(j->why, sizeof j->why, "it does not answer");
        return false;
    }
    return proven || reachable(b, j->why, sizeof j->why);
}

static void gate_leave(struct blob *b, bool alone, bool answered, bool silent)
{
    pthread_mutex_lock(&b->lock);
    if (alone)
        b->trying = false;
    if (answered)
        b->silent = false;
    if (silent) {
        b->silent = true;
        b->quiet_until = mono_add(mono_now(), QUIET_US);
    }
    b->proven = answered;
    pthread_mutex_unlock(&b->lock);
}

/* ---- callbacks of libs3, in the worker's thread ---- */

static S3Status on_properties(const S3ResponseProperties *p, void *arg)
{
    struct job *j = arg;
    j->expected = p->contentLength;
    j->info.size = p->contentLength;
    j->info.modified.us = p->lastModified > 0 ? p->lastModified * US_PER_S : 0;
    return S3StatusOK;
}

static void on_complete(S3Status status, const S3ErrorDetails *e, void *arg)
{
    struct job *j = arg;
    j->status = status;
    if (e && e->message)
        snprintf(j->why, sizeof j->why, "%s", e->message);
}

static int source_read(struct job *j, char *dst, size_t n)
{
    size_t got = 0;
    if (j->data) {
        memcpy(dst, j->data + j->moved, n);
        return (int)n;
    }
    if (j->moved < j->replay.len) { /* the second attempt starts with what the first had taken */
        got = j->replay.len - j->moved;
        got = got < n ? got : n;
        memcpy(dst, j->replay.data + j->moved, got);
        return (int)got;
    }
    struct mono before = mono_now();
    j->pipe_err = wpipe_read_blocking(j->src, dst, n, &got);
    j->waited_us += mono_diff(mono_now(), before);
    if (!j->pipe_err && got == 0)
        j->pipe_err = ERR_CLOSED; /* ended before size */
    if (j->pipe_err)
        return -1;
    j->replayable = j->replayable && j->replay.len == j->moved && !buf_append(&j->replay, dst, got);
    return (int)got;
}

static int on_put(int n, char *dst, void *arg)
{
    struct job *j = arg;
    int got = source_read(j, dst, (size_t)n);
    if (got > 0)
        j->moved += (uint64_t)got;
    return got;
}

static S3Status on_get(int n, const char *data, void *arg)
{
    struct job *j = arg;
    struct mono before = mono_now();
    j->pipe_err = j->out ? buf_append(j->out, data, (size_t)n) : wpipe_write_blocking(j->dst, data, (size_t)n);
    j->waited_us += mono_diff(mono_now(), before);
    j->moved += (uint64_t)n;
    return j->pipe_err ? S3StatusAbortedByCallback : S3StatusOK;
}

/* ---- the calls ---- */

static const S3ResponseHandler plain = {on_properties, on_complete};

static void start_put(struct job *j, const S3BucketContext *bucket)
{
    S3PutObjectHandler h = {plain, on_put};
    S3_put_object(bucket, j->key, j->size, NULL, NULL, &h, j);
}

static void start_get(struct job *j, const S3BucketContext *bucket)
{
    S3GetObjectHandler h = {plain, on_get};
    S3_get_object(bucket, j->key, NULL, j->offset, j->length, NULL, &h, j);
    if (j->status == S3StatusOK && j->moved != j->expected) { /* libs3 takes a cut answer for a good one */
        j->status = S3StatusConnectionFailed;
        snprintf(j->why, sizeof j->why, "the answer was cut short: %llu of %llu bytes", (unsigned long long)j->moved,
                 (unsigned long long)j->expected);
    }
}

static void start_head(struct job *j, const S3BucketContext *bucket)
{
    S3_head_object(bucket, j->key, NULL, &plain, j);
}

static void start_delete(struct job *j, const S3BucketContext *bucket)
{
    S3_delete_object(bucket, j->key, NULL, &plain, j);
}

/* ---- one call from start to verdict ---- */

static bool is_transport(S3Status s)
{
    return s == S3StatusConnectionFailed || s == S3StatusInternalError || s == S3StatusFailedToConnect;
}

/* Twice only after a quick transport failure or a store's plea, and only when the first try left nothing behind. */
static bool worth_retry(const struct job *j, int64_t took_us)
{
    bool passing =
        is_transport(j->status) || (j->status >= S3StatusErrorAccessDenied && S3_status_is_retryable(j->status));
    bool clean = j->start == start_get ? j->moved == 0 : j->start != start_put || j->data || j->replayable;
    return passing && clean && took_us < SILENT_US && j->status != S3StatusFailedToConnect;
}

static void attempt(struct job *j)
{
    const struct blob *b = j->b;
    S3BucketContext bucket = {b->host,
                              b->bucket,
                              b->https ? S3ProtocolHTTPS : S3ProtocolHTTP,
                              b->path_style ? S3UriStylePath : S3UriStyleVirtualHost,
                              b->access_key,
                              b->secret_key};
    j->moved = 0;
    j->why[0] = '\0';
    j->start(j, &bucket);
}

/* libs3 takes the answer to a PUT for lost when the store needed more than a second to say 100 Continue: it looks at
 * the headers when it begins to send. Where all bytes went out, the object itself tells: a store shows it whole or not
 * at all, and keys are used once. */
static void settle_put(struct job *j)
{
    struct job look = {.b = j->b, .key = j->key, .start = start_head};
    if (j->start != start_put || !is_transport(j->status) || j->moved != j->size)
        return;
    attempt(&look);
    if (look.status == S3StatusOK && look.info.size == j->size)
        j->status = S3StatusOK;
}

static enum err verdict(struct job *j)
{
    const char *name = S3_get_status_name(j->status);
    if (j->pipe_err == ERR_LIMIT && j->out)
        return err_set(&j->ei, ERR_LIMIT, "object %s is larger than expected", j->key);
    if (j->pipe_err)
        return err_set(&j->ei, ERR_CANCELLED, "object %s: the other side of the transfer gave up", j->key);
    switch (j->status) {
    case S3StatusOK:
        return ERR_OK;
    case S3StatusErrorNoSuchKey:
    case S3StatusHttpErrorNotFound:
        return err_set(&j->ei, ERR_NOTFOUND, "object %s does not exist", j->key);
    default:
        if (is_transport(j->status) && j->src && j->waited_us > SLOW_SOURCE_US)
            return err_set(&j->ei, ERR_CANCELLED, "object %s: its source was too slow", j->key);
        name = strncmp(name, "Error", 5) == 0 ? name + 5 : name;
        return err_set(&j->ei, ERR_STORE, "object store at %s: %s%s%s", j->b->host, name, j->why[0] ? ": " : "",
                       j->why);
    }
}

/* Returns how long it took. */
static int64_t attempt_settled(struct job *j)
{
    struct mono begun = mono_now();
    attempt(j);
    int64_t took_us = mono_diff(mono_now(), begun);
    if (took_us < SILENT_US)
        settle_put(j);
    return took_us;
}

static void run(void *arg)
{
    struct job *j = arg;
    bool alone = false;
    struct mono begun = mono_now();
    int64_t took_us;
    if (gate_enter(j, &alone)) {
        took_us = attempt_settled(j);
        if (worth_retry(j, took_us)) {
            LOGD("blob", "%s: %s, once more", j->key, S3_get_status_name(j->status));
            took_us = attempt_settled(j);
        }
    } else {
        j->status = S3StatusFailedToConnect;
        took_us = mono_diff(mono_now(), begun);
    }
    bool answered = !is_transport(j->status) && j->status != S3StatusNameLookupError;
    bool store_fault = !answered && j->waited_us < SLOW_SOURCE_US;
    gate_leave(j->b, alone, answered, store_fault && took_us >= CONNECT_TIMEOUT_MS * US_PER_MS);
    j->err = verdict(j);
    if (j->src)
        wpipe_close_read(j->src);
    if (j->dst)
        wpipe_close_write(j->dst, j->err);
}

bool blob_key_valid(const char *key)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.-";
    size_t n = strlen(key);
    return n > 0 && n <= S3_MAX_KEY_SIZE && strspn(key, allowed) == n;
}

static MAY_YIELD enum err perform(struct job *j, struct errinfo *ei)
{
    if (!blob_key_valid(j->key)) {
        j->err = err_set(&j->ei, ERR_USAGE, "object keys are of A-Z a-z 0-9 / _ . - only");
        if (j->src)
            wpipe_close_read(j->src);
        if (j->dst)
            wpipe_close_write(j->dst, j->err);
    } else {
        work_run(j->b->work, run, j);
    }
    buf_done(&j->replay);
    if (j->err && ei)
        *ei = j->ei;
    return j->err;
}

enum err blob_put_stream(struct blob *b, const char *key, uint64_t size, struct wpipe *src, struct errinfo *ei)
{
    struct job j = {.b = b,
                    .key = key,
                    .start = start_put,
                    .size = size,
                    .src = src,
                    .replayable = true,
                    .replay = BUF_INIT(REPLAY_MAX)};
    return perform(&j, ei);
}

enum err blob_put(struct blob *b, const char *key, const void *data, size_t n, struct errinfo *ei)
{
    struct job j = {.b = b, .key = key, .start = start_put, .size = n, .data = data ? data : ""};
    return perform(&j, ei);
}

enum err blob_get_stream(struct blob *b, const char *key, uint64_t offset, uint64_t length, struct wpipe *dst,
                         struct errinfo *ei)
{
    struct job j = {.b = b, .key = key, .start = start_get, .offset = offset, .length = length, .dst = dst};
    return perform(&j, ei);
}

enum err blob_get(struct blob *b, const char *key, uint64_t offset, uint64_t length, struct buf *out,
                  struct errinfo *ei)
{
    struct job j = {.b = b, .key = key, .start = start_get, .offset = offset, .length = length, .out = out};
    return perform(&j, ei);
}

enum err blob_head(struct blob *b, const char *key, struct blob_info *out, struct errinfo *ei)
{
    struct job j = {.b = b, .key = key, .start = start_head};
    enum err err = perform(&j, ei);
    if (!err)
        *out = j.info;
    return err;
}

enum err blob_delete(struct blob *b, const char *key, struct errinfo *ei)
{
    struct job j = {.b = b, .key = key, .start = start_delete};
    enum err err = perform(&j, ei);
    b->delete_requests++;
    b->deleted += err == ERR_OK || err == ERR_NOTFOUND;
    return err == ERR_NOTFOUND ? ERR_OK : err;
}

/* ---- life ---- */

static S3Status init_status;

static void init_once(void)
{
    xml_init();
    init_status = S3_initialize("drivesim", S3_INIT_ALL, NULL);
}

static char *host_port(const struct http_url *u, const char *bucket)
{
    struct buf b = BUF_INIT(1024);
    bool v6 = strchr(u->host, ':') && u->host[0] != '[';
    bool standard = u->port == (strcmp(u->scheme, "https") == 0 ? 443 : 80);
    enum err err =
        buf_appendf(&b, "%s%s%s%s%s", bucket ? bucket : "", bucket ? "." : "", v6 ? "[" : "", u->host, v6 ? "]" : "");
    if (!err && !standard)
        err = buf_appendf(&b, ":%d", u->port);
    return err ? NULL : buf_take(&b, NULL);
}

static enum err set_endpoint(struct blob *b, const char *endpoint, struct errinfo *ei)
{
    struct http_url u;
    enum err err = http_url_parse(endpoint, &u, ei);
    if (err)
        return err;
    size_t n = strlen(u.host);
    bool bracketed = n > 2 && u.host[0] == '[';
    b->connect_host = bracketed ? mem_strndup(u.host + 1, n - 2) : mem_strdup(u.host);
    b->port = u.port;
    b->https = strcmp(u.scheme, "https") == 0;
    b->host = host_port(&u, NULL);
    b->host_line = host_port(&u, b->path_style ? NULL : b->bucket);
    if (u.path[0] || !b->host || strlen(b->host) > S3_MAX_HOSTNAME_SIZE)
        err = err_set(ei, ERR_USAGE, "S3 endpoint %s: expected http(s)://host:port without a path", endpoint);
    else
        err = guard_judge(u.host, ei);
    http_url_done(&u);
    return err;
}

static enum err check_conf(const struct blob_conf *c, struct errinfo *ei)
{
    if (!c->endpoint || !c->bucket || !c->access_key || !c->secret_key)
        return err_set(ei, ERR_USAGE, "S3 store: endpoint, bucket, access key and secret key are all needed");
    if (S3_validate_bucket_name(c->bucket, c->path_style ? S3UriStylePath : S3UriStyleVirtualHost) != S3StatusOK)
        return err_set(ei, ERR_USAGE, "S3 store: '%s' is not a bucket name", c->bucket);
    return ERR_OK;
}

enum err blob_new(struct blob **out, struct loop *l, struct httpc *h, struct work *w, const struct blob_conf *conf,
                  struct errinfo *ei)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_once);
    enum err err = check_conf(conf, ei);
    if (err)
        return err;
    if (init_status != S3StatusOK)
        return err_set(ei, ERR_ENV, "libs3: %s", S3_get_status_name(init_status));
    struct blob *b = mem_zalloc(sizeof *b);
    b->loop = l;
    b->work = w;
    b->bucket = mem_strdup(conf->bucket);
    b->access_key = mem_strdup(conf->access_key);
    b->secret_key = mem_strdup(conf->secret_key);
    b->region = mem_strdup(conf->region ? conf->region : "us-east-1");
    b->path_style = conf->path_style;
    pthread_mutex_init(&b->lock, NULL);
    secret_add(sv_of(conf->access_key));
    secret_add(sv_of(conf->secret_key));
    err = set_endpoint(b, conf->endpoint, ei);
    if (!err) {
        char base[600];
        snprintf(base, sizeof base, "%s://%s", b->https ? "https" : "http", b->host_line);
        err = httpc_peer_new(&b->peer, h, base, NULL, ei);
    }
    if (err) {
        blob_free(&b);
        return err;
    }
    *out = b;
    return ERR_OK;
}

void blob_free(struct blob **bp)
{
    struct blob *b = *bp;
    if (!b)
        return;
    if (b->peer)
        httpc_peer_free(&b->peer);
    mem_free(b->bucket);
    mem_free(b->access_key);
    mem_free(b->secret_key);
    mem_free(b->region);
    mem_free(b->connect_host);
    mem_free(b->host);
    mem_free(b->host_line);
    pthread_mutex_destroy(&b->lock);
    MEM_FREE(*bp);
}
