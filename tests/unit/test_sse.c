/* The event-stream parser: each input is fed whole, cut once at each place, cut twice at each pair of places, and byte
 * by byte; the events must be the same (cases E01, E02, E03, E06, E07, E15). */
#include "base/mem.h"
#include "base/str.h"
#include "net/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void record(void *arg, const struct sse_event *ev)
{
    struct buf *b = arg;
    assert_int_equal(strlen(ev->data) <= ev->data_n, 1);
    assert_int_equal(ev->data[ev->data_n], '\0');
    assert_int_equal(strlen(ev->type), ev->type_n);
    assert_int_equal(buf_appendf(b, "[%s|%s|", ev->type, ev->id), ERR_OK);
    assert_int_equal(buf_append(b, ev->data, ev->data_n), ERR_OK);
    assert_int_equal(buf_append_char(b, ']'), ERR_OK);
}

/* Feeds in the pieces that end at cuts[], from memory of their exact size so that an overrun is seen. */
static enum err feed(struct sse *s, const char *p, size_t n, const size_t *cuts, size_t n_cuts)
{
    size_t at = 0;
    for (size_t i = 0; i <= n_cuts; i++) {
        size_t end = i < n_cuts ? cuts[i] : n;
        char *piece = mem_dup(p + at, end - at);
        enum err err = sse_feed(s, piece, end - at);
        mem_free(piece);
        if (err != ERR_OK)
            return err;
        at = end;
    }
    return ERR_OK;
}

static void expect(struct sv in, const size_t *cuts, size_t n_cuts, struct sv events, const char *last_id)
{
    struct buf got = BUF_INIT(1 << 20);
    struct sse s;
    sse_init(&s, 64 * 1024, record, &got);
    assert_int_equal(feed(&s, in.p, in.n, cuts, n_cuts), ERR_OK);
    assert_int_equal(got.len, events.n);
    assert_memory_equal(buf_cstr(&got), events.p, events.n);
    assert_string_equal(sse_last_id(&s), last_id);
    sse_done(&s);
    buf_done(&got);
}

static void expect_any_split(struct sv in, struct sv events, const char *last_id)
{
    expect(in, NULL, 0, events, last_id);
    for (size_t i = 0; i <= in.n; i++)
        expect(in, &i, 1, events, last_id);
    if (in.n <= 80)
        for (size_t i = 0; i <= in.n; i++)
            for (size_t j = i; j <= in.n; j++)
                expect(in, (size_t[]){i, j}, 2, events, last_id);
    size_t *each = mem_realloc_array(NULL, in.n + 1, sizeof *each);
    for (size_t i = 0; i < in.n; i++)
        each[i] = i;
    expect(in, each, in.n, events, last_id);
    mem_free(each);
}

static void events_are_the_same_for_every_split(void **state)
{
    (void)state;
    static const struct {
        struct sv in;
        struct sv events;
        const char *last_id;
    } rows[] = {
#define ROW(in, events, last_id) {{"" in, sizeof(in) - 1}, {"" events, sizeof(events) - 1}, last_id}
        ROW("data: A\r\ndata: B\r\ndata: C\r\n\r\n", "[message||A\nB\nC]", ""), /* E01 */
        ROW("id: 7\rdata: x\r\r", "[message|7|x]", "7"),                        /* E02 */
        ROW("data: x\n\r", "[message||x]", ""),                                 /* E02 */
        ROW("data: x\r\n\rdata: y\n\r\n", "[message||x][message||y]", ""),      /* mixed ends */
        ROW("\xEF\xBB\xBF"
            "data: first\n\n",
            "[message||first]", ""), /* E03 */
        ROW("\xEF\xBB\xBF\xEF\xBB\xBF"
            "data: first\n\ndata: second\n\n",
            "[message||second]", ""), /* E03 */
        ROW("\xEF\xBB"
            "data: no mark\n\ndata: y\n\n",
            "[message||y]", ""), /* half a mark is a field name */
        ROW("data: a\n\n\xEF\xBB\xBF"
            "data: b\n\n",
            "[message||a]", ""),                                              /* not at the start */
        ROW("data: \xF0\x9F\x8C\x8D\n\n", "[message||\xF0\x9F\x8C\x8D]", ""), /* E06 */
        ROW("data: {\"name\":\"a\xE2\x80\xA8"
            "b\xC2\x85"
            "c\"}\n\n",
            "[message||{\"name\":\"a\xE2\x80\xA8"
            "b\xC2\x85"
            "c\"}]",
            ""), /* E06: only CR and LF */
        ROW(": ping\n\n: ping\n\n", "", ""),
        ROW("data\n\n", "[message||]", ""), /* a field without a colon */
        ROW("data\ndata\n\n", "[message||\n]", ""),
        ROW("data:\n", "", ""), /* no blank line: not yet */
        ROW("data:  two spaces\n\n", "[message|| two spaces]", ""),
        ROW("data:test\n\ndata: test\n\n", "[message||test][message||test]", ""),
        ROW("event: add\ndata: 1\n\ndata: 2\n\n", "[add||1][message||2]", ""), /* the type is of one event */
        ROW("event: lost\n\ndata: 2\n\n", "[message||2]", ""),
        ROW("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", "[message|1|a][message|1|b][message||c]", ""),
        ROW("id: 5\n\ndata: x\n\n", "[message|5|x]", "5"),               /* id without data counts */
        ROW("id: 5\ndata: x\n\nid: 6\ndata: cut", "[message|5|x]", "5"), /* an unfinished event moves nothing */
        ROW("id: a\0b\ndata: x\n\n", "[message||x]", ""),                /* an id with NUL is ignored */
        ROW("event: error\ndata: x\n\n", "[error||x]", ""),              /* E11 */
        ROW("unknown: 1\nDATA: 2\n data: 3\ndata : 4\ndata: 5\n\n", "[message||5]", ""),
        ROW("data: a:b: c\n\n", "[message||a:b: c]", ""),
        ROW("\n\n\n", "", ""),
        /* After the cases of web-platform-tests' eventsource, those that are not above. */
        ROW("\xEF\xBB\xBF\xEF\xBB\xBF"
            "data: 1\n\n",
            "", ""), /* of two marks one is dropped */
        ROW("data:a\n\n\xEF\xBB\xBF"
            "data: b\n\n",
            "[message||a]", ""), /* a mark inside is text */
        ROW("data\ndata:\ndata: \n\n", "[message||\n\n]", ""),
        ROW("data:test\n\ndata\n\n", "[message||test][message||]", ""),
        ROW("event:\ndata: x\n\n", "[message||x]", ""), /* an empty name is none */
        ROW("event\ndata: x\n\n", "[message||x]", ""),
        ROW("event: a\nevent: b\ndata: x\n\n", "[b||x]", ""),
        ROW("event: a\nevent:\ndata: x\n\n", "[message||x]", ""),
        ROW("event: test\n\ndata:x\n\n", "[message||x]", ""), /* no data: the name is forgotten */
        ROW("event:  two\ndata:x\n\n", "[ two||x]", ""),
        ROW("id: 1\n\nid: 2\n\n", "", "2"),
        ROW("id: 1\ndata:x\n\nid\n\n", "[message|1|x]", ""), /* a bare id clears */
        ROW("id: 1\ndata:x\n\nid:\n\n", "[message|1|x]", ""),
        ROW("id: 1\nid: 2\ndata:x\n\n", "[message|2|x]", "2"),
        ROW("id: 1\ndata:x\n\nid: 2\0\ndata:y\n\n", "[message|1|x][message|1|y]", "1"),
        ROW("id: 1\ndata:x\n\nid: \0\0\n\n", "[message|1|x]", "1"),
        ROW("id: 5\n", "", ""), /* not yet */
        ROW("id:  a b \ndata:x\n\n", "[message| a b |x]", " a b "),
        ROW("ID: 1\nId: 2\ndata:x\n\n", "[message||x]", ""),
        ROW("data:\0\n\n", "[message||\0]", ""), /* NULs are text */
        ROW("data:a\0b\n\n", "[message||a\0b]", ""),
        ROW("da\0ta:x\ndata\0:y\n\n", "", ""),
        ROW("data: ok\xFF\xC3(\n\n", "[message||ok\xEF\xBF\xBD\xEF\xBF\xBD(]", ""), /* broken UTF-8 */
        ROW("data:\xE2\x82\ndata:\xF0\x9F\x8C\n\n", "[message||\xEF\xBF\xBD\n\xEF\xBF\xBD]", ""),
        ROW("data:\xED\xA0\x80\n\n", "[message||\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD]", ""), /* a surrogate */
        ROW("data:\xC0\xAF\xF4\x90\x80\x80\n\n",
            "[message||\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD]", ""),
        ROW("event:\x80\nid:\xFE\ndata:x\n\n", "[\xEF\xBF\xBD|\xEF\xBF\xBD|x]", "\xEF\xBF\xBD"),
        ROW("data:1\r\rdata:2\r\n\r\ndata:3\n\n", "[message||1][message||2][message||3]", ""),
        ROW("data:1\r\n\ndata:2\n\rdata:3\n\n", "[message||1][message||2][message||3]", ""),
        ROW("\r\n\r\ndata:x\r\r\n", "[message||x]", ""),
        ROW("data : x\n data:x\n\tdata:x\ndatas:x\ndat:x\n\n", "", ""),
        ROW("data:\tx\n\n", "[message||\tx]", ""), /* a tab is no space */
        ROW("data::x\n::\n:data:x\n\n", "[message||:x]", ""),
        ROW("data:x\n:\n\n", "[message||x]", ""),
        ROW("retry:5\ndata:x\n\n", "[message||x]", ""),
        ROW("data:x\n\n:", "[message||x]", ""),
#undef ROW
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect_any_split(rows[i].in, rows[i].events, rows[i].last_id);
}

/* An id outlives its connection; an event without one has it too, and a bare id ends it. */
static void a_stream_goes_on_after_the_last_id(void **state)
{
    (void)state;
    static const struct {
        const char *before, *in, *events, *after;
    } rows[] = {
        {"7", "data: x\n\n", "[message|7|x]", "7"},
        {"7", "id: 8\ndata: x\n\n", "[message|8|x]", "8"},
        {"7", "id: 8\ndata: x\n", "", "7"},
        {"7", "id\n\n", "", ""},
        {"7", "id: a", "", "7"},
        {"", "data: x\n\n", "[message||x]", ""},
        {"\xE2\x80\xA6", "data: x\n\n", "[message|\xE2\x80\xA6|x]", "\xE2\x80\xA6"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf got = BUF_INIT(1 << 20);
        struct sse s;
        sse_init(&s, 1000, record, &got);
        assert_int_equal(sse_resume(&s, rows[i].before), ERR_OK);
        assert_int_equal(sse_feed(&s, rows[i].in, strlen(rows[i].in)), ERR_OK);
        assert_string_equal(buf_cstr(&got), rows[i].events);
        assert_string_equal(sse_last_id(&s), rows[i].after);
        sse_done(&s);
        buf_done(&got);
    }
}

/* E07, with its 2048 byte comments. */
static void comments_mixed_with_data(void **state)
{
    (void)state;
    struct buf in = BUF_INIT(1 << 20);
    char pad[2049];
    memset(pad, 'x', 2048);
    pad[2048] = '\0';
    assert_int_equal(buf_append(&in, "data:1\r:\0\n:\r\ndata:2\n:", 21), ERR_OK);
    assert_int_equal(buf_appendf(&in, "%s\rdata:3\n:data:fail\r:%s\ndata:4\n\n", pad, pad), ERR_OK);
    expect_any_split((struct sv){in.data, in.len}, SV("[message||1\n2\n3\n4]"), "");
    buf_done(&in);
}

static void retry_is_read_when_it_is_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        int64_t ms;
    } rows[] = {
        {"data: x\n", -1},
        {"retry: 3000\n", 3000},
        {"retry:10\r", 10},
        {"retry: 1.5\n", -1},
        {"retry: -1\n", -1},
        {"retry: +1\n", -1},
        {"retry: 7\nretry: x\n", 7},
        {"retry:\n", -1},
        {"retry: 99999999999999999999\n", INT64_MAX},
        {"retry: 0\n", 0},
        {"retry: 000000000000000000000700\n", 700},
        {"retry\n", -1},
        {"retry: 7\nretry\nretry:\n", 7},
        {"retry:3000 \n", -1},
        {"retry:  3000\n", -1},
        {"retry: 3e3\n", -1},
        {"retry: 0x10\n", -1},
        {"retry: \xD9\xA3\n", -1},
        {"Retry: 3000\n", -1},
        {"retry: 3000", -1},
        {"retry:1\n\nretry:2\n\n", 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sse s;
        sse_init(&s, 100, NULL, NULL);
        assert_int_equal(sse_feed(&s, rows[i].in, strlen(rows[i].in)), ERR_OK);
        assert_int_equal(s.retry_ms, rows[i].ms);
        sse_done(&s);
    }
}

/* E15: "data: " and no end. Memory stays bounded, the error is named, and the parser stays spent. */
static void endless_event_is_refused(void **state)
{
    (void)state;
    enum { MAX = 10000 };
    static const char *const starts[] = {"data: ", "id: ", "event: ", "x", "\xEF\xBB"};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        struct buf got = BUF_INIT(1 << 20);
        struct sse s;
        sse_init(&s, MAX, record, &got);
        assert_int_equal(sse_feed(&s, starts[i], strlen(starts[i])), ERR_OK);
        enum err err = ERR_OK;
        size_t fed = 0;
        for (char piece[512]; err == ERR_OK && fed < 64 << 20; fed += sizeof piece) {
            memset(piece, 'a', sizeof piece);
            err = sse_feed(&s, piece, sizeof piece);
        }
        assert_int_equal(err, ERR_LIMIT);
        assert_in_range(fed, MAX - 512, MAX + 512);
        assert_true(s.line.cap <= MAX + 32);
        assert_int_equal(sse_feed(&s, "\n\ndata: x\n\n", 11), ERR_LIMIT);
        assert_string_equal(buf_cstr(&got), "");
        sse_done(&s);
        buf_done(&got);
    }
}

static void many_lines_of_one_event_are_refused_too(void **state)
{
    (void)state;
    struct sse s;
    sse_init(&s, 1000, NULL, NULL);
    enum err err = ERR_OK;
    int lines = 0;
    for (; err == ERR_OK && lines < 1000; lines++)
        err = sse_feed(&s, "data: 123456789\n", 16);
    assert_int_equal(err, ERR_LIMIT);
    assert_in_range(lines, 100, 101);
    sse_done(&s);
}

static void an_event_of_exactly_the_limit_passes(void **state)
{
    (void)state;
    struct buf got = BUF_INIT(1 << 20);
    struct sse s;
    sse_init(&s, 10, record, &got);
    assert_int_equal(sse_feed(&s, "data:0123456789\n\n", 17), ERR_OK);
    assert_string_equal(buf_cstr(&got), "[message||0123456789]");
    assert_int_equal(sse_feed(&s, "data:0123456789x\n\n", 18), ERR_LIMIT);
    sse_done(&s);
    buf_done(&got);
}

static void an_endless_comment_costs_nothing(void **state)
{
    (void)state;
    struct buf got = BUF_INIT(1 << 20);
    struct sse s;
    sse_init(&s, 1000, record, &got);
    assert_int_equal(sse_feed(&s, ":", 1), ERR_OK);
    char piece[512];
    memset(piece, 'a', sizeof piece);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(sse_feed(&s, piece, sizeof piece), ERR_OK);
    assert_true(s.line.cap < 200);
    assert_int_equal(sse_feed(&s, "\rdata: x\r\r", 10), ERR_OK);
    assert_string_equal(buf_cstr(&got), "[message||x]");
    sse_done(&s);
    buf_done(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_for_every_split),
        cmocka_unit_test(a_stream_goes_on_after_the_last_id),
        cmocka_unit_test(comments_mixed_with_data),
        cmocka_unit_test(retry_is_read_when_it_is_a_number),
        cmocka_unit_test(endless_event_is_refused),
        cmocka_unit_test(many_lines_of_one_event_are_refused_too),
        cmocka_unit_test(an_event_of_exactly_the_limit_passes),
        cmocka_unit_test(an_endless_comment_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
