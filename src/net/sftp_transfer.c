/* Bodies: a window of requests under way, since one at a time would measure the round trip and nothing else. */
#include "base/mem.h"
#include "net/sftp_int.h"

#include <string.h>

#define CHUNK  (32u * 1024) /* what every server takes */
#define WINDOW 16           /* requests under way of one transfer */

struct piece { /* a request for a range, in order of offsets */
    struct sftp_call call;
    uint64_t offset;
    size_t n;
};
struct transfer {
    struct sftp *s;
    struct sftp_handle handle;
    struct piece *ring; /* WINDOW of them */
    unsigned first, under_way, window;
    uint64_t next, end;
    struct sftp_reply *r;
    struct errinfo *ei;
};

static struct piece *piece_at(struct transfer *t, unsigned i)
{
    return &t->ring[(t->first + i) % WINDOW];
}

static void drop_first(struct transfer *t)
{
    sftp_forget(&piece_at(t, 0)->call);
    t->first = (t->first + 1) % WINDOW;
    t->under_way--;
}

static void transfer_init(struct transfer *t, struct sftp *s, struct sftp_reply *r, struct errinfo *ei)
{
    *t = (struct transfer){.s = s, .r = r, .ei = ei, .ring = mem_zalloc(WINDOW * sizeof(*t->ring))};
}

/* The first error counts; a handle is closed on a connection that still is one. */
static MAY_YIELD enum err transfer_done(struct transfer *t, enum err e)
{
    struct sftp_reply closed = {.status = SFTP_OK};
    while (t->under_way)
        drop_first(t);
    mem_free(t->ring);
    if (t->handle.n && sftp_alive(t->s)) {
        enum err close_err = sftp_close_handle(t->s, &t->handle, &closed, e == ERR_OK ? t->ei : NULL);
        if (e == ERR_OK && t->r->status == SFTP_OK) {
            e = close_err;
            *t->r = closed;
        }
    }
    return e;
}

/* ---- reading ---- */

static void ask_range(struct transfer *t, struct piece *p, uint64_t offset, size_t n)
{
    struct sftp_out o;
    p->offset = offset;
    p->n = n;
    sftp_begin(t->s, &p->call, &o, SFTP_T_READ);
    sftp_out_text(&o, sftp_handle_sv(&t->handle));
    sftp_out_u64(&o, offset);
    sftp_out_u32(&o, (uint32_t)n);
    sftp_send(t->s, &o, (struct sv){NULL, 0});
}

static MAY_YIELD enum err answered(struct transfer *t, struct piece *p, struct sv *data)
{
    enum err e = sftp_await(t->s, &p->call, t->ei);
    if (e == ERR_OK)
        e = sftp_judge(&p->call, SFTP_T_DATA, t->r, t->ei);
    if (e != ERR_OK || t->r->status != SFTP_OK)
        return e;
    struct sftp_in in = {.rest = {p->call.body.data, p->call.body.len}};
    *data = sftp_in_text(&in);
    if (in.bad || data->n == 0 || data->n > p->n)
        return err_set(t->ei, ERR_PROTO, "sftp: malformed data");
    return ERR_OK;
}

struct sink {
    int (*fn)(void *arg, const char *p, size_t n);
    void *arg;
};

static enum err pour(const struct transfer *t, const struct sink *sink, struct sv data)
{
    if (sink->fn && sink->fn(sink->arg, data.p, data.n) != 0)
        return err_set(t->ei, ERR_WRONG, "wrong content");
    return ERR_OK;
}

/* A server may give less than was asked: at the end of the file, or for reasons of its own. */
static MAY_YIELD enum err read_rest(struct transfer *t, const struct sink *sink, uint64_t offset, size_t n)
{
    enum err e = ERR_OK;
    while (n > 0 && e == ERR_OK) {
        struct piece p;
        struct sv data;
        ask_range(t, &p, offset, n);
        e = answered(t, &p, &data);
        bool more = e == ERR_OK && t->r->status == SFTP_OK;
        if (more) {
            e = pour(t, sink, data);
            offset += data.n;
            n -= data.n;
        }
        sftp_forget(&p.call);
        if (!more)
            break;
    }
    return e;
}

static MAY_YIELD enum err read_first(struct transfer *t, const struct sink *sink)
{
    struct piece *p = piece_at(t, 0);
    struct sv data;
    enum err e = answered(t, p, &data);
    if (e != ERR_OK || t->r->status != SFTP_OK)
        return e;
    e = pour(t, sink, data);
    uint64_t got_to = p->offset + data.n;
    size_t missing = p->n - data.n;
    if (e == ERR_OK && missing > 0 && t->under_way > 1) {
        /* The next answer tells whether this was the end. */
        struct piece *next = piece_at(t, 1);
        e = answered(t, next, &data);
        if (e == ERR_OK && t->r->status == SFTP_EOF)
            return ERR_OK;
    }
    return e == ERR_OK ? read_rest(t, sink, got_to, missing) : e;
}

static MAY_YIELD enum err read_all(struct transfer *t, const struct sink *sink)
{
    enum err e = ERR_OK;
    t->window = 2;
    while (e == ERR_OK) {
        while (t->under_way < t->window && t->next < t->end) {
            size_t n = t->end - t->next < CHUNK ? (size_t)(t->end - t->next) : CHUNK;
            ask_range(t, piece_at(t, t->under_way++), t->next, n);
            t->next += n;
        }
        if (t->under_way == 0)
            return ERR_OK;
        e = read_first(t, sink);
        if (e == ERR_OK && t->r->status != SFTP_OK)
            break;
        drop_first(t);
        t->window = t->window * 2 < WINDOW ? t->window * 2 : WINDOW;
    }
    if (e == ERR_OK && t->r->status == SFTP_EOF)
        *t->r = (struct sftp_reply){.status = SFTP_OK};
    return e;
}

enum err sftp_get(struct sftp *s, const char *path, uint64_t offset, uint64_t length,
                  int (*sink)(void *arg, const char *p, size_t n), void *arg, struct sftp_reply *r, struct errinfo *ei)
{
    const struct sink to = {sink, arg};
    struct transfer t;
    transfer_init(&t, s, r, ei);
    t.next = offset;
    t.end = length && length < UINT64_MAX - offset ? offset + length : UINT64_MAX;
    enum err e = sftp_open_file(s, path, SFTP_READ, &t.handle, r, ei);
    if (e == ERR_OK && r->status == SFTP_OK)
        e = read_all(&t, &to);
    return transfer_done(&t, e);
}

/* ---- writing ---- */

static void send_piece(struct transfer *t, const struct sftp_source *from, char *chunk)
{
    struct piece *p = piece_at(t, t->under_way++);
    struct sftp_out o;
    p->offset = t->next;
    p->n = t->end - t->next < CHUNK ? (size_t)(t->end - t->next) : CHUNK;
    from->fill(from->arg, p->offset, chunk, p->n);
    sftp_begin(t->s, &p->call, &o, SFTP_T_WRITE);
    sftp_out_text(&o, sftp_handle_sv(&t->handle));
    sftp_out_u64(&o, p->offset);
    sftp_out_u32(&o, (uint32_t)p->n);
    sftp_send(t->s, &o, (struct sv){chunk, p->n});
    t->next += p->n;
    if (from->taken)
        *from->taken += p->n;
}

static MAY_YIELD enum err write_all(struct transfer *t, const struct sftp_source *from)
{
    enum err e = ERR_OK;
    char *chunk = mem_alloc(CHUNK);
    while (e == ERR_OK && t->r->status == SFTP_OK && (t->next < t->end || t->under_way)) {
        if (t->under_way < WINDOW && t->next < t->end) {
            send_piece(t, from, chunk);
            continue;
        }
        struct piece *p = piece_at(t, 0);
        e = sftp_await(t->s, &p->call, t->ei);
        if (e == ERR_OK)
            e = sftp_judge(&p->call, SFTP_T_STATUS, t->r, t->ei);
        drop_first(t);
    }
    mem_free(chunk);
    return e;
}

static MAY_YIELD enum err set_time(struct transfer *t, uint32_t mtime_s)
{
    struct sftp_call c;
    struct sftp_out o;
    sftp_begin(t->s, &c, &o, SFTP_T_FSETSTAT);
    sftp_out_text(&o, sftp_handle_sv(&t->handle));
    sftp_out_times(&o, mtime_s);
    enum err e = sftp_ask(t->s, &c, &o, SFTP_T_STATUS, t->r, t->ei);
    sftp_forget(&c);
    return e;
}

enum err sftp_put(struct sftp *s, const char *path, const struct sftp_source *from, struct sftp_reply *r,
                  struct errinfo *ei)
{
    struct transfer t;
    struct sftp_reply ignored;
    transfer_init(&t, s, r, ei);
    t.end = from->size;
    enum err e = sftp_open_file(s, path, SFTP_WRITE | SFTP_CREATE | SFTP_EXCLUSIVE, &t.handle, r, ei);
    bool made = e == ERR_OK && r->status == SFTP_OK;
    if (made)
        e = write_all(&t, from);
    if (made && e == ERR_OK && r->status == SFTP_OK && from->mtime_s)
        e = set_time(&t, from->mtime_s);
    e = transfer_done(&t, e);
    if (made && (e != ERR_OK || r->status != SFTP_OK) && sftp_alive(s))
        (void)!sftp_change(s, SFTP_REMOVE, path, NULL, &ignored, NULL); /* r says already why there is no file */
    return e;
}

/* ---- copying within the server ---- */

static MAY_YIELD enum err copy_data(struct sftp *s, const struct sftp_handle *from, const struct sftp_handle *to,
                                    struct sftp_reply *r, struct errinfo *ei)
{
    struct sftp_call c;
    struct sftp_out o;
    sftp_extended(s, &c, &o, "copy-data");
    sftp_out_text(&o, sftp_handle_sv(from));
    sftp_out_u64(&o, 0);
    sftp_out_u64(&o, 0); /* to the end */
    sftp_out_text(&o, sftp_handle_sv(to));
    sftp_out_u64(&o, 0);
    enum err e = sftp_ask(s, &c, &o, SFTP_T_STATUS, r, ei);
    sftp_forget(&c);
    return e;
}

enum err sftp_copy(struct sftp *s, const char *from, const char *to, struct sftp_reply *r, struct errinfo *ei)
{
    struct sftp_handle in = {.n = 0}, out = {.n = 0};
    struct sftp_reply closed = {.status = SFTP_OK};
    enum err e = sftp_open_file(s, from, SFTP_READ, &in, r, ei);
    if (e == ERR_OK && r->status == SFTP_OK)
        e = sftp_open_file(s, to, SFTP_WRITE | SFTP_CREATE | SFTP_EXCLUSIVE, &out, r, ei);
    bool made = e == ERR_OK && out.n > 0;
    if (made)
        e = copy_data(s, &in, &out, r, ei);
    if (in.n && sftp_alive(s))
        (void)!sftp_close_handle(s, &in, &closed, NULL); /* it was only read */
    if (out.n && sftp_alive(s)) {
        enum err close_err = sftp_close_handle(s, &out, &closed, NULL);
        if (e == ERR_OK && r->status == SFTP_OK) {
            e = close_err;
            *r = closed;
        }
    }
    if (made && (e != ERR_OK || r->status != SFTP_OK) && sftp_alive(s))
        (void)!sftp_change(s, SFTP_REMOVE, to, NULL, &closed, NULL); /* as above */
    return e;
}
