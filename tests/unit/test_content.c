/* File bodies against a store in memory: every way in gives back the same bytes, and every failure leaves nothing. */
#include "base/log.h"
#include "base/mem.h"
#include "server/events/presence.h"
#include "server/objects/content_out.h"
#include "server/objects/impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEG SEAL_SEGMENT_LEN

/* ---- the store ---- */

struct stored {
    char key[CONTENT_KEY_MAX];
    struct buf bytes;
};

static struct {
    struct work *work;
    struct stored objects[16];
    size_t n;
    int64_t fail_after;  /* a put in pieces fails after so many bytes; -1: never */
    int64_t break_after; /* the first get in pieces breaks off after so many bytes; -1: never */
    int64_t cut_to;      /* a get sees only so many bytes of an object; -1: all */
    bool down;           /* everything fails */
    unsigned puts, gets; /* calls in pieces so far */
    unsigned running, peak;
} store;

static struct stored *find(const char *key)
{
    for (size_t i = 0; i < store.n; i++)
        if (strcmp(store.objects[i].key, key) == 0)
            return &store.objects[i];
    return NULL;
}

static void store_put(const char *key, struct buf *bytes)
{
    assert_true(store.n < ARRAY_LEN(store.objects));
    assert_null(find(key));
    struct stored *o = &store.objects[store.n++];
    snprintf(o->key, sizeof(o->key), "%s", key);
    o->bytes = *bytes;
    *bytes = (struct buf)BUF_INIT(0);
}

static void store_clear(void)
{
    while (store.n > 0)
        buf_done(&store.objects[--store.n].bytes);
    store.fail_after = store.cut_to = store.break_after = -1;
    store.down = false;
    store.puts = store.gets = store.running = store.peak = 0;
}

struct put_job {
    uint64_t size;
    struct wpipe *src;
    struct buf bytes;
    enum err err;
};

static void put_in_thread(void *arg)
{
    struct put_job *j = arg;
    char piece[5000]; /* not a divisor of anything */
    while (j->err == ERR_OK && j->bytes.len < j->size) {
        size_t want = j->size - j->bytes.len < sizeof(piece) ? j->size - j->bytes.len : sizeof(piece), got = 0;
        j->err = wpipe_read_blocking(j->src, piece, want, &got);
        if (j->err == ERR_OK)
            j->err = got == 0 ? ERR_CLOSED : buf_append(&j->bytes, piece, got);
        if (j->err != ERR_OK)
            j->err = ERR_CANCELLED;
        else if (store.fail_after >= 0 && j->bytes.len > (size_t)store.fail_after)
            j->err = ERR_CONNECT;
    }
    wpipe_close_read(j->src);
}

enum err blob_put_stream(struct blob *b, const char *key, uint64_t size, struct wpipe *src, struct errinfo *ei)
{
    (void)b;
    struct put_job j = {.size = size, .src = src, .bytes = BUF_INIT(1 << 30), .err = store.down ? ERR_CONNECT : ERR_OK};
    store.puts++;
    if (++store.running > store.peak)
        store.peak = store.running;
    work_run(store.work, put_in_thread, &j);
    store.running--;
    if (j.err == ERR_OK)
        store_put(key, &j.bytes);
    buf_done(&j.bytes);
    return j.err == ERR_OK ? ERR_OK : err_set(ei, j.err, "the fake store failed");
}

enum err blob_put(struct blob *b, const char *key, const void *data, size_t n, struct errinfo *ei)
{
    (void)b;
    struct buf bytes = BUF_INIT(1 << 30);
    if (store.down)
        return err_set(ei, ERR_CONNECT, "the fake store failed");
    assert_int_equal(buf_append(&bytes, data, n), ERR_OK);
    store_put(key, &bytes);
    return ERR_OK;
}

static struct sv visible(const struct stored *o, uint64_t offset, uint64_t length)
{
    size_t n = o->bytes.len;
    if (store.cut_to >= 0 && n > (size_t)store.cut_to)
        n = (size_t)store.cut_to;
    if (offset > n)
        offset = n;
    if (length == 0 || length > n - offset)
        length = n - offset;
    return (struct sv){o->bytes.data + offset, length};
}

enum err blob_get(struct blob *b, const char *key, uint64_t offset, uint64_t length, struct buf *out,
                  struct errinfo *ei)
{
    (void)b;
    struct stored *o = find(key);
    if (!o || store.down)
        return err_set(ei, o ? ERR_CONNECT : ERR_NOTFOUND, "the fake store failed");
    struct sv part = visible(o, offset, length);
    return buf_append(out, part.p, part.n);
}

struct get_job {
    struct sv part;
    struct wpipe *dst;
    enum err err, end;
};

static void get_in_thread(void *arg)
{
    struct get_job *j = arg;
    j->err = wpipe_write_blocking(j->dst, j->part.p, j->part.n);
    wpipe_close_write(j->dst, j->err != ERR_OK ? j->err : j->end);
}

enum err blob_get_stream(struct blob *b, const char *key, uint64_t offset, uint64_t length, struct wpipe *dst,
                         struct errinfo *ei)
{
    (void)b;
    struct stored *o = find(key);
    store.gets++;
    if (!o || store.down) {
        wpipe_close_write(dst, ERR_CONNECT);
        return err_set(ei, o ? ERR_CONNECT : ERR_NOTFOUND, "the fake store failed");
    }
    struct get_job j = {.part = visible(o, offset, length), .dst = dst};
    if (store.break_after >= 0) {
        j.part.n = (size_t)store.break_after;
        j.end = ERR_STORE;
        store.break_after = -1;
    }
    work_run(store.work, get_in_thread, &j);
    if (j.end != ERR_OK)
        return err_set(ei, j.end, "the fake store broke off");
    return j.err == ERR_OK ? ERR_OK : err_set(ei, ERR_CANCELLED, "the reader left");
}

enum err blob_delete(struct blob *b, const char *key, struct errinfo *ei)
{
    (void)b;
    struct stored *o = find(key);
    if (store.down)
        return err_set(ei, ERR_CONNECT, "the fake store failed");
    if (o) {
        buf_done(&o->bytes);
        *o = store.objects[--store.n];
    }
    return ERR_OK;
}

enum err blob_delete_many(struct blob *b, const char *const *keys, size_t n, size_t *failed, struct errinfo *ei)
{
    *failed = 0;
    for (size_t i = 0; i < n; i++)
        if (blob_delete(b, keys[i], ei) != ERR_OK)
            ++*failed;
    return *failed ? ERR_STORE : ERR_OK;
}

/* The process that a key names. */
const char *presence_id(const struct server *s)
{
    (void)s;
    return "2222222222222222222222";
}

/* ---- bodies ---- */

static unsigned char byte_at(uint64_t i)
{
    return (unsigned char)(i * 37 + (i >> 8) * 5 + (i >> 16));
}

struct client {
    uint64_t size, sent;
    size_t piece;      /* bytes a read gives at most */
    int64_t leaves_at; /* -1: stays */
};

static enum err client_read(void *arg, char *dst, size_t cap, size_t *got, struct errinfo *ei)
{
    struct client *c = arg;
    size_t n = cap < c->piece ? cap : c->piece;
    if (c->leaves_at >= 0 && c->sent >= (uint64_t)c->leaves_at)
        return err_set(ei, ERR_CLOSED, "the client left");
    if (n > c->size - c->sent)
        n = (size_t)(c->size - c->sent);
    for (size_t i = 0; i < n; i++)
        dst[i] = (char)byte_at(c->sent + i);
    c->sent += n;
    *got = n;
    return ERR_OK;
}

static const struct server_conf conf = {
    .file_encryption_key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    .upload_memory_bytes = 1 << 20,
};
static struct server server;

static int set_up(void **state)
{
    (void)state;
    struct errinfo ei;
    log_set_level(LOG_ERROR);
    server = (struct server){.conf = &conf, .store_threads = 8, .blob = (struct blob *)(void *)&store};
    if (loop_new(&server.loop, &ei) != ERR_OK)
        return -1;
    server.work = work_new(server.loop, 2);
    store.work = work_new(server.loop, 8);
    store_clear();
    return content_part.start(&server, &ei) == ERR_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    store_clear();
    content_part.stop(&server);
    work_free(&server.work);
    work_free(&store.work);
    loop_free(&server.loop);
    return 0;
}

/* Nothing is held any more: budgets are full again, nothing is in flight. */
static void assert_settled(void)
{
    assert_int_equal(server.content->memory.free, conf.upload_memory_bytes);
    assert_int_equal(server.content->puts.free, 3);
    assert_int_equal(server.content->gets.free, 3);
    assert_null(server.content->in_flight);
}

static enum err send(struct client *c, int64_t expected, uint64_t max, struct content_object *out, struct errinfo *ei)
{
    const struct content_source src = {client_read, c};
    struct content_body *body = NULL;
    enum err e = content_receive(&server, "acc", &src, expected, max, &body, ei);
    if (e != ERR_OK)
        return e;
    assert_int_equal(content_body_size(body), c->size);
    return content_put(&body, out, ei);
}

static void assert_reads(const struct content_object *o, uint64_t offset, uint64_t length)
{
    struct content_reader *r = NULL;
    struct errinfo ei = {0};
    struct sv piece = {"", 1};
    uint64_t at = offset;
    if (content_open(&server, o->key, o->size, offset, length, &r, &ei) != ERR_OK)
        fail_msg("open: %s", ei.msg);
    while (piece.n > 0) {
        assert_int_equal(content_next(r, &piece, &ei), ERR_OK);
        for (size_t i = 0; i < piece.n; i++, at++)
            if ((unsigned char)piece.p[i] != byte_at(at))
                fail_msg("byte %llu differs", (unsigned long long)at);
    }
    assert_int_equal(at, offset + length);
    content_close(&r);
}

/* How far the announced size is off, and which way the body takes. */
static const struct {
    const char *what;
    bool known;
    int64_t off;
} ways[] = {
    {"size unknown", false, 0},
    {"size right", true, 0},
    {"two bytes more than announced", true, -2},
    {"fields behind the file", true, 150},
    {"many fields behind the file", true, 200000},
};
static const uint64_t sizes[] = {0,           1,           SEG - 1,     SEG,          SEG + 1, 4 * SEG - 1,
                                 4 * SEG,     4 * SEG + 1, 5 * SEG - 2, 5 * SEG - 1,  5 * SEG, 5 * SEG + 1,
                                 5 * SEG + 2, 9 * SEG,     1048579,     12 * SEG + 77};

static void test_ways_in(void **state)
{
    (void)state;
    for (size_t w = 0; w < ARRAY_LEN(ways); w++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            struct client c = {.size = sizes[i], .piece = 10007, .leaves_at = -1};
            struct content_object o;
            struct errinfo ei = {0};
            int64_t expected = ways[w].known ? (int64_t)sizes[i] + ways[w].off : -1;
            if (ways[w].known && expected < 0)
                continue;
            if (send(&c, expected, UINT64_MAX, &o, &ei) != ERR_OK)
                fail_msg("%s, %llu bytes: %s", ways[w].what, (unsigned long long)sizes[i], ei.msg);
            assert_int_equal(o.size, sizes[i]);
            assert_int_equal(store.n, 1);
            assert_int_equal(find(o.key)->bytes.len, schema_sealed_size(sizes[i]));
            assert_true(content_in_flight(&server, o.key));
            assert_reads(&o, 0, o.size);
            content_keep(&server, &o);
            assert_settled();
            store_clear();
        }
}

/* Straight through means: one put in pieces, and no second one. */
static void test_straight_is_one_pass(void **state)
{
    (void)state;
    struct client c = {.size = 20 * SEG, .piece = 30000, .leaves_at = -1};
    struct content_object o;
    struct errinfo ei;
    assert_int_equal(send(&c, 20 * SEG, UINT64_MAX, &o, &ei), ERR_OK);
    assert_int_equal(store.puts, 1);
    assert_int_equal(store.gets, 0);
    content_drop(&server, &o);
    assert_int_equal(store.n, 0);
    assert_string_equal(o.key, "");
    assert_settled();
}

static void test_ranges(void **state)
{
    (void)state;
    const uint64_t size = 9 * SEG + 100;
    const uint64_t at[] = {0, 1, SEG - 1, SEG, SEG + 1, 4 * SEG, 8 * SEG + 65535, 9 * SEG, size - 1, size};
    struct client c = {.size = size, .piece = SEG, .leaves_at = -1};
    struct content_object o;
    struct errinfo ei;
    assert_int_equal(send(&c, (int64_t)size, UINT64_MAX, &o, &ei), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        for (size_t k = i + 1; k < ARRAY_LEN(at); k++)
            assert_reads(&o, at[i], at[k] - at[i]);
    content_keep(&server, &o);
    assert_settled();
}

/* A reader that stops early holds nothing. */
static void test_early_close(void **state)
{
    (void)state;
    struct client c = {.size = 40 * SEG, .piece = SEG, .leaves_at = -1};
    struct content_object o;
    struct content_reader *r = NULL;
    struct errinfo ei;
    assert_int_equal(send(&c, 40 * SEG, UINT64_MAX, &o, &ei), ERR_OK);
    assert_int_equal(content_open(&server, o.key, o.size, 0, o.size, &r, &ei), ERR_OK);
    content_close(&r);
    content_keep(&server, &o);
    assert_settled();
}

/* An answer of the store that breaks off midway is taken up again where it ended. */
static void test_broken_answer(void **state)
{
    (void)state;
    static const int64_t after[] = {SEAL_SEALED_LEN, 3 * SEAL_SEALED_LEN + 777, 10 * SEAL_SEALED_LEN + 32};
    struct client c = {.size = 20 * SEG + 5, .piece = SEG, .leaves_at = -1};
    struct content_object o;
    struct errinfo ei;
    assert_int_equal(send(&c, (int64_t)c.size, UINT64_MAX, &o, &ei), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(after); i++) {
        store.gets = 0;
        store.break_after = after[i];
        assert_reads(&o, 3 * SEG + 7, o.size - 3 * SEG - 7);
        assert_int_equal(store.gets, 2);
    }
    content_keep(&server, &o);
    assert_settled();
}

static const struct {
    const char *what;
    uint64_t size;
    bool known;
    int64_t leaves_at, fail_after;
    bool down;
    uint64_t max;
    enum err want;
} failures[] = {
    {"leaves a small body", 1000, true, 500, -1, false, UINT64_MAX, ERR_CLOSED},
    {"leaves before the first byte", 20 * SEG, true, 0, -1, false, UINT64_MAX, ERR_CLOSED},
    {"leaves midway, straight", 20 * SEG, true, 10 * SEG, -1, false, UINT64_MAX, ERR_CLOSED},
    {"leaves midway, chunked", 20 * SEG, false, 10 * SEG, -1, false, UINT64_MAX, ERR_CLOSED},
    {"leaves at the last byte", 20 * SEG, true, 20 * SEG, -1, false, UINT64_MAX, ERR_CLOSED},
    {"store down, small", 1000, true, -1, -1, true, UINT64_MAX, ERR_STORE},
    {"store down, straight", 20 * SEG, true, -1, -1, true, UINT64_MAX, ERR_STORE},
    {"store down, chunked", 20 * SEG, false, -1, -1, true, UINT64_MAX, ERR_STORE},
    {"store fails midway, straight", 20 * SEG, true, -1, 9 * SEG, false, UINT64_MAX, ERR_STORE},
    {"store fails midway, chunked", 20 * SEG, false, -1, 9 * SEG, false, UINT64_MAX, ERR_STORE},
    {"too large, announced", 20 * SEG, true, -1, -1, false, 20 * SEG - 1, ERR_LIMIT},
    {"too large, chunked", 20 * SEG, false, -1, -1, false, 20 * SEG - 1, ERR_LIMIT},
    {"too large, chunked and small", 2000, false, -1, -1, false, 1999, ERR_LIMIT},
};

static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        struct client c = {.size = failures[i].size, .piece = 9999, .leaves_at = failures[i].leaves_at};
        struct content_object o;
        struct errinfo ei = {0};
        store.fail_after = failures[i].fail_after;
        store.down = failures[i].down;
        enum err e = send(&c, failures[i].known ? (int64_t)c.size : -1, failures[i].max, &o, &ei);
        if (e != failures[i].want)
            fail_msg("%s: %s", failures[i].what, err_symbol(e));
        assert_int_equal(ei.code, e);
        if (store.n != 0)
            fail_msg("%s: an object was left", failures[i].what);
        assert_settled();
        store_clear();
    }
}

/* The announced size was wrong, and the store fails when it is to be put right. */
static void test_second_pass_fails(void **state)
{
    (void)state;
    struct client c = {.size = 20 * SEG, .piece = 9999, .leaves_at = -1};
    struct content_object o;
    struct errinfo ei = {0};
    store.break_after = 3 * SEG;
    assert_int_equal(send(&c, 20 * SEG + 500, UINT64_MAX, &o, &ei), ERR_STORE);
    assert_string_equal(ei.msg, "the fake store broke off");
    assert_int_equal(store.n, 0);
    assert_settled();
}

static void test_no_temporary_folder(void **state)
{
    (void)state;
    struct client c = {.size = 20 * SEG, .piece = 9999, .leaves_at = -1};
    struct content_object o;
    struct errinfo ei = {0};
    char *before = mem_strdup(getenv("TMPDIR"));
    setenv("TMPDIR", "/nonexistent", 1);
    assert_int_equal(send(&c, -1, UINT64_MAX, &o, &ei), ERR_IO);
    assert_non_null(strstr(ei.msg, "/nonexistent"));
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    mem_free(before);
    assert_int_equal(store.n, 0);
    assert_settled();
}

/* What a store may have done to an object must not reach a client as content. */
static void test_damaged_objects(void **state)
{
    (void)state;
    static const uint64_t of[] = {0, 100, 4 * SEG, 20 * SEG};
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        struct client c = {.size = of[i], .piece = SEG, .leaves_at = -1};
        struct content_object o;
        struct content_reader *r = NULL;
        struct errinfo ei;
        struct sv piece = {"", 1};
        assert_int_equal(send(&c, (int64_t)of[i], UINT64_MAX, &o, &ei), ERR_OK);
        struct stored *s = find(o.key);

        s->bytes.data[s->bytes.len - 1] ^= 1; /* the last tag: found at the last piece */
        enum err e = content_open(&server, o.key, o.size, 0, o.size, &r, &ei);
        while (e == ERR_OK && piece.n > 0)
            e = content_next(r, &piece, &ei);
        assert_int_equal(e, ERR_WRONG);
        content_close(&r);
        s->bytes.data[s->bytes.len - 1] ^= 1;

        store.cut_to = (int64_t)s->bytes.len - 1;
        piece.n = 1;
        e = content_open(&server, o.key, o.size, 0, o.size, &r, &ei);
        while (e == ERR_OK && piece.n > 0)
            e = content_next(r, &piece, &ei);
        assert_int_equal(e, ERR_WRONG);
        content_close(&r);

        content_drop(&server, &o);
        assert_int_equal(content_open(&server, "acc/none", of[i], 0, of[i], &r, &ei), ERR_NOTFOUND);
        assert_settled();
        store_clear();
    }
}

/* ---- many at once ---- */

struct upload {
    struct client client;
    enum err err;
};

static void upload_in_coroutine(void *arg)
{
    struct upload *u = arg;
    struct content_object o;
    u->err = send(&u->client, (int64_t)u->client.size, UINT64_MAX, &o, NULL);
    if (u->err == ERR_OK)
        content_keep(&server, &o);
}

/* The memory of two uploads is there: the others wait, none fails. */
static void test_budget_makes_wait(void **state)
{
    (void)state;
    struct upload uploads[6];
    struct group g = {0};
    for (size_t i = 0; i < ARRAY_LEN(uploads); i++) {
        uploads[i] = (struct upload){.client = {.size = 30 * SEG, .piece = SEG, .leaves_at = -1}, .err = ERR_CHECK};
        group_spawn(server.loop, &g, upload_in_coroutine, &uploads[i]);
    }
    group_wait(server.loop, &g);
    for (size_t i = 0; i < ARRAY_LEN(uploads); i++)
        assert_int_equal(uploads[i].err, ERR_OK);
    assert_int_equal(store.n, ARRAY_LEN(uploads));
    assert_int_equal(store.peak, 2);
    assert_settled();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ways_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_straight_is_one_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_early_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_pass_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_temporary_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_objects, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_budget_makes_wait, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
