/* A hostile server behind every call of the client: the first byte chooses the dialect and the call, the rest is what
 * the server answers, message by message with a NUL between them, each followed by the end of its connection. Whatever
 * comes, the call ends, says how, and what it says can be shown. */
#include "base/utf8.h"
#include "drive/api/api.h"
#include "drive/target.h"
#include "fuzz.h"
#include "net/loop.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *loop;
static struct httpc *http;
static char urls[2][64]; /* by dialect: tma, webdav */

/* ---- the server: on the same loop ---- */

static struct io listener;
static struct sv answers;    /* those still to be given */
static const char *greeting; /* before them; NULL: none */

struct conn {
    struct io io;
    char in[65536];
    size_t n;
};

static void conn_close(struct conn *c)
{
    loop_io_remove(&c->io);
    close(c->io.fd);
    mem_free(c);
}

/* Head and body are here. */
static bool asked(const struct conn *c)
{
    const char *end = memmem(c->in, c->n, "\r\n\r\n", 4);
    if (!end)
        return false;
    size_t head = (size_t)(end - c->in) + 4, body = c->n - head;
    const char *length = strcasestr(c->in, "\r\nContent-Length:");
    if (length && length < end)
        return body >= strtoul(length + 17, NULL, 10);
    const char *chunked = strcasestr(c->in, "\r\nTransfer-Encoding:");
    return !chunked || chunked > end || (c->n >= 5 && memcmp(c->in + c->n - 5, "0\r\n\r\n", 5) == 0);
}

/* libcurl up to 8.0 reads freed memory where a handle's second answer begins with a folded line (its issue 11101): not
 * ours to find again and again. */
static bool folds_first_line(struct sv answer)
{
    const char *end = memchr(answer.p, '\n', answer.n);
    size_t at = end ? (size_t)(end - answer.p) + 1 : answer.n;
    return at < answer.n && (answer.p[at] == ' ' || answer.p[at] == '\t');
}

static void on_conn(struct io *io, uint32_t events)
{
    struct conn *c = container_of(io, struct conn, io);
    ssize_t got = recv(io->fd, c->in + c->n, sizeof(c->in) - 1 - c->n, 0);
    struct sv answer = SV("");
    (void)events;
    if (got > 0) {
        c->n += (size_t)got;
        c->in[c->n] = '\0';
        if (!asked(c) && c->n < sizeof(c->in) - 1)
            return;
        if (greeting)
            answer = sv_of(greeting);
        else
            (void)sv_split(&answers, '\0', &answer);
        greeting = NULL;
        if (answer.n > 0 && !folds_first_line(answer))
            (void)!send(io->fd, answer.p, answer.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    conn_close(c);
}

static void on_listener(struct io *io, uint32_t events)
{
    (void)events;
    for (int fd; (fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct conn *c = mem_zalloc(sizeof(*c));
        c->io = (struct io){.fd = fd, .fn = on_conn};
        MUST(loop_io_add(loop, &c->io, EPOLLIN, NULL) == ERR_OK);
    }
}

static void start(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    listener = (struct io){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .fn = on_listener};
    MUST(listener.fd >= 0 && bind(listener.fd, (struct sockaddr *)&at, n) == 0 && listen(listener.fd, 64) == 0);
    MUST(getsockname(listener.fd, (struct sockaddr *)&at, &n) == 0);
    MUST(loop_new(&loop, NULL) == ERR_OK && httpc_new(&http, loop, &(struct httpc_conf){0}, NULL) == ERR_OK);
    MUST(loop_io_add(loop, &listener, EPOLLIN, NULL) == ERR_OK);
    snprintf(urls[0], sizeof(urls[0]), "http://127.0.0.1:%d/pre", ntohs(at.sin_port));
    snprintf(urls[1], sizeof(urls[1]), "webdav://127.0.0.1:%d/remote.php/dav", ntohs(at.sin_port));
}

/* ---- the calls ---- */

static struct api *a;
static struct arena *mem;
static struct api_result r;
static const char *const ids[] = {"a", "b"};
static const struct content body = {.size = 3, .literal = {"abc", 3}};

static void each_is_whole(const struct drive_listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        MUST(l->items[i].id && l->items[i].id[0] && l->items[i].name && l->items[i].name[0]);
}

static void call_list(void)
{
    struct drive_listing l = {0};
    if (api_list(a, NULL, mem, &l, &r) == ERR_OK && r.outcome == OUT_OK)
        each_is_whole(&l);
}

static void call_list_folder(void)
{
    struct drive_listing l = {0};
    if (api_list(a, "a", mem, &l, &r) == ERR_OK && r.outcome == OUT_OK)
        each_is_whole(&l);
}

static void call_info(void)
{
    struct drive_file f = {0};
    struct api_totals t;
    (void)!api_info(a, "a", mem, &f, &t, &r);
}

static void call_search(void)
{
    struct drive_listing l = {0};
    if (api_search(a, "x", 5, mem, &l, &r) == ERR_OK && r.outcome == OUT_OK)
        each_is_whole(&l);
}

static void call_trash_list(void)
{
    struct drive_listing l = {0};
    if (api_trash_list(a, mem, &l, &r) == ERR_OK && r.outcome == OUT_OK)
        each_is_whole(&l);
}

static void call_totals(void)
{
    struct api_totals t;
    struct api_storage s;
    (void)!api_stats(a, &t, &r);
    (void)!api_storage(a, &s, &r);
}

static void call_changes(void)
{
    struct api_changes c = {0};
    (void)!api_changes(a, "e-1", mem, &c, &r);
    MUST(memchr(c.cursor, '\0', sizeof(c.cursor)));
}

static void call_upload(void)
{
    const struct api_upload u[2] = {{.name = "n.txt", .content = &body}, {.name = "m.txt", .content = &body}};
    struct drive_file f[2] = {{0}, {0}};
    (void)!api_upload(a, u, mem, f, &r);
    (void)!api_upload_bulk(a, u, 2, mem, f, &r);
}

static void call_replace(void)
{
    struct drive_file f = {0};
    (void)!api_replace(a, "a", "a.txt", "v1", "lock", &body, mem, &f, &r);
}

static int sink(void *arg, const char *p, size_t n)
{
    size_t *total = arg;
    (void)p;
    *total += n;
    return 0;
}

static void call_download(void)
{
    size_t total = 0;
    char version[64] = "";
    (void)!api_download(a, "a", 1, 10, sink, &total, version, sizeof(version), &r);
    MUST(strlen(version) < sizeof(version));
}

static void call_lock(void)
{
    struct api_lock lock = {0};
    (void)!api_lock(a, "a", 60, NULL, &lock, &r);
    MUST(memchr(lock.id, '\0', sizeof(lock.id)) && memchr(lock.version, '\0', sizeof(lock.version)));
    (void)!api_unlock(a, "a", "lock", &r);
}

static void call_write(void)
{
    struct drive_file f = {0};
    (void)!api_folder_create(a, "a", "new", mem, &f, &r);
    (void)!api_rename(a, "a", "other", mem, &f, &r);
    (void)!api_move(a, ids, 2, NULL, &r);
}

static void call_copy(void)
{
    struct api_job job = {0};
    if (api_copy(a, ids, 1, NULL, &job, &r) == ERR_OK && r.outcome == OUT_OK && !job.done)
        (void)!api_job_poll(a, &job, mem, &r);
    MUST(memchr(job.id, '\0', sizeof(job.id)));
}

static void call_trash(void)
{
    struct api_job job = {0};
    (void)!api_trash(a, ids, 1, &job, &r);
    (void)!api_restore(a, ids, 1, &job, &r);
    (void)!api_purge(a, ids, 1, &job, &r);
}

static void call_users(void)
{
    struct api_users users = {0};
    bool enabled;
    if (api_sub_users(a, mem, &users, &r) == ERR_OK && r.outcome == OUT_OK)
        for (size_t i = 0; i < users.n; i++)
            MUST(users.items[i].id && users.items[i].email);
    (void)!api_accounts_made(a, mem, &users, &r);
    (void)!api_signup_status(a, &enabled, &r);
}

static void call_session(void)
{
    (void)!api_sign_in(a, "u", "p", &r);
    (void)!api_heartbeat(a, &r);
}

static void call_probe(void)
{
    (void)!api_probe(a, &r);
}

static bool closed;

static void on_event(void *arg, const struct api_event *ev)
{
    (void)arg;
    MUST(ev->type && ev->cursor && ev->op <= OP_COUNT);
}

static void on_open(void *arg)
{
    (void)arg;
}

static void on_close(void *arg, const struct api_result *why)
{
    (void)arg;
    r = *why;
    closed = true;
}

static void call_stream(void)
{
    static const struct api_stream_ops ops = {on_open, on_event, on_close};
    struct api_stream *s = NULL;
    struct api_stream_memory memory = {.last_event_id = mem_strdup("e-1")};
    closed = false;
    if (api_stream_open(&s, a, &memory, &ops, NULL, NULL) != ERR_OK)
        goto out;
    for (int i = 0; i < 1000 && !closed; i++)
        loop_step(loop, mono_add(mono_now(), US_PER_S));
    MUST(closed && !s && r.outcome != OUT_OK);
out:
    mem_free(memory.last_event_id);
}

static void (*const calls[])(void) = {call_list,    call_list_folder, call_info,   call_search,  call_trash_list,
                                      call_totals,  call_changes,     call_upload, call_replace, call_download,
                                      call_lock,    call_write,       call_copy,   call_trash,   call_users,
                                      call_session, call_probe,       call_stream};

#define ROOT                                                                                                           \
    "HTTP/1.1 207 Multi-Status\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n"                          \
    "<d:multistatus xmlns:d=\"DAV:\"><d:response><d:href>/remote.php/dav/</d:href><d:propstat><d:prop>"                \
    "<d:resourcetype><d:collection/></d:resourcetype></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat>"       \
    "</d:response></d:multistatus>"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct target_login login = {.name = (char[]){"u"}, .password = (char[]){"p"}};
    struct target target = {.logins = &login, .n_logins = 1};
    if (size == 0 || size > 16384)
        return 0;
    if (!loop)
        start();
    unsigned dialect = data[0] & 1, call = (data[0] >> 1) % ARRAY_LEN(calls);
    target.url = urls[dialect];
    const struct api_conf conf = {
        .base_url = urls[dialect], .target = &target, .loop = loop, .http = http, .timeout_us = 5 * US_PER_S};
    mem = arena_new(4096);
    MUST(api_new(&a, &conf, NULL) == ERR_OK);
    answers = (struct sv){(const char *)data + 1, size - 1};
    greeting = dialect ? ROOT : NULL;
    if (dialect)
        (void)!api_sign_in(a, "u", "p", &r);
    greeting = NULL;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        api_place(a, ids[i], NULL, ids[i]);
    calls[call]();
    MUST(r.outcome < OUT_COUNT && memchr(r.reason, '\0', sizeof(r.reason)) && utf8_valid(sv_of(r.reason)));
    for (const char *c = r.reason; *c; c++)
        MUST((unsigned char)*c >= 0x20 && *c != 0x7f);
    api_free(&a);
    arena_free(&mem);
    return 0;
}
