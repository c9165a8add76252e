/* Request heads: what is taken, what is refused and how, the same at every split of the bytes. */
#include "server/http/chunked.h"
#include "server/http/head.h"
#include "unit.h"
#include <string.h>

static const struct {
    const char *text;
    int status; /* 0: fine */
    const char *method, *path, *query;
    int64_t length;
    bool chunked, keep_alive, expect_100;
} heads[] = {
    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, "GET", "/", "", -1, false, true, false},
    {"\r\n\r\nGET /a?b=c?d HTTP/1.1\r\nHost: a\r\n\r\n", 0, "GET", "/a", "b=c?d", -1, false, true, false},
    {"GET /a#b?c HTTP/1.1\r\nHost: a\r\n\r\n", 0, "GET", "/a", "", -1, false, true, false},
    {"GET http://h:1/p?q HTTP/1.1\r\nHost: h\r\n\r\n", 0, "GET", "/p", "q", -1, false, true, false},
    {"GET http://h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 0, "GET", "/", "", -1, false, true, false},
    {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 0, "OPTIONS", "*", "", -1, false, true, false},
    {"GET / HTTP/1.0\r\n\r\n", 0, "GET", "/", "", -1, false, false, false},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 0, "GET", "/", "", -1, false, true, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0, "GET", "/", "", -1, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length:   12  \r\n\r\n", 0, "POST", "/u", "", 12, false, true, false},
    {"POST /u HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: Chunked\r\nExpect: 100-Continue\r\n\r\n", 0, "POST", "/u", "",
     -1, true, true, true},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n", 0, "POST", "/u", "", INT64_MAX,
     false, true, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 5,5\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n", 400, NULL, NULL, NULL, 0, false,
     false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", 400, NULL, NULL, NULL, 0, false,
     false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400, NULL, NULL, NULL, 0, false,
     false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400, NULL, NULL, NULL, 0,
     false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501, NULL, NULL,
     NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, NULL, NULL, NULL, 0, false, false,
     false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 501, NULL, NULL, NULL, 0, false, false,
     false},
    {"POST /u HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505, NULL, NULL, NULL, 0, false, false, false},
    /* Each a way to be read differently by two servers. */
    {"GET / HTTP/1.1\nHost: a\n\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\n\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"get / HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01z\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7fz\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"GET / HTTP/1.1\r\nHost: [::1]:80\r\nX:\tb\tc\xC3\xA9\r\n\r\n", 0, "GET", "/", "", -1, false, true, false},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 0, "GET", "/", "", -1, false, true, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400, NULL, NULL, NULL, 0,
     false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 501, NULL, NULL, NULL, 0, false,
     false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 501, NULL, NULL, NULL, 0, false, false,
     false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", 501, NULL, NULL, NULL, 0, false, false,
     false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0b"
     "chunked\r\n\r\n",
     400, NULL, NULL, NULL, 0, false, false, false},
    {"POST /u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 501, NULL, NULL, NULL, 0, false, false, false},
    {"GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n", 400, NULL, NULL, NULL, 0, false, false, false},
    {"\x16\x03\x01\x02", 400, NULL, NULL, NULL, 0, false, false, false},
};

/* Feeds text cut at the given place, then whatever follows it in one piece. Returns how many bytes the head took. */
static size_t feed_cut(struct head *h, const char *text, size_t n, size_t cut, enum head_state *state)
{
    size_t used, total = 0;
    *state = head_feed(h, text, cut, &used);
    total += used;
    if (*state == HEAD_MORE) {
        assert_int_equal(used, cut);
        *state = head_feed(h, text + cut, n - cut, &used);
        total += used;
    }
    return total;
}

static void check_head(struct head *h, size_t i)
{
    const struct head_info *info = head_info(h);
    assert_string_equal(info->method, heads[i].method);
    assert_true(sv_eq_cstr(info->path, heads[i].path));
    assert_true(sv_eq_cstr(info->query, heads[i].query));
    assert_int_equal(info->content_length, heads[i].length);
    assert_int_equal(info->chunked, heads[i].chunked);
    assert_int_equal(info->keep_alive, heads[i].keep_alive);
    assert_int_equal(info->expect_100, heads[i].expect_100);
}

static void test_heads_at_every_split(void **state)
{
    (void)state;
    struct head *h = head_new();
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        size_t n = strlen(heads[i].text);
        for (size_t cut = 0; cut <= n; cut++) {
            enum head_state end;
            head_reset(h);
            feed_cut(h, heads[i].text, n, cut, &end);
            if (heads[i].status) {
                if (end != HEAD_BAD || head_problem_status(h) != heads[i].status)
                    fail_msg("head %zu cut at %zu: state %d, status %d (%s)", i, cut, end, head_problem_status(h),
                             head_problem(h));
            } else {
                if (end != HEAD_DONE)
                    fail_msg("head %zu cut at %zu: %s", i, cut, head_problem(h));
                check_head(h, i);
            }
        }
    }
    head_free(&h);
    assert_null(h);
}

static void test_stops_at_its_end(void **state)
{
    (void)state;
    static const char text[] = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n";
    size_t head_len = strlen(text) - strlen("abcGET /b HTTP/1.1\r\n");
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        struct head *h = head_new();
        enum head_state end;
        assert_int_equal(feed_cut(h, text, strlen(text), cut, &end), head_len);
        assert_int_equal(end, HEAD_DONE);
        head_free(&h);
    }
}

static void test_limits(void **state)
{
    (void)state;
    static char text[64 * 1024];
    struct head *h = head_new();
    size_t used;

    int n = snprintf(text, sizeof text, "GET /");
    memset(text + n, 'a', 20000);
    assert_int_equal(head_feed(h, text, 20005, &used), HEAD_BAD);
    assert_int_equal(head_problem_status(h), 414);

    head_reset(h);
    n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    memset(text + n, 'a', 20000);
    assert_int_equal(head_feed(h, text, (size_t)n + 20000, &used), HEAD_BAD);
    assert_int_equal(head_problem_status(h), 431);

    for (int fields = 99; fields <= 100; fields++) {
        head_reset(h);
        n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (int i = 0; i < fields; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "X%d: y\r\n", i);
        n += snprintf(text + n, sizeof text - (size_t)n, "\r\n");
        assert_int_equal(head_feed(h, text, (size_t)n, &used), fields == 99 ? HEAD_DONE : HEAD_BAD);
    }
    assert_int_equal(head_problem_status(h), 431);
    head_free(&h);
}

static void test_knows_when_it_started(void **state)
{
    (void)state;
    struct head *h = head_new();
    size_t used;
    assert_false(head_started(h));
    assert_int_equal(head_feed(h, "\r\n", 2, &used), HEAD_MORE);
    assert_false(head_started(h));
    assert_int_equal(head_feed(h, "G", 1, &used), HEAD_MORE);
    assert_true(head_started(h));
    head_free(&h);
}

static const struct {
    const char *text, *body;
    bool bad;
} chunks[] = {
    {"5\r\nhello\r\n0\r\n\r\n", "hello", false},
    {"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n", "hello world", false},
    {"0\r\n\r\n", "", false},
    {"A\r\n0123456789\r\n000\r\n\r\n", "0123456789", false},
    {"5\r\nhelloX\r\n0\r\n\r\n", NULL, true},
    /* No CRLF behind the data, or another end of a line. */
    {"5\r\nhello0\r\n\r\n", NULL, true},
    {"5\r\nhello\n0\r\n\r\n", NULL, true},
    {"5\r\nhello\r0\r\n\r\n", NULL, true},
    {"5\r\nhello\n\r0\r\n\r\n", NULL, true},
    {"5\r\nhelloXY0\r\n\r\n", NULL, true},
    {"5\r\nhello\r\n\r\n0\r\n\r\n", NULL, true},
    {"5\nhello\r\n0\r\n\r\n", NULL, true},
    {"5\rhello\r\n0\r\n\r\n", NULL, true},
    {"5\r\nhello\r\n0\n\n", NULL, true},
    {"5\r\nhello\r\n0\r\n\n", NULL, true},
    {"5\r\nhello\r\n0\r\nX: y\n\r\n", NULL, true},
    /* Extensions, which may hold no line's end either, and sizes. */
    {"5;a\r\nhello\r\n0;b=c\r\n\r\n", "hello", false},
    {"5 ; a = \"\\;x\"\r\nhello\r\n0\r\n\r\n", "hello", false},
    {"5;a\nx\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"5;a\rx\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"5;\x01\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"5 \r\nhello\r\n0\r\n\r\n", NULL, true},
    {"5 5\r\nhello\r\n0\r\n\r\n", NULL, true},
    {" 5\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"0x5\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"5h\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"+5\r\nhello\r\n0\r\n\r\n", NULL, true},
    {";a\r\nhello\r\n0\r\n\r\n", NULL, true},
    {"\r\n0\r\n\r\n", NULL, true},
    {"0000000000000000000005\r\nhello\r\n0\r\n\r\n", "hello", false},
    {"000000000000000000000000000000000000000005\r\n", NULL, true},
    {"FFFFFFFFFFFFFFFF\r\n", NULL, true},
    /* Trailers. */
    {"0\r\nX-Y: z\r\nA:\r\n\r\n", "", false},
    {"0\r\n X: y\r\n\r\n", NULL, true},
    {"0\r\nX : y\r\n\r\n", NULL, true},
    {"0\r\nX\r\n\r\n", NULL, true},
    {"0\r\n: y\r\n\r\n", NULL, true},
    {"0\r\nX: \x01\r\n\r\n", NULL, true},
    {"0\r\nGET / HTTP/1.1\r\n\r\n", NULL, true},
    {"g\r\n", NULL, true},
    {"-1\r\n", NULL, true},
    {"11111111111111111\r\n", NULL, true},
};

static void test_chunked_at_every_split(void **state)
{
    (void)state;
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
        size_t n = strlen(chunks[i].text);
        for (size_t cut = 0; cut <= n; cut++) {
            struct head *h = head_new();
            size_t used, got, len = 0;
            bool end = false;
            char body[256];
            assert_int_equal(head_feed(h, head, strlen(head), &used), HEAD_DONE);
            enum err err = head_body(h, chunks[i].text, cut, &used, body, &got, &end);
            len += got;
            if (!err && !end) {
                assert_int_equal(used, cut);
                err = head_body(h, chunks[i].text + cut, n - cut, &used, body + len, &got, &end);
                len += got;
            }
            assert_int_equal(err, chunks[i].bad ? ERR_PROTO : ERR_OK);
            if (!chunks[i].bad) {
                assert_true(end);
                assert_int_equal(len, strlen(chunks[i].body));
                assert_memory_equal(body, chunks[i].body, len);
            }
            head_free(&h);
        }
    }
}

/* What is read and dropped is bounded, whatever it is; the data is not. */
static void test_what_stands_beside_the_chunks_is_bounded(void **state)
{
    (void)state;
    static const char *const starts[] = {"5;", "5 ", "5;a=\"", "0\r\nX", "0\r\nX: "};
    static const char fill[] = {'a', ' ', 'a', 'a', 'a'};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        struct chunked c = {0};
        size_t used, got, fed = 0;
        bool end;
        char dst[64];
        enum err err = chunked_feed(&c, starts[i], strlen(starts[i]), &used, dst, &got, &end);
        for (; !err && fed < 10 * CHUNKED_ASIDE_MAX; fed++)
            err = chunked_feed(&c, &fill[i], 1, &used, dst, &got, &end);
        assert_int_equal(err, ERR_PROTO);
        assert_in_range(fed, CHUNKED_ASIDE_MAX - 16, CHUNKED_ASIDE_MAX + 16);
        assert_int_equal(chunked_feed(&c, "0\r\n\r\n", 5, &used, dst, &got, &end), ERR_PROTO);
    }
    struct chunked c = {0};
    for (int i = 0; i < 100000; i++) {
        size_t used, got;
        bool end;
        char dst[64];
        assert_int_equal(chunked_feed(&c, "1\r\nx\r\n", 6, &used, dst, &got, &end), ERR_OK);
        assert_int_equal(got, 1);
    }
}

static void test_chunked_leaves_the_next_request(void **state)
{
    (void)state;
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char rest[] = "1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
    struct head *h = head_new();
    size_t used, got;
    bool end;
    char body[64];
    assert_int_equal(head_feed(h, head, strlen(head), &used), HEAD_DONE);
    assert_int_equal(head_body(h, rest, strlen(rest), &used, body, &got, &end), ERR_OK);
    assert_true(end);
    assert_int_equal(used, strlen("1\r\nx\r\n0\r\n\r\n"));
    assert_int_equal(got, 1);
    head_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads_at_every_split),
        cmocka_unit_test(test_stops_at_its_end),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_knows_when_it_started),
        cmocka_unit_test(test_chunked_at_every_split),
        cmocka_unit_test(test_what_stands_beside_the_chunks_is_bounded),
        cmocka_unit_test(test_chunked_leaves_the_next_request),
    };
    return cmocka_run_group_tests_name("head", tests, NULL, NULL);
}
