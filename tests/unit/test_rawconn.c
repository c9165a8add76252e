/* A bare connection against a scripted peer: bytes as they come, ends of both kinds, and limits of time. */
#include "net/rawconn.h"
#include "stub.h"
#include "unit.h"
#include <pthread.h>

static struct loop *loop;
static struct errinfo ei;

static int setup(void **state)
{
    (void)state;
    memset(&ei, 0, sizeof ei);
    return loop_new(&loop, NULL);
}

static int teardown(void **state)
{
    (void)state;
    coro_pool_trim();
    loop_free(&loop);
    return 0;
}

static struct mono in_ms(int64_t ms)
{
    return mono_add(mono_now(), ms * US_PER_MS);
}

static struct rawconn *open_to(const struct stub *s)
{
    struct rawconn *c = NULL;
    if (rawconn_open(&c, loop, s->url, in_ms(10000), &ei) != ERR_OK)
        fail_msg("%s", ei.msg);
    return c;
}

/* Everything up to the end of what the other side sends; returns how it ended. */
static enum err read_all(struct rawconn *c, char *dst, size_t cap, size_t *n)
{
    size_t got = 1;
    enum err e = ERR_OK;
    for (*n = 0; e == ERR_OK && got > 0; *n += got)
        e = rawconn_read(c, dst + *n, cap - *n, &got, in_ms(10000), &ei);
    return e;
}

static void greet_and_echo(struct stub *s, int fd, int number)
{
    char line[6];
    (void)s, (void)number;
    stub_send(fd, "hello ");
    if (stub_body(fd, line, sizeof line))
        (void)!send(fd, line, sizeof line, MSG_NOSIGNAL);
}

/* The server may speak first; its end is a read of 0 bytes. */
static void bytes_that_nobody_asked_for(void **state)
{
    (void)state;
    struct stub *s = stub_start(greet_and_echo, NULL);
    struct rawconn *c = open_to(s);
    char text[64], first[3];
    size_t n, got;
    assert_int_equal(rawconn_read(c, first, sizeof first, &got, in_ms(10000), &ei), ERR_OK);
    assert_in_range(got, 1, sizeof first); /* never more than there is room for */
    assert_int_equal(rawconn_write(c, "world\n", 6, in_ms(10000), &ei), ERR_OK);
    memcpy(text, first, got);
    assert_int_equal(read_all(c, text + got, sizeof text - got, &n), ERR_OK);
    assert_int_equal(got + n, 12);
    assert_memory_equal(text, "hello world\n", 12);
    assert_int_equal(rawconn_read(c, text, sizeof text, &got, in_ms(10000), &ei), ERR_OK);
    assert_int_equal(got, 0); /* the end is there to be read, again and again */
    rawconn_close(&c);
    assert_null(c);
    rawconn_close(&c);
    stub_stop(s);
}

static void hold_until_asked(struct stub *s, int fd, int number)
{
    (void)number;
    while (!atomic_load((atomic_int *)s->arg))
        usleep(1000);
    stub_drain(fd);
}

/* A body that the peer leaves unread fills the buffers; the writer waits, and goes on once it is read. */
static void writing_waits_for_the_reader(void **state)
{
    (void)state;
    enum { BIG = 32 << 20 };
    atomic_int go = 0;
    struct stub *s = stub_start(hold_until_asked, &go);
    struct rawconn *c = open_to(s);
    char *big = mem_zalloc(BIG);
    assert_int_equal(rawconn_write(c, big, BIG, in_ms(200), &ei), ERR_TIMEOUT);
    atomic_store(&go, 1);
    assert_int_equal(rawconn_write(c, big, 1 << 20, in_ms(20000), &ei), ERR_OK);
    rawconn_close(&c);
    mem_free(big);
    stub_stop(s);
}

static void answer_and_leave(struct stub *s, int fd, int number)
{
    char byte[1];
    (void)number;
    stub_body(fd, byte, 1);
    stub_send(fd, "refused");
    if (s->arg)
        stub_reset(fd);
}

/* U01: the peer answered and left with our bytes unread. Writing fails in time, without a signal, and the answer that
 * came before the reset can still be read where the system keeps it. */
static void an_answer_before_the_end(void **state)
{
    (void)state;
    static char chunk[1 << 16];
    struct stub *s = stub_start(answer_and_leave, NULL);
    struct rawconn *c = open_to(s);
    enum err e = ERR_OK;
    for (int i = 0; i < 10000 && e == ERR_OK; i++)
        e = rawconn_write(c, chunk, sizeof chunk, in_ms(10000), &ei);
    assert_true(e == ERR_CLOSED || e == ERR_RESET);
    rawconn_close(&c);
    c = open_to(s);
    char text[64];
    size_t n;
    assert_int_equal(rawconn_write(c, "x", 1, in_ms(10000), &ei), ERR_OK);
    assert_int_equal(read_all(c, text, sizeof text, &n), ERR_OK);
    assert_int_equal(n, 7);
    assert_memory_equal(text, "refused", 7);
    rawconn_close(&c);
    stub_stop(s);
}

static void a_reset_is_told(void **state)
{
    (void)state;
    static int yes;
    struct stub *s = stub_start(answer_and_leave, &yes);
    struct rawconn *c = open_to(s);
    char text[64];
    size_t n;
    assert_int_equal(rawconn_write(c, "x", 1, in_ms(10000), &ei), ERR_OK);
    assert_int_equal(read_all(c, text, sizeof text, &n), ERR_RESET);
    assert_non_null(strstr(ei.msg, "connection lost"));
    rawconn_close(&c);
    stub_stop(s);
}

static void silence_has_a_limit(void **state)
{
    (void)state;
    struct stub *s = stub_start(stub_only_read, NULL);
    struct rawconn *c = open_to(s);
    char text[8];
    size_t got = 9;
    struct mono from = mono_now();
    assert_int_equal(rawconn_read(c, text, sizeof text, &got, in_ms(100), &ei), ERR_TIMEOUT);
    assert_true(mono_diff(mono_now(), from) >= 100 * US_PER_MS);
    assert_int_equal(got, 0);
    rawconn_close(&c);
    stub_stop(s);
}

struct reading {
    struct rawconn *c;
    char text[8];
    size_t got;
    enum err err;
};

static void read_in_coroutine(void *arg)
{
    struct reading *r = arg;
    r->err = rawconn_read(r->c, r->text, sizeof r->text, &r->got, in_ms(10000), NULL);
}

static void say_number(struct stub *s, int fd, int number)
{
    (void)s;
    stub_send(fd, number == 0 ? "0" : "1");
    stub_drain(fd);
}

/* Suspended coroutines share the loop: each reads from its own connection. */
static void several_at_once(void **state)
{
    (void)state;
    struct stub *s = stub_start(say_number, NULL);
    struct reading r[2] = {0};
    struct group g = {0};
    for (int i = 0; i < 2; i++) {
        r[i].c = open_to(s);
        group_spawn(loop, &g, read_in_coroutine, &r[i]);
    }
    group_wait(loop, &g);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r[i].err, ERR_OK);
        assert_int_equal(r[i].got, 1);
        assert_int_equal(r[i].text[0], '0' + i);
        rawconn_close(&r[i].c);
    }
    stub_stop(s);
}

static void where_it_cannot_connect(void **state)
{
    (void)state;
    struct stub *s = stub_start(stub_only_read, NULL);
    char gone[64];
    snprintf(gone, sizeof gone, "%s", s->url);
    stub_stop(s);
    const struct {
        const char *url;
        enum err want;
    } rows[] = {
        {gone, ERR_CONNECT},
        {"https://127.0.0.1:1", ERR_USAGE},
        {"http://no-such-host.invalid", ERR_SAFETY}, /* before it is looked up */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rawconn *c = NULL;
        assert_int_equal(rawconn_open(&c, loop, rows[i].url, in_ms(10000), &ei), rows[i].want);
        assert_null(c);
        assert_true(ei.msg[0] != '\0');
    }
}

static void ipv6_in_brackets(void **state)
{
    (void)state;
    struct stub *s = stub_start_on("::1", 0, greet_and_echo, NULL);
    if (!s)
        skip(); /* a machine without IPv6 */
    struct rawconn *c = open_to(s);
    char text[8];
    size_t got;
    assert_int_equal(rawconn_read(c, text, sizeof text, &got, in_ms(10000), &ei), ERR_OK);
    assert_true(got > 0 && text[0] == 'h');
    rawconn_close(&c);
    stub_stop(s);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(bytes_that_nobody_asked_for), CASE(writing_waits_for_the_reader),
        CASE(an_answer_before_the_end),    CASE(a_reset_is_told),
        CASE(silence_has_a_limit),         CASE(several_at_once),
        CASE(where_it_cannot_connect),     CASE(ipv6_in_brackets),
    };
    return cmocka_run_group_tests_name("rawconn", tests, NULL, NULL);
}
