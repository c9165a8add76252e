/* libssh2 refuses any other call while a packet is half sent, which two users of one session cannot keep to. So its
 * sends end in a queue of ours, which always takes the whole packet: it never sees a socket that is full, and the room
 * in the queue decides how much is encrypted. */
#include "base/mem.h"
#include "net/ssh_int.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_MOST   (128u << 10) /* encrypted bytes that wait for the socket before more are made */
#define QUEUE_MAX  (256u << 20)
#define CHUNK_MAX  (32u << 10)
#define LINE_MAX_N 1024

/* ---- queues ---- */

static size_t queue_len(const struct ssh_queue *q)
{
    return q->bytes.len - q->at;
}

static const char *queue_front(const struct ssh_queue *q)
{
    return q->bytes.data + q->at;
}

static void queue_took(struct ssh_queue *q, size_t n)
{
    q->at += n;
    if (q->at == q->bytes.len) {
        buf_reset(&q->bytes);
        q->at = 0;
    } else if (q->at > q->bytes.len / 2 && q->at > CHUNK_MAX) {
        buf_consume(&q->bytes, q->at);
        q->at = 0;
    }
}

bool ssh_out_waits(const struct ssh *s)
{
    return queue_len(&s->out) > 0;
}

void ssh_flush(struct ssh *s)
{
    while (ssh_out_waits(s)) {
        ssize_t n = send(s->io.fd, queue_front(&s->out), queue_len(&s->out), MSG_NOSIGNAL);
        if (n > 0) {
            s->up += (uint64_t)n;
            queue_took(&s->out, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else {
            /* A server that has gone may have said why: it is still read to the end. */
            if (n < 0 && errno != EAGAIN) {
                s->os_errno = errno;
                queue_took(&s->out, queue_len(&s->out));
            }
            return;
        }
    }
}

/* ---- libssh2's memory and socket ---- */

static LIBSSH2_ALLOC_FUNC(on_alloc)
{
    (void)abstract;
    return mem_alloc(count);
}

static LIBSSH2_REALLOC_FUNC(on_realloc)
{
    (void)abstract;
    return mem_realloc(ptr, count);
}

static LIBSSH2_FREE_FUNC(on_free)
{
    (void)abstract;
    mem_free(ptr);
}

static void note_line(struct ssh *s)
{
    struct sv line = sv_trim((struct sv){buf_cstr(&s->line), s->line.len});
    if (sv_starts(line, SV("SSH-")))
        s->named = true;
    else if (line.n)
        str_shown(s->said, sizeof(s->said), line);
    buf_reset(&s->line);
}

/* A server may say more before its banner; one that refuses says just that. */
static void note_greeting(struct ssh *s, struct sv bytes)
{
    for (size_t i = 0; i < bytes.n && !s->named; i++) {
        if (bytes.p[i] == '\n')
            note_line(s);
        else if (buf_append_char(&s->line, bytes.p[i]) != ERR_OK)
            buf_reset(&s->line);
    }
}

static ssize_t on_recv(libssh2_socket_t fd, void *dst, size_t n, int flags, void **abstract)
{
    struct ssh *s = *abstract;
    (void)flags;
    if (s->dead)
        return -ECONNABORTED;
    ssize_t got = recv(fd, dst, n, 0);
    if (got < 0) {
        int os = errno == EINTR ? EAGAIN : errno;
        if (os != EAGAIN)
            s->os_errno = os;
        return -os;
    }
    s->ended = got == 0;
    s->down += (uint64_t)got;
    if (!s->named)
        note_greeting(s, (struct sv){dst, (size_t)got});
    return got;
}

static ssize_t on_send(libssh2_socket_t fd, const void *p, size_t n, int flags, void **abstract)
{
    struct ssh *s = *abstract;
    (void)fd;
    (void)flags;
    if (!s->dead && buf_append(&s->out.bytes, p, n) != ERR_OK)
        return -ENOBUFS;
    return (ssize_t)n;
}

/* The library takes its callbacks as data pointers. */
static void set_callback(LIBSSH2_SESSION *session, int type, const void *fn_address)
{
    void *fn;
    memcpy(&fn, fn_address, sizeof(fn));
    libssh2_session_callback_set(session, type, fn);
}

LIBSSH2_SESSION *ssh_session_new(struct ssh *s)
{
    ssize_t (*const recv_fn)(libssh2_socket_t, void *, size_t, int, void **) = on_recv;
    ssize_t (*const send_fn)(libssh2_socket_t, const void *, size_t, int, void **) = on_send;
    LIBSSH2_SESSION *session = libssh2_session_init_ex(on_alloc, on_free, on_realloc, s);
    libssh2_session_set_blocking(session, 0);
    set_callback(session, LIBSSH2_CALLBACK_RECV, &recv_fn);
    set_callback(session, LIBSSH2_CALLBACK_SEND, &send_fn);
    return session;
}

/* ---- client ---- */

enum err ssh_client_new(struct ssh_client **out, struct loop *l, const struct ssh_client_conf *conf, struct errinfo *ei)
{
    static bool ready; /* the library's own state; this program has one thread that signs in */
    if (!ready && libssh2_init(0) != 0)
        return err_set(ei, ERR_ENV, "libssh2 does not start");
    ready = true;
    struct ssh_client *c = mem_zalloc(sizeof(*c));
    c->loop = l;
    c->conf = *conf;
    known_hosts_init(&c->known);
    enum err e = conf->insecure ? ERR_OK : ssh_hosts_load(c, ei);
    if (e == ERR_OK)
        *out = c;
    else
        ssh_client_free(&c);
    return e;
}

void ssh_client_free(struct ssh_client **c)
{
    if (!*c)
        return;
    known_place_done(&(*c)->place);
    known_hosts_done(&(*c)->known);
    mem_free((*c)->place_name);
    dial_free(&(*c)->dial);
    mem_free((*c)->dial_host);
    mem_free((*c)->known_file);
    MEM_FREE(*c);
}

static void deliver_end(struct ssh *s, enum err err, const struct errinfo *why)
{
    const struct ssh_ops *ops = s->ops;
    loop_io_set(&s->io, 0);
    s->dead = true;
    s->ops = NULL;
    if (ops)
        ops->on_end(s->arg, err, why);
}

void ssh_client_cancel(struct ssh_client *c, const struct ssh_login *login)
{
    for (struct ssh *s = c->connections; s; s = s->next) {
        if (s->stage == SSH_UP || (login && s->login != login))
            continue;
        s->cancelled = true;
        done_set(&s->ready);
    }
}

/* ---- after the sign-in ---- */

static void lost(struct ssh *s, int rc)
{
    struct errinfo why;
    char *text = NULL;
    errno = s->os_errno;
    if (s->os_errno == ECONNRESET || s->os_errno == EPIPE)
        err_sys(&why, ERR_RESET, "connection lost");
    else if (s->ended || rc == 0 || rc == LIBSSH2_ERROR_CHANNEL_CLOSED || rc == LIBSSH2_ERROR_SOCKET_DISCONNECT)
        err_set(&why, ERR_CLOSED, "closed by the server");
    else if (libssh2_session_last_error(s->session, &text, NULL, 0) != 0)
        err_set(&why, ERR_PROTO, "ssh: %s", text);
    else
        err_set(&why, ERR_PROTO, "ssh: error %d", rc);
    deliver_end(s, why.code, &why);
}

static void read_channel(struct ssh *s)
{
    char *scratch = s->client->scratch;
    ssize_t n;
    while ((n = libssh2_channel_read(s->channel, scratch, sizeof(s->client->scratch))) > 0 && s->ops)
        s->ops->on_data(s->arg, scratch, (size_t)n);
    if (s->ops && n != LIBSSH2_ERROR_EAGAIN && (n < 0 || libssh2_channel_eof(s->channel)))
        lost(s, (int)n);
}

/* False when nothing went: the server's window is full, keys are being renewed, or there is no more. */
static bool write_channel(struct ssh *s)
{
    bool went = false;
    while (s->ops && queue_len(&s->plain) > 0 && queue_len(&s->out) < OUT_MOST) {
        size_t n = queue_len(&s->plain);
        ssize_t took = libssh2_channel_write(s->channel, queue_front(&s->plain), n < CHUNK_MAX ? n : CHUNK_MAX);
        if (took == LIBSSH2_ERROR_EAGAIN)
            break;
        if (took < 0)
            lost(s, (int)took);
        else
            queue_took(&s->plain, (size_t)took);
        went = took > 0 || went;
    }
    return went;
}

static void pump(struct ssh *s)
{
    if (s->ops)
        read_channel(s);
    bool went;
    do {
        went = write_channel(s);
        ssh_flush(s);
    } while (went && !ssh_out_waits(s));
    if (s->ops)
        loop_io_set(&s->io, EPOLLIN | (ssh_out_waits(s) ? EPOLLOUT : 0));
}

static void pump_later(void *arg)
{
    struct ssh *s = arg;
    s->deferred = false;
    pump(s);
}

static void defer_pump(struct ssh *s)
{
    if (!s->deferred)
        loop_defer(s->client->loop, pump_later, s);
    s->deferred = true;
}

void ssh_start(struct ssh *s, const struct ssh_ops *ops, void *arg)
{
    s->ops = ops;
    s->arg = arg;
    defer_pump(s);
}

void ssh_write(struct ssh *s, const void *p, size_t n)
{
    if (!s->ops || buf_append(&s->plain.bytes, p, n) != ERR_OK)
        return;
    defer_pump(s);
}

uint64_t ssh_bytes_up(const struct ssh *s)
{
    return s->up;
}

uint64_t ssh_bytes_down(const struct ssh *s)
{
    return s->down;
}

/* ---- begin and end ---- */

static void on_io(struct io *io, uint32_t events)
{
    struct ssh *s = container_of(io, struct ssh, io);
    (void)events;
    if (s->stage == SSH_UP) {
        pump(s);
    } else {
        loop_io_set(io, 0);
        done_set(&s->ready);
    }
}

struct ssh *ssh_new(struct ssh_client *c, const struct ssh_login *login, const char *subsystem, struct mono deadline)
{
    struct ssh *s = mem_zalloc(sizeof(*s));
    s->client = c;
    s->login = login;
    s->subsystem = subsystem;
    s->deadline = deadline;
    s->io = (struct io){.fd = -1, .fn = on_io};
    buf_init(&s->line, LINE_MAX_N);
    buf_init(&s->out.bytes, QUEUE_MAX);
    buf_init(&s->plain.bytes, QUEUE_MAX);
    s->next = c->connections;
    s->at = &c->connections;
    if (s->next)
        s->next->at = &s->next;
    c->connections = s;
    return s;
}

/* The library would wait for the server's consent to the end: from here on it reads errors alone. */
static void end_session(struct ssh *s)
{
    if (s->stage == SSH_UP && !s->dead) {
        libssh2_session_disconnect(s->session, "done");
        ssh_flush(s);
    }
    s->dead = true;
    for (int tries = 0; tries < 8 && libssh2_session_free(s->session) == LIBSSH2_ERROR_EAGAIN; tries++)
        continue;
}

void ssh_close(struct ssh **out)
{
    struct ssh *s = *out;
    if (!s)
        return;
    s->ops = NULL;
    loop_undefer(s->client->loop, pump_later, s);
    loop_io_remove(&s->io);
    if (s->session)
        end_session(s);
    if (s->io.fd >= 0)
        close(s->io.fd);
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    buf_done(&s->line);
    buf_done(&s->out.bytes);
    buf_done(&s->plain.bytes);
    MEM_FREE(*out);
}
