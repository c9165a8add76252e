#include "base/mem.h"
#include "server/objects/impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A client that needs longer than this for its first 256 KiB is slow: its body goes by way of the disk. */
#define SLOW_US (4 * US_PER_S)

/* The segments of a body, cut as they come. One byte is read ahead at each border, for a segment must be known to be
 * the last before it is sealed. */
struct segments {
    const struct content_source *src;
    uint64_t max, total;
    bool has_ahead;
    char ahead;
};

static enum err read_some(struct segments *g, char *dst, size_t cap, size_t *got, struct errinfo *ei)
{
    enum err e = g->src->read(g->src->arg, dst, cap, got, ei);
    if (e != ERR_OK)
        return e;
    g->total += *got;
    if (g->total > g->max)
        return err_set(ei, ERR_LIMIT, "the file is larger than the %llu bytes allowed", (unsigned long long)g->max);
    return ERR_OK;
}

static enum err next_segment(struct segments *g, unsigned char *dst, size_t *n, bool *last, struct errinfo *ei)
{
    size_t have = 0, got = 1;
    if (g->has_ahead)
        dst[have++] = (unsigned char)g->ahead;
    g->has_ahead = false;
    while (have < SEAL_SEGMENT_LEN && got > 0) {
        enum err e = read_some(g, (char *)dst + have, SEAL_SEGMENT_LEN - have, &got, ei);
        if (e != ERR_OK)
            return e;
        have += got;
    }
    if (got > 0) {
        enum err e = read_some(g, &g->ahead, 1, &got, ei);
        if (e != ERR_OK)
            return e;
        g->has_ahead = got > 0;
    }
    *n = have;
    *last = !g->has_ahead;
    return ERR_OK;
}

struct content_body {
    struct server *server;
    char account_id[DRIVE_ID_MAX + 1];
    struct seal *seal;
    uint64_t size;       /* content bytes so far */
    uint64_t sealed;     /* bytes of the object so far */
    unsigned char *data; /* the sealed bytes that are in neither of the next two */
    size_t n, cap;
    int fd;                      /* -1: no temporary file */
    struct content_putting *put; /* NULL: not going straight */
    int64_t memory;              /* taken from the budget */
    struct mono started;
    enum err io_err; /* of the job in the worker thread */
    struct errinfo io_ei;
};

uint64_t content_body_size(const struct content_body *body)
{
    return body->size;
}

static void body_free(struct content_body **body)
{
    struct content_body *b = *body;
    seal_free(&b->seal);
    if (b->fd >= 0)
        close(b->fd);
    mem_free(b->put);
    mem_free(b->data);
    sem_give(&b->server->content->memory, b->memory);
    mem_free(b);
    *body = NULL;
}

void content_discard(struct content_body **body)
{
    if (!*body)
        return;
    if ((*body)->put) {
        enum err e = content_putting_end((*body)->put, ERR_CANCELLED, NULL);
        (void)e; /* it was to fail */
    }
    body_free(body);
}

/* ---- the temporary file; its writes block, so they run in a worker ---- */

static enum err temp_open(int *fd, struct errinfo *ei)
{
    const char *dir = getenv("TMPDIR");
    if (!dir || !*dir)
        dir = "/tmp";
    *fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*fd >= 0)
        return ERR_OK;
    char path[4096]; /* file systems without O_TMPFILE */
    int n = snprintf(path, sizeof(path), "%s/drivesim-XXXXXX", dir);
    if (n > 0 && (size_t)n < sizeof(path))
        *fd = mkostemp(path, O_CLOEXEC);
    if (*fd < 0)
        return err_sys(ei, ERR_IO, "cannot make a temporary file in %s", dir);
    unlink(path);
    return ERR_OK;
}

static void spill_job(void *arg)
{
    struct content_body *b = arg;
    b->io_err = b->fd < 0 ? temp_open(&b->fd, &b->io_ei) : ERR_OK;
    for (size_t at = 0; b->io_err == ERR_OK && at < b->n;) {
        ssize_t n = write(b->fd, b->data + at, b->n - at);
        if (n > 0)
            at += (size_t)n;
        else
            b->io_err = err_sys(&b->io_ei, ERR_IO, "cannot write the temporary file of an upload");
    }
}

static MAY_YIELD enum err spill(struct content_body *b, struct errinfo *ei)
{
    work_run(b->server->work, spill_job, b);
    b->n = 0;
    if (b->io_err != ERR_OK && ei)
        *ei = b->io_ei;
    return b->io_err;
}

/* Reads the next bytes of the file into data. */
static void unspill_job(void *arg)
{
    struct content_body *b = arg;
    ssize_t n = read(b->fd, b->data, b->cap);
    b->n = n > 0 ? (size_t)n : 0;
    b->io_err = n > 0 ? ERR_OK : err_sys(&b->io_ei, ERR_IO, "cannot read the temporary file of an upload");
}

/* ---- taking in ---- */

/* Straight into the store as far as the announced size reaches. What is beyond stays in data: at most the two bytes
 * that a client without a last CRLF makes, so data never fills up again. */
static MAY_YIELD enum err send_straight(struct content_body *b)
{
    uint64_t room = b->put->size - b->put->written;
    size_t n = b->n < room ? b->n : (size_t)room;
    enum err e = content_putting_write(b->put, b->data, n);
    b->n -= n;
    memmove(b->data, b->data + n, b->n);
    return e;
}

/* data is full and more is to come: chooses the way once, then follows it. */
static MAY_YIELD enum err make_room(struct content_body *b, int64_t expected, struct errinfo *ei)
{
    bool slow = mono_diff(mono_now(), b->started) > SLOW_US;
    if (b->fd >= 0 || expected < 0 || slow)
        return spill(b, ei);
    b->put = mem_zalloc(sizeof(*b->put));
    content_putting_start(b->put, b->server, b->account_id, schema_sealed_size((uint64_t)expected));
    return send_straight(b);
}

/* Room for one more sealed segment behind data + n. */
static MAY_YIELD enum err ensure_room(struct content_body *b, int64_t expected, struct errinfo *ei)
{
    enum err e = ERR_OK;
    if (b->put)
        e = send_straight(b);
    if (e != ERR_OK || b->cap - b->n >= SEAL_SEALED_LEN)
        return e;
    if (b->put)
        return err_set(ei, ERR_PROTO, "the body is longer than its Content-Length");
    if (b->cap == CONTENT_MEMORY_LEN)
        return make_room(b, expected, ei);
    b->cap += SEAL_SEALED_LEN;
    b->data = mem_realloc(b->data, b->cap);
    return ERR_OK;
}

static MAY_YIELD enum err take_in(struct content_body *b, struct segments *g, int64_t expected, struct errinfo *ei)
{
    bool last = false;
    for (uint64_t i = 0; !last; i++) {
        size_t n = 0;
        enum err e = ensure_room(b, expected, ei);
        if (e == ERR_OK)
            e = next_segment(g, b->data + b->n, &n, &last, ei);
        if (e != ERR_OK)
            return e;
        n = seal_segment_close(b->seal, i, last, b->data + b->n, n);
        b->n += n;
        b->sealed += n;
    }
    b->size = g->total;
    return b->fd >= 0 ? spill(b, ei) : ERR_OK;
}

/* Takes what the body may need from the budget; when the budget itself is smaller, all of it. */
static MAY_YIELD void take_memory(struct content_body *b, int64_t expected)
{
    struct content *c = b->server->content;
    bool small = expected >= 0 && expected <= CONTENT_MEMORY_MAX;
    int64_t want = small ? expected + SEAL_SEALED_LEN : CONTENT_STREAM_COST;
    b->memory = want < c->memory_max ? want : c->memory_max;
    sem_take(b->server->loop, &c->memory, b->memory);
}

/* A small body is complete: nothing but itself is kept until it is put. */
static void shrink(struct content_body *b)
{
    b->data = mem_realloc(b->data, b->n);
    b->cap = b->n;
    int64_t surplus = b->memory - (int64_t)b->n;
    if (surplus > 0) {
        sem_give(&b->server->content->memory, surplus);
        b->memory -= surplus;
    }
}

enum err content_receive(struct server *s, const char *account_id, const struct content_source *src, int64_t expected,
                         uint64_t max, struct content_body **out, struct errinfo *ei)
{
    if (expected >= 0 && (uint64_t)expected > max)
        return err_set(ei, ERR_LIMIT, "the file is larger than the %llu bytes allowed", (unsigned long long)max);
    struct content_body *b = mem_zalloc(sizeof(*b));
    struct segments g = {.src = src, .max = max};
    b->server = s;
    b->fd = -1;
    snprintf(b->account_id, sizeof(b->account_id), "%s", account_id);
    take_memory(b, expected);
    b->started = mono_now();
    b->cap = SEAL_HEADER_LEN;
    b->data = mem_alloc(b->cap);
    b->seal = seal_new(&s->content->key, b->data);
    b->n = b->sealed = SEAL_HEADER_LEN;
    enum err e = take_in(b, &g, expected, ei);
    if (e != ERR_OK) {
        if (b->put)
            e = content_putting_end(b->put, e, ei);
        MEM_FREE(b->put);
        body_free(&b);
        return e;
    }
    if (!b->put && b->fd < 0)
        shrink(b);
    *out = b;
    return ERR_OK;
}

/* ---- putting ---- */

static MAY_YIELD enum err put_from_memory(struct content_body *b, struct content_object *o, struct errinfo *ei)
{
    struct blob *blob = NULL;
    enum err e = content_blob(b->server, &blob, ei);
    if (e != ERR_OK)
        return e;
    content_new_key(b->server, b->account_id, o->key);
    size_t n = fault_hit(b->server, FAULT_TRUNCATED_OBJECT) ? b->n - b->n / 4 : b->n;
    e = content_store_err(blob_put(blob, o->key, b->data, n, ei), ei);
    if (e != ERR_OK)
        content_put_failed(b->server, o->key);
    return e;
}

static MAY_YIELD enum err put_from_file(struct content_body *b, struct content_object *o, struct errinfo *ei)
{
    struct content_putting p;
    enum err e = lseek(b->fd, 0, SEEK_SET) == 0 ? ERR_OK : err_sys(ei, ERR_IO, "cannot rewind a temporary file");
    if (e != ERR_OK)
        return e;
    content_putting_start(&p, b->server, b->account_id, b->sealed);
    while (e == ERR_OK && p.written < p.size) {
        work_run(b->server->work, unspill_job, b);
        e = b->io_err;
        if (e != ERR_OK && ei)
            *ei = b->io_ei;
        if (e == ERR_OK)
            e = content_putting_write(&p, b->data, b->n);
    }
    e = content_putting_end(&p, e, ei);
    memcpy(o->key, p.key, sizeof(o->key));
    return e;
}

/* The announced size was wrong: the first object holds `good` bytes of ours. They are read back and written once more,
 * under their right size, with what did not fit behind them. */
static MAY_YIELD enum err put_again(struct content_body *b, const char *from, uint64_t good, struct content_object *o,
                                    struct errinfo *ei)
{
    struct content_putting p;
    struct content_getting g;
    unsigned char *piece = mem_alloc(SEAL_SEGMENT_LEN);
    content_putting_start(&p, b->server, b->account_id, b->sealed);
    content_getting_start(&g, b->server, from, 0, good);
    enum err e = ERR_OK;
    while (e == ERR_OK && good > 0) {
        size_t n = good < SEAL_SEGMENT_LEN ? (size_t)good : SEAL_SEGMENT_LEN;
        e = content_getting_read(&g, piece, n);
        if (e == ERR_OK)
            e = content_putting_write(&p, piece, n);
        good -= n;
    }
    enum err read_err = content_getting_end(&g, ei);
    if (e == ERR_OK)
        e = read_err != ERR_OK ? read_err : content_putting_write(&p, b->data, b->n);
    e = content_putting_end(&p, e, ei);
    memcpy(o->key, p.key, sizeof(o->key));
    mem_free(piece);
    return e;
}

static MAY_YIELD enum err put_straight(struct content_body *b, struct content_object *o, struct errinfo *ei)
{
    struct content_putting *p = b->put;
    enum err e = send_straight(b);
    uint64_t good = p->written;
    bool as_announced = b->n == 0 && good == p->size;
    unsigned char *zeros = as_announced ? NULL : mem_zalloc(SEAL_SEGMENT_LEN);
    while (e == ERR_OK && p->written < p->size) {
        uint64_t left = p->size - p->written;
        e = content_putting_write(p, zeros, left < SEAL_SEGMENT_LEN ? (size_t)left : SEAL_SEGMENT_LEN);
    }
    mem_free(zeros);
    e = content_putting_end(p, e, ei);
    struct content_object first = {.size = 0};
    memcpy(first.key, p->key, sizeof(first.key));
    MEM_FREE(b->put);
    if (e != ERR_OK || as_announced) {
        *o = first;
        return e;
    }
    e = put_again(b, first.key, good, o, ei);
    content_drop(b->server, &first);
    return e;
}

enum err content_put(struct content_body **body, struct content_object *out, struct errinfo *ei)
{
    struct content_body *b = *body;
    struct content_object o = {.key = ""};
    enum err e = b->put ? put_straight(b, &o, ei) : b->fd >= 0 ? put_from_file(b, &o, ei) : put_from_memory(b, &o, ei);
    o.size = b->size;
    body_free(body);
    if (e == ERR_OK)
        *out = o;
    return e;
}
