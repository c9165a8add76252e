/* Uploads: multipart bodies, and refusals that come before the body was sent (cases U01, U04, L15). */
#include "client.h"

#include <sys/resource.h>

/* A source of bytes that knows where it is. */
struct source {
    uint64_t size, fail_at, pulled;
};

static char source_byte(uint64_t i)
{
    return (char)('a' + i % 23);
}

static int64_t source_read(void *arg, uint64_t offset, char *dst, size_t cap)
{
    struct source *src = arg;
    if (src->fail_at != 0 && offset >= src->fail_at)
        return -1;
    uint64_t left = src->size - offset;
    size_t n = left < cap ? (size_t)left : cap;
    for (size_t i = 0; i < n; i++)
        dst[i] = source_byte(offset + i);
    src->pulled += n;
    return (int64_t)n;
}

/* ---- what goes over the wire ---- */

/* Keeps the whole request body, decoded when it is chunked, for the test to look at. */
struct kept {
    struct buf body;
    bool chunked;
};

static bool read_line(int fd, char *line, size_t cap)
{
    size_t n = 0;
    while (n + 1 < cap && recv(fd, line + n, 1, 0) == 1)
        if (line[n++] == '\n')
            break;
    line[n] = '\0';
    return n > 0;
}

static void read_chunks(int fd, struct buf *body)
{
    char line[100];
    while (read_line(fd, line, sizeof line)) {
        long n = strtol(line, NULL, 16);
        if (buf_reserve(body, (size_t)n + 2) != ERR_OK || !stub_body(fd, body->data + body->len, n + 2))
            return;
        if (n == 0)
            return;
        body->len += (size_t)n;
    }
}

static void keep(struct stub *s, int fd, int number)
{
    struct kept *k = s->arg;
    char head[8192];
    (void)number;
    while (stub_head(s, fd, head, sizeof head)) {
        long n = stub_length(head);
        k->chunked = strcasestr(head, "transfer-encoding: chunked") != NULL;
        buf_reset(&k->body);
        if (n > 0 && buf_reserve(&k->body, (size_t)n) == ERR_OK && stub_body(fd, k->body.data, n))
            k->body.len = (size_t)n;
        if (k->chunked)
            read_chunks(fd, &k->body);
        stub_send(fd, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}");
    }
}

static void multipart_bodies(void **state)
{
    (void)state;
    struct kept k = {.body = BUF_INIT(64 << 20)};
    struct stub *s = stub_start(keep, &k);
    struct httpc_peer *p = peer_at(s->url, NULL);
    for (int unknown = 0; unknown < 2; unknown++) {
        struct source src = {.size = 300000};
        const struct http_part parts[] = {
            {.name = "parentId", .value = SV("abc")},
            {.name = "empty", .value = SV("")},
            {.name = "meta", .value = SV("{}"), .type = "application/json"},
            {.name = "file",
             .filename = "a \"q\"\r\n%22\xF0\x9F\x8C\x8D.txt",
             .type = "text/plain",
             .read = source_read,
             .arg = &src,
             .size = unknown ? -1 : 300000},
            {.name = "tail", .value = SV("t\r\n--x")},
        };
        struct http_req req = get_of("/up");
        struct http_resp r;
        req.method = "POST";
        req.parts = parts;
        req.n_parts = ARRAY_LEN(parts);
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        assert_int_equal(r.status, 201);
        assert_int_equal(k.chunked, unknown);
        assert_null(strstr(stub_last_head(s), "Expect"));
        assert_non_null(strstr(stub_last_head(s), "multipart/form-data; boundary="));

        char boundary[100];
        assert_int_equal(sscanf(strstr(stub_last_head(s), "boundary=") + 9, "%99[^\r;]", boundary), 1);
        struct buf want = BUF_INIT(64 << 20);
        enum err err =
            buf_appendf(&want, "--%s\r\nContent-Disposition: form-data; name=\"parentId\"\r\n\r\nabc\r\n", boundary);
        err |= buf_appendf(&want, "--%s\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n", boundary);
        err |= buf_appendf(
            &want,
            "--%s\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{}\r\n",
            boundary);
        err |= buf_appendf(&want,
                           "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a "
                           "%%22q%%22%%0D%%0A%%22\xF0\x9F\x8C\x8D.txt\"\r\nContent-Type: text/plain\r\n\r\n",
                           boundary);
        for (uint64_t i = 0; i < src.size; i++)
            err |= buf_append_char(&want, source_byte(i));
        err |= buf_appendf(&want,
                           "\r\n--%s\r\nContent-Disposition: form-data; name=\"tail\"\r\n\r\nt\r\n--x\r\n--%s--\r\n",
                           boundary, boundary);
        assert_int_equal(err, ERR_OK);
        assert_int_equal(k.body.len, want.len);
        assert_memory_equal(k.body.data, want.data, want.len);
        assert_in_range(r.bytes_up, want.len, want.len + (unknown ? 100 : 0)); /* with the chunks' heads */
        buf_done(&want);
        http_resp_done(&r);
    }
    assert_int_equal(s->accepted, 1);
    httpc_peer_free(&p);
    stub_stop(s);
    buf_done(&k.body);
}

static void plain_bodies_of_any_size(void **state)
{
    (void)state;
    struct kept k = {.body = BUF_INIT(64 << 20)};
    struct stub *s = stub_start(keep, &k);
    struct httpc_peer *p = peer_at(s->url, NULL);
    static const size_t sizes[] = {1, 32 << 10, (32 << 10) + 1, 2 << 20, 0};
    char *body = mem_alloc(2 << 20);
    for (size_t i = 0; i < 2 << 20; i++)
        body[i] = source_byte(i * 7);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct http_req req = get_of("/up");
        struct http_resp r;
        req.method = "PUT";
        req.body = (struct sv){body, sizes[i]};
        req.content_type = "application/octet-stream";
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        assert_int_equal(k.body.len, sizes[i]);
        if (sizes[i] > 0)
            assert_memory_equal(k.body.data, body, sizes[i]);
        assert_non_null(strstr(stub_last_head(s), "Content-Type: application/octet-stream\r\n"));
        assert_null(strstr(stub_last_head(s), "Expect"));
        assert_int_equal(r.bytes_up, sizes[i]);
        http_resp_done(&r);
    }
    assert_int_equal(s->accepted, 1);
    mem_free(body);
    httpc_peer_free(&p);
    stub_stop(s);
    buf_done(&k.body);
}

static void swallow_body(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    while (stub_head(s, fd, head, sizeof head) && stub_body(fd, NULL, stub_length(head)))
        stub_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static void a_huge_upload_stays_small_in_memory(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(swallow_body, NULL);
    struct source src = {.size = 100 << 20};
    struct http_part part = {.name = "file", .filename = "x", .read = source_read, .arg = &src, .size = 100 << 20};
    struct http_req req = get_of("/up");
    struct http_resp r;
    struct rusage before, after;
    req.method = "POST";
    req.parts = &part;
    req.n_parts = 1;
    req.timeout_us = 60 * US_PER_S;
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(perform(p, &req, &r), ERR_OK);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(src.pulled, src.size);
    assert_true(after.ru_maxrss - before.ru_maxrss < 8 * 1024);
    http_resp_done(&r);
}

static void a_source_that_fails(void **state)
{
    (void)state;
    struct httpc_peer *p = served_by(swallow_body, NULL);
    struct source src = {.size = 10 << 20, .fail_at = 1 << 20};
    struct http_part part = {.name = "file", .filename = "x", .read = source_read, .arg = &src, .size = 10 << 20};
    struct http_req req = get_of("/up");
    struct http_resp r;
    req.method = "POST";
    req.parts = &part;
    req.n_parts = 1;
    assert_int_equal(perform(p, &req, &r), ERR_CANCELLED);
    assert_int_equal(r.status, 0);
    http_resp_done(&r);
}

/* ---- U01: refused before the body was sent ---- */

struct refusal {
    const char *answer;
    int delay_ms;
    bool drain; /* a kind server: it reads on for a while */
};

static void refuse_and_close(struct stub *s, int fd, int number)
{
    const struct refusal *how = s->arg;
    char head[8192];
    (void)number;
    if (!stub_head(s, fd, head, sizeof head))
        return;
    usleep((useconds_t)how->delay_ms * 1000);
    stub_send(fd, how->answer);
    if (how->drain) {
        shutdown(fd, SHUT_WR);
        stub_drain(fd);
    }
    /* closed with unread data: the kernel sends a reset */
}

enum { ROUNDS = 30, UPLOAD = 8 << 20 };
struct attempt {
    struct httpc_peer *peer;
    bool multipart;
    const char *body;
    enum err err;
    int status;
    char reason[100], message[256];
    uint64_t pulled;
};

static void upload(void *arg)
{
    struct attempt *a = arg;
    struct source src = {.size = UPLOAD};
    struct http_part part = {.name = "file", .filename = "x", .read = source_read, .arg = &src, .size = UPLOAD};
    struct http_req req = get_of("/up");
    struct http_resp r;
    struct errinfo why = {0};
    req.method = "POST";
    if (a->multipart) {
        req.parts = &part;
        req.n_parts = 1;
    } else {
        req.body = (struct sv){a->body, UPLOAD};
    }
    a->err = httpc_perform(a->peer, &req, &r, &why);
    a->status = r.status;
    a->pulled = a->multipart ? src.pulled : r.bytes_up;
    snprintf(a->reason, sizeof a->reason, "%.99s", buf_cstr(&r.body));
    snprintf(a->message, sizeof a->message, "%s", why.msg);
    http_resp_done(&r);
}

static void early_refusals_arrive(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: 28\r\nConnection: "
        "close\r\n\r\n{\"message\":\"quota exceeded\"}",
        "HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{\"message\":\"quota "
        "exceeded\"}",
        "HTTP/1.1 413 Too Large\r\nConnection: close\r\n\r\n{\"message\":\"quota exceeded\"}",
        "HTTP/1.1 413 Too Large\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1c\r\n{\"message\":\"quota "
        "exceeded\"}\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Too Large\r\nContent-Length: 28\r\n\r\n{\"message\":\"quota "
        "exceeded\"}",
    };
    static const int delays[] = {0, 20, 200};
    static struct attempt attempts[ROUNDS];
    char *body = mem_alloc(UPLOAD);
    memset(body, 'x', UPLOAD);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        for (size_t d = 0; d < ARRAY_LEN(delays); d++)
            for (int drain = 0; drain < 2; drain++) {
                if (delays[d] == 200 && i > 1)
                    continue;
                struct refusal how = {answers[i], delays[d], drain};
                struct stub *s = stub_start(refuse_and_close, &how);
                struct group g = {0};
                for (int k = 0; k < ROUNDS; k++) {
                    attempts[k] =
                        (struct attempt){.peer = peer_at(s->url, NULL), .multipart = k % 2 == 0, .body = body};
                    group_spawn(loop, &g, upload, &attempts[k]);
                }
                group_wait(loop, &g);
                for (int k = 0; k < ROUNDS; k++) {
                    struct attempt *a = &attempts[k];
                    if (a->err != ERR_OK || a->status != 413 ||
                        strcmp(a->reason, "{\"message\":\"quota exceeded\"}") != 0)
                        fail_msg("answer %zu, %d ms, drain %d, round %d: %s, %d, %s, %s", i, delays[d], drain, k,
                                 err_symbol(a->err), a->status, a->reason, a->message);
                    assert_true(a->pulled < UPLOAD); /* the upload was cut */
                    assert_string_equal(a->message, "");
                    httpc_peer_free(&a->peer);
                }
                stub_stop(s);
            }
    mem_free(body);
}

/* U08: the announced length beyond 2 and 4 GiB. */
static void long_bodies_are_announced(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2147483647, 2147483648, 4294967295, 4294967296, 4294967297};
    struct refusal how = {.answer = "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"};
    struct httpc_peer *p = served_by(refuse_and_close, &how);
    int64_t framing = 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct source src = {.size = sizes[i]};
        struct http_part part = {
            .name = "file", .filename = "x", .read = source_read, .arg = &src, .size = (int64_t)sizes[i]};
        struct http_req req = get_of("/up");
        struct http_resp r;
        req.method = "POST";
        req.parts = &part;
        req.n_parts = 1;
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        assert_int_equal(r.status, 413);
        http_resp_done(&r);
        int64_t announced = stub_length(stub_last_head(server));
        framing = i == 0 ? announced - 1 : framing;
        assert_true(announced == (int64_t)sizes[i] + framing);
    }
}

/* The next request goes on: no cut connection is used again. */
static void refuse_then_serve(struct stub *s, int fd, int number)
{
    char head[8192];
    if (number % 2 == 0) {
        if (stub_head(s, fd, head, sizeof head))
            stub_send(fd, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
        return;
    }
    swallow_body(s, fd, number);
}

static void after_a_refusal_the_peer_goes_on(void **state)
{
    (void)state;
    struct stub *s = stub_start(refuse_then_serve, NULL);
    struct attempt a = {.peer = peer_at(s->url, NULL), .multipart = true};
    for (int i = 0; i < 3; i++) {
        upload(&a);
        assert_int_equal(a.status, i == 0 ? 403 : 200);
    }
    assert_int_equal(s->accepted, 2);
    httpc_peer_free(&a.peer);
    stub_stop(s);
}

/* An upload cut without an answer is no answer. */
static void cut_without_a_word(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    if (stub_head(s, fd, head, sizeof head))
        stub_send(fd, s->arg != NULL ? s->arg : "");
}

static void a_reset_without_an_answer_is_an_error(void **state)
{
    (void)state;
    static char half_head[] = "HTTP/1.1 413 Too La";
    for (int round = 0; round < 20; round++) { /* the reset comes at another point of the upload each time */
        int half = round % 2;
        struct stub *s = stub_start(cut_without_a_word, half ? half_head : NULL);
        struct attempt a = {.peer = peer_at(s->url, NULL), .multipart = true};
        upload(&a);
        if (a.err != ERR_RESET && a.err != ERR_CLOSED && a.err != ERR_PROTO)
            fail_msg("half %d: %s, %d, %s", half, err_symbol(a.err), a.status, a.message);
        assert_int_equal(a.status, 0);
        assert_true(a.message[0] != '\0');
        httpc_peer_free(&a.peer);
        stub_stop(s);
    }
}

/* ---- Expect: 100-continue ---- */

static void expect_scripts(struct stub *s, int fd, int number)
{
    const char *kind = s->arg;
    char head[8192];
    (void)number;
    while (stub_head(s, fd, head, sizeof head)) {
        bool asked = strstr(head, "Expect: 100-continue\r\n") != NULL;
        if (strcmp(kind, "refuses") == 0 && asked) {
            stub_send(fd, "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno");
            stub_drain(fd);
            return;
        }
        if (strcmp(kind, "unknown") == 0 && asked) {
            stub_send(fd, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
            continue;
        }
        if (strcmp(kind, "answers") == 0 && asked)
            stub_send(fd, "HTTP/1.1 100 Continue\r\n\r\n");
        if (!stub_body(fd, NULL, stub_length(head)))
            return;
        stub_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
}

static void expectations(void **state)
{
    (void)state;
    static const struct {
        char kind[10];
        bool expect;
        int status, min_ms, max_ms;
        bool body_sent;
    } rows[] = {
        {"answers", true, 200, 0, 500, true},
        {"silent", true, 200, 900, 1500, true}, /* L15: waits one second, then sends */
        {"silent", false, 200, 0, 500, true},
        {"refuses", true, 413, 0, 500, false},
        {"unknown", true, 200, 0, 500, true}, /* U04: once more without */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char kind[10];
        memcpy(kind, rows[i].kind, sizeof kind);
        struct stub *s = stub_start(expect_scripts, kind);
        struct httpc_peer *p = peer_at(s->url, NULL);
        for (int multipart = 0; multipart < 2; multipart++) {
            struct source src = {.size = 100000};
            struct http_part part = {.name = "f", .filename = "x", .read = source_read, .arg = &src, .size = 100000};
            struct http_req req = get_of("/up");
            struct http_resp r;
            req.method = "POST";
            req.body = SV("0123456789");
            req.parts = &part;
            req.n_parts = (size_t)multipart;
            req.expect_100 = rows[i].expect;
            struct mono from = mono_now();
            if (perform(p, &req, &r) != ERR_OK)
                fail_msg("%s, multipart %d: %s", kind, multipart, ei.msg);
            assert_int_equal(r.status, rows[i].status);
            assert_in_range(ms_since(from), rows[i].min_ms, rows[i].max_ms);
            assert_int_equal(r.bytes_up > 0, rows[i].body_sent);
            assert_true(strcmp(rows[i].kind, "refuses") != 0 || src.pulled == 0);
            http_resp_done(&r);
        }
        httpc_peer_free(&p);
        stub_stop(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(multipart_bodies),
        CASE(plain_bodies_of_any_size),
        CASE(a_huge_upload_stays_small_in_memory),
        CASE(a_source_that_fails),
        CASE(early_refusals_arrive),
        CASE(long_bodies_are_announced),
        CASE(after_a_refusal_the_peer_goes_on),
        CASE(a_reset_without_an_answer_is_an_error),
        CASE(expectations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
