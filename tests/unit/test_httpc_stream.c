/* Event streams of the HTTP client (cases E12, E13, and the ways a stream can end). */
#include "client.h"

struct watch {
    struct httpc_stream *stream;
    struct httpc_peer *peer;
    int opens, closes, status;
    struct buf data, error_body;
    enum err err;
    char retry_after[64];
    struct done done;
    /* what a callback does: */
    bool stop_on_open, stop_on_data, close_on_data, close_on_open, free_peer_on_close;
    struct watch *open_on_close;
};

static void watch_open(struct watch *w, struct httpc_peer *p, const char *path, int64_t idle_us);

static bool on_open(void *arg, const struct http_resp *head)
{
    struct watch *w = arg;
    w->opens++;
    w->status = head->status;
    if (w->close_on_open)
        httpc_stream_close(&w->stream);
    done_set(&w->done);
    return !w->stop_on_open;
}

static bool on_data(void *arg, const char *p, size_t n)
{
    struct watch *w = arg;
    assert_int_equal(buf_append(&w->data, p, n), ERR_OK);
    if (w->close_on_data)
        httpc_stream_close(&w->stream);
    done_set(&w->done);
    return !w->stop_on_data;
}

static void on_close(void *arg, enum err err, const struct http_resp *r, const struct errinfo *why)
{
    struct watch *w = arg;
    struct sv retry_after = r->status / 100 == 2 ? (struct sv){"", 0} : http_resp_header(r, "Retry-After");
    assert_null(w->stream);
    assert_true(err == ERR_OK || err == ERR_CANCELLED || why->msg[0]);
    w->closes++;
    w->err = err;
    w->status = r->status;
    assert_int_equal(buf_append(&w->error_body, buf_cstr(&r->body), r->body.len), ERR_OK);
    snprintf(w->retry_after, sizeof w->retry_after, SV_FMT, SV_ARG(retry_after));
    if (w->open_on_close != NULL)
        watch_open(w->open_on_close, w->peer, "/2", 0);
    if (w->free_peer_on_close)
        httpc_peer_free(&w->peer);
    done_set(&w->done);
}

static const struct httpc_stream_ops ops = {on_open, on_data, on_close};

static void watch_open(struct watch *w, struct httpc_peer *p, const char *path, int64_t idle_us)
{
    const char *const headers[] = {"Accept: text/event-stream", "Last-Event-ID: 7", NULL};
    buf_init(&w->data, 64 << 20);
    buf_init(&w->error_body, 64 << 20);
    w->peer = p;
    assert_int_equal(httpc_stream_open(&w->stream, p, path, headers, idle_us, &ops, w, &ei), ERR_OK);
}

static void watch_done(struct watch *w)
{
    buf_done(&w->data);
    buf_done(&w->error_body);
}

/* Until the stream has closed, or 5 s. */
static bool wait_closed(struct watch *w)
{
    struct mono until = mono_add(mono_now(), 5 * US_PER_S);
    while (w->closes == 0)
        if (!done_wait_until(loop, &w->done, until))
            return false;
    return true;
}

static bool wait_data(struct watch *w, size_t n)
{
    struct mono until = mono_add(mono_now(), 5 * US_PER_S);
    while (w->data.len < n)
        if (!done_wait_until(loop, &w->done, until))
            return false;
    return true;
}

/* ---- scripts ---- */

#define EVENTS "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

static void ways_to_end(void **state)
{
    (void)state;
    static const struct {
        struct stub_script script;
        int opens, status;
        enum err err;
        const char *data, *error_body, *retry_after;
    } rows[] = {
        {{EVENTS "\r\ndata: 1\n\n", false}, 1, 200, ERR_CLOSED, "data: 1\n\n", "", ""},
        {{EVENTS "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false}, 1, 200, ERR_CLOSED, "abc", "", ""},
        {{EVENTS "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false}, 1, 200, ERR_CLOSED, "abc", "", ""},
        {{EVENTS "\r\nabc", true}, 1, 200, ERR_RESET, "abc", "", ""},
        {{"HTTP/1.1 429 Slow\r\nRetry-After:  17 \r\nContent-Length: 2\r\n\r\n{}", false},
         1,
         429,
         ERR_OK,
         "",
         "{}",
         "17"},
        {{"HTTP/1.1 401 No\r\nContent-Length: 20\r\n\r\n{cut", false}, 1, 401, ERR_OK, "", "{cut", ""},
        {{"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", false}, 1, 302, ERR_OK, "", "", ""},
        {{"HTTP/1.1 204 No Content\r\n\r\n", false}, 1, 204, ERR_CLOSED, "", "", ""},
        {{"", false}, 0, 0, ERR_CLOSED, "", "", ""},
        {{"", true}, 0, 0, ERR_RESET, "", "", ""},
        {{"garbage\r\n\r\n", false}, 0, 0, ERR_PROTO, "", "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stub_script script = rows[i].script;
        struct stub *s = stub_start(stub_play, &script);
        struct httpc_peer *p = peer_at(s->url, NULL);
        struct watch w = {0};
        httpc_peer_header(p, "Cookie", "token=1");
        watch_open(&w, p, "/api/files/events?x=1", 0);
        assert_true(wait_closed(&w));
        if (w.err != rows[i].err || w.status != rows[i].status || w.opens != rows[i].opens)
            fail_msg("row %zu: %s, %d, %d opens", i, err_symbol(w.err), w.status, w.opens);
        assert_string_equal(buf_cstr(&w.data), rows[i].data);
        assert_string_equal(buf_cstr(&w.error_body), rows[i].error_body);
        assert_string_equal(w.retry_after, rows[i].retry_after);
        assert_non_null(strstr(stub_last_head(s), "GET /api/files/events?x=1 HTTP/1.1\r\n"));
        assert_non_null(strstr(stub_last_head(s), "\r\nLast-Event-ID: 7\r\n"));
        assert_non_null(strstr(stub_last_head(s), "\r\nAccept: text/event-stream\r\n"));
        assert_non_null(strstr(stub_last_head(s), "\r\nCookie: token=1\r\n"));
        assert_int_equal(s->accepted, 1); /* nothing was tried again behind our back */
        watch_done(&w);
        httpc_peer_free(&p);
        stub_stop(s);
    }
}

static void nothing_listening(void **state)
{
    (void)state;
    struct httpc_peer *p = peer_at("http://127.0.0.1:1", NULL);
    struct watch w = {0};
    watch_open(&w, p, "/", 0);
    assert_true(wait_closed(&w));
    assert_int_equal(w.err, ERR_CONNECT);
    assert_int_equal(w.opens, 0);
    watch_done(&w);
    httpc_peer_free(&p);
}

static void a_large_error_body_is_cut(void **state)
{
    (void)state;
    char *text = mem_zalloc(100001);
    memset(text, 'x', 100000);
    memcpy(text, "HTTP/1.1 500 No\r\n\r\n", 19);
    struct stub_script script = {text, false};
    struct stub *s = stub_start(stub_play, &script);
    struct httpc_peer *p = peer_at(s->url, NULL);
    struct watch w = {0};
    watch_open(&w, p, "/", 0);
    assert_true(wait_closed(&w));
    assert_int_equal(w.status, 500);
    assert_int_equal(w.err, ERR_OK);
    assert_int_equal(w.error_body.len, 4096);
    watch_done(&w);
    httpc_peer_free(&p);
    stub_stop(s);
    mem_free(text);
}

/* As a proxy compresses a stream that nobody asked it to: each event as soon as its bytes are there. The client says
 * what it has seen by ending its side. */
static void compressed(struct stub *s, int fd, int number)
{
    static const char first[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4a\x49\x2c\x49\xb4\x52\x30\xe4\xe2\x02\x00\x00\x00"
        "\xff\xff"; /* "data: 1\n\n", flushed */
    char head[8192];
    (void)number;
    if (!stub_head(s, fd, head, sizeof head))
        return;
    stub_send(fd, EVENTS "Content-Encoding: gzip\r\n\r\n");
    for (size_t i = 0; i < sizeof first - 1; i++)
        (void)!send(fd, first + i, 1, MSG_NOSIGNAL);
    stub_drain(fd);
}

static void a_compressed_stream_is_read_as_it_comes(void **state)
{
    (void)state;
    struct stub *s = stub_start(compressed, NULL);
    struct httpc_peer *p = peer_at(s->url, NULL);
    struct watch w = {0};
    watch_open(&w, p, "/", 0);
    assert_true(wait_data(&w, 9));
    assert_string_equal(buf_cstr(&w.data), "data: 1\n\n");
    assert_null(strcasestr(stub_last_head(s), "Accept-Encoding")); /* it was not asked for */
    httpc_stream_close(&w.stream);
    watch_done(&w);
    httpc_peer_free(&p);
    stub_stop(s);
}

static void a_head_without_end_is_given_up(void **state)
{
    (void)state;
    char *text = mem_zalloc(200000);
    strcpy(text, "HTTP/1.1 200 OK\r\n");
    while (strlen(text) < 150000)
        strcat(text + strlen(text),
               "X-Filler: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n");
    struct stub_script script = {text, false};
    struct stub *s = stub_start(stub_play, &script);
    struct httpc_peer *p = peer_at(s->url, NULL);
    struct watch w = {0};
    watch_open(&w, p, "/", 0);
    assert_true(wait_closed(&w));
    assert_int_equal(w.err, ERR_LIMIT);
    assert_int_equal(w.opens, 0);
    watch_done(&w);
    httpc_peer_free(&p);
    stub_stop(s);
    mem_free(text);
}

/* An answer that is refused by its head is not read on, and the owner is told that it is over. */
static void stopped_at_its_head(void **state)
{
    (void)state;
    struct stub_script script = {EVENTS "\r\ndata: 1\n\n", false};
    struct stub *s = stub_start(stub_play, &script);
    struct httpc_peer *p = peer_at(s->url, NULL);
    struct watch w = {.stop_on_open = true};
    watch_open(&w, p, "/", 0);
    assert_true(wait_closed(&w));
    assert_int_equal(w.err, ERR_CANCELLED);
    assert_int_equal(w.data.len, 0);
    watch_done(&w);
    httpc_peer_free(&p);
    stub_stop(s);
}

/* ---- streams and requests ---- */

/* A stream for /events, else an answer at once. Each connection serves one kind only. */
static void drive(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    while (stub_head(s, fd, head, sizeof head)) {
        if (strncmp(head, "GET /events", 11) == 0) {
            stub_send(fd, EVENTS "\r\n: hello\n\n");
            stub_drain(fd);
            return;
        }
        if (!stub_body(fd, NULL, stub_length(head)))
            return;
        stub_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
}

/* E12 */
static void an_open_stream_delays_nothing(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(drive, NULL);
    struct watch w[3] = {0};
    for (int i = 0; i < 3; i++) {
        watch_open(&w[i], p, "/events", 0);
        assert_true(wait_data(&w[i], 9));
    }
    int64_t least = INT64_MAX; /* what streams cost would be in each */
    for (int i = 0; i < 20; i++) {
        struct http_req req = get_of("/list");
        struct http_resp r;
        struct mono from = mono_now();
        req.method = i % 2 == 0 ? "GET" : "POST";
        req.body = i % 2 == 0 ? SV("") : SV("upload");
        req.timeout_us = 20 * US_PER_S;
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        least = ms_since(from) < least ? ms_since(from) : least;
        http_resp_done(&r);
    }
    assert_true(least < 25);
    assert_int_equal(server->accepted, 4); /* a connection each, and one for all requests */
    struct httpc_stats st;
    httpc_stats(client, &st);
    assert_int_equal(st.streams, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w[i].closes, 0);
        httpc_stream_close(&w[i].stream);
        assert_null(w[i].stream);
        watch_done(&w[i]);
    }
    loop_step(loop, mono_now());
    httpc_stats(client, &st);
    assert_int_equal(st.streams, 0);
}

static void tick_for_a_while(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    if (!stub_head(s, fd, head, sizeof head))
        return;
    stub_send(fd, EVENTS "\r\n");
    for (int i = 0; i < 12; i++) {
        stub_send(fd, ":\n");
        usleep(100000);
    }
    stub_drain(fd); /* then silence */
}

/* E13: comments keep a stream alive beyond any timeout; silence ends it. */
static void alive_while_bytes_come_dead_when_silent(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(tick_for_a_while, NULL);
    struct watch w = {0};
    struct mono from = mono_now();
    watch_open(&w, p, "/events", 700 * US_PER_MS);
    assert_true(wait_closed(&w));
    assert_int_equal(w.err, ERR_TIMEOUT);
    assert_int_equal(w.status, 200);
    assert_int_equal(w.data.len, 24);
    assert_in_range(ms_since(from), 1750, 20000);
    watch_done(&w);
}

static void a_stream_that_is_never_answered(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(stub_only_read, NULL);
    struct watch w = {0};
    struct mono from = mono_now();
    watch_open(&w, p, "/", 150 * US_PER_MS);
    assert_true(wait_closed(&w));
    assert_int_equal(w.err, ERR_TIMEOUT);
    assert_int_equal(w.status, 0);
    assert_in_range(ms_since(from), 140, 20000);
    watch_done(&w);
}

/* ---- from inside a callback ---- */

static void closing_inside_callbacks(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(drive, NULL);
    struct watch w[3] = {{.stop_on_data = true}, {.close_on_data = true}, {.close_on_open = true}};
    for (int i = 0; i < 3; i++)
        watch_open(&w[i], p, "/events", 0);
    assert_true(wait_closed(&w[0]));
    assert_int_equal(w[0].err, ERR_CANCELLED);
    struct httpc_stats st;
    do {
        loop_step(loop, mono_add(mono_now(), 1000));
        httpc_stats(client, &st);
    } while (st.streams > 0);
    assert_int_equal(w[1].closes + w[2].closes, 0); /* closed by us: no further callback */
    assert_int_equal(w[1].data.len, 9);
    assert_int_equal(w[2].data.len, 0);
    assert_int_equal(w[2].opens, 1);
    for (int i = 0; i < 3; i++)
        watch_done(&w[i]);
}

static void reconnecting_and_freeing_inside_on_close(void **state)
{
    (void)state;
    struct stub_script script = {EVENTS "\r\nx", false};
    struct stub *s = stub_start(stub_play, &script);
    struct watch second = {.free_peer_on_close = true}, first = {.open_on_close = &second};
    watch_open(&first, peer_at(s->url, NULL), "/1", 0);
    assert_true(wait_closed(&first));
    assert_true(wait_closed(&second));
    assert_null(second.peer);
    assert_int_equal(s->accepted, 2);
    watch_done(&first);
    watch_done(&second);
    stub_stop(s);
}

static void freeing_a_peer_closes_its_streams(void **state)
{
    (void)state;
    struct stub *s = stub_start(drive, NULL);
    struct httpc_peer *p = peer_at(s->url, NULL), *q = peer_at(s->url, NULL);
    struct watch w[4] = {0};
    for (int i = 0; i < 3; i++) {
        watch_open(&w[i], i < 2 ? p : q, "/events", US_PER_S);
        assert_true(wait_data(&w[i], 9));
    }
    watch_open(&w[3], p, "/events", US_PER_S); /* not even started */
    httpc_peer_free(&p);
    struct httpc_stats st;
    do {
        loop_step(loop, mono_add(mono_now(), 1000));
        httpc_stats(client, &st);
    } while (st.streams > 1);
    assert_int_equal(w[0].closes + w[1].closes + w[2].closes + w[3].closes, 0);
    assert_int_equal(s->accepted, 3);
    httpc_peer_free(&q); /* its stream is freed with the client, in teardown */
    for (int i = 0; i < 4; i++)
        watch_done(&w[i]);
    stub_stop(s);
}

static void many_streams(void **state)
{
    (void)state;
    enum { N = 150 };
    static struct watch w[N];
    memset(w, 0, sizeof w);
    struct stub *s = stub_start(drive, NULL);
    struct httpc_peer *p[N];
    for (int i = 0; i < N; i++) {
        p[i] = peer_at(s->url, NULL);
        watch_open(&w[i], p[i], "/events", 10 * US_PER_S);
    }
    for (int i = 0; i < N; i++)
        assert_true(wait_data(&w[i], 9));
    assert_int_equal(s->accepted, N);
    for (int i = 0; i < N; i++) {
        if (i % 2 == 0)
            httpc_stream_close(&w[i].stream);
        httpc_peer_free(&p[i]);
        watch_done(&w[i]);
    }
    stub_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(ways_to_end),
        CASE(nothing_listening),
        CASE(a_large_error_body_is_cut),
        CASE(a_compressed_stream_is_read_as_it_comes),
        CASE(a_head_without_end_is_given_up),
        CASE(stopped_at_its_head),
        CASE(an_open_stream_delays_nothing),
        CASE(alive_while_bytes_come_dead_when_silent),
        CASE(a_stream_that_is_never_answered),
        CASE(closing_inside_callbacks),
        CASE(reconnecting_and_freeing_inside_on_close),
        CASE(freeing_a_peer_closes_its_streams),
        CASE(many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
