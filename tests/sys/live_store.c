/* The store layer against real servers: run by tests/sys/store.t in the folder of a stack that it may break. */
#include "base/digest.h"
#include "base/str.h"
#include "live.h"
#include "services.h"
#include "store/blob.h"
#include "store/kv.h"
#include "store/pg.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void stack(const char *action, const char *part)
{
    char command[600];
    snprintf(command, sizeof command, "\"%s\" stack %s %s --quiet", env("SIM"), action, part);
    if (system(command) != 0)
        fail_msg("%s failed", command);
}

static int64_t since_ms(struct mono begun)
{
    return mono_diff(mono_now(), begun) / US_PER_MS;
}

static struct errinfo why;
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if (call)                                                                                                      \
            fail_msg("%s: %s", #call, err_message(&why));                                                              \
    } while (0)

/* The peak has grown by less; the sanitizers keep freed memory, so they cannot tell. */
static void assert_grown_less(const struct rusage *before, long kib)
{
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
#ifndef __SANITIZE_ADDRESS__
    assert_true(now.ru_maxrss - before->ru_maxrss < kib);
#else
    (void)before, (void)kib;
#endif
}

/* ---- Postgres ---- */

static struct pg_pool *pool_of(unsigned max)
{
    struct pg_pool *p = NULL;
    MUST(pg_pool_new(&p, loop, env("DATABASE_URL"), max, &why));
    return p;
}

static void values_go_in_and_come_back(void **state)
{
    const char *odd = "tab\t quote' backslash\\ brace{} \xc3\xa4\xf0\x9f\x92\xa1";
    const char *params[] = {odd, NULL, "-9007199254740993", "t"};
    struct pg_pool *p = pool_of(1);
    struct pg_result *r = NULL;
    (void)state;
    MUST(pg_run(p, "SELECT $1::text AS a, $2::text AS b, $3::bigint AS c, $4::boolean AS d", 4, params, &r, &why));
    assert_int_equal(pg_rows(r), 1);
    assert_string_equal(pg_str(r, 0, 0), odd);
    assert_true(pg_is_null(r, 0, 1));
    assert_string_equal(pg_str(r, 0, 1), "");
    assert_true(pg_i64(r, 0, 2) == -9007199254740993);
    assert_true(pg_bool(r, 0, 3));
    pg_result_free(&r);
    assert_null(r);
    pg_pool_free(&p);
}

static void arrays_survive_any_text(void **state)
{
    const char *items[] = {"a", "", "NULL", "x\"y\\z", "{,}", NULL, "\xc3\xa4"};
    struct buf text = BUF_INIT(1000);
    struct pg_pool *p = pool_of(1);
    struct pg_result *r = NULL;
    (void)state;
    assert_int_equal(pg_array(&text, items, ARRAY_LEN(items)), ERR_OK);
    const char *params[] = {buf_cstr(&text)};
    MUST(pg_run(p, "SELECT t FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) ORDER BY n", 1, params, &r, &why));
    assert_int_equal(pg_rows(r), ARRAY_LEN(items));
    for (int i = 0; i < (int)ARRAY_LEN(items); i++) {
        assert_int_equal(pg_is_null(r, i, 0), items[i] == NULL);
        assert_string_equal(pg_str(r, i, 0), items[i] ? items[i] : "");
    }
    pg_result_free(&r);
    buf_done(&text);
    pg_pool_free(&p);
}

static void errors_carry_their_sqlstate(void **state)
{
    struct pg_pool *p = pool_of(1);
    struct errinfo ei;
    (void)state;
    assert_int_equal(pg_run(p, "SELECT 1 / 0", 0, NULL, NULL, &ei), ERR_DB);
    assert_string_equal(ei.sqlstate, "22012");
    assert_int_equal(pg_run(p, "SELEC", 0, NULL, NULL, &ei), ERR_DB);
    assert_string_equal(ei.sqlstate, "42601");
    assert_int_equal(pg_pool_open(p), 1); /* the connection is as good as before */
    MUST(pg_run(p, "SELECT 1", 0, NULL, NULL, &why));
    pg_pool_free(&p);
}

static void statements_are_prepared_once(void **state)
{
    static const char sql[] = "SELECT $1::int";
    const char *one[] = {"1"};
    struct pg_pool *p = pool_of(1);
    struct pg_result *r = NULL;
    (void)state;
    for (int i = 0; i < 100; i++)
        MUST(pg_run(p, sql, 1, one, NULL, &why));
    MUST(
        pg_run(p, "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1::int'", 0, NULL, &r, &why));
    assert_int_equal(pg_i64(r, 0, 0), 1);
    pg_result_free(&r);
    pg_pool_free(&p);
}

static void large_values_pass_in_both_directions(void **state)
{
    const size_t n = 20 * 1000 * 1000;
    char *text = mem_alloc(n + 1);
    struct pg_pool *p = pool_of(1);
    struct pg_result *r = NULL;
    (void)state;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + i % 26);
    text[n] = '\0';
    const char *params[] = {text};
    MUST(pg_run(p, "SELECT $1::text", 1, params, &r, &why));
    assert_int_equal(strlen(pg_str(r, 0, 0)), n);
    assert_memory_equal(pg_str(r, 0, 0), text, n);
    pg_result_free(&r);
    mem_free(text);
    pg_pool_free(&p);
}

struct counted {
    int64_t rows, sum, stop_at;
};

static bool count_row(void *arg, const struct pg_result *row)
{
    struct counted *c = arg;
    c->sum += pg_i64(row, 0, 0);
    return ++c->rows != c->stop_at;
}

static void rows_come_one_by_one(void **state)
{
    struct pg_pool *p = pool_of(1);
    struct pg *c = NULL;
    struct counted n = {0};
    struct rusage before;
    (void)state;
    MUST(pg_take(p, &c, &why));
    getrusage(RUSAGE_SELF, &before);
    MUST(pg_each(c, "SELECT i, repeat('x', 200) FROM generate_series(1, 200000) AS i", 0, NULL, count_row, &n, &why));
    assert_int_equal(n.rows, 200000);
    assert_true(n.sum == INT64_C(200000) * 200001 / 2);
    assert_grown_less(&before, 8 * 1024); /* of 40 MB of rows */
    pg_give(&c);
    pg_pool_free(&p);
}

static void a_stopped_query_is_cancelled_and_drained(void **state)
{
    struct pg_pool *p = pool_of(1);
    struct pg *c = NULL;
    (void)state;
    MUST(pg_take(p, &c, &why));
    for (int i = 0; i < 5; i++) {
        struct counted n = {.stop_at = 10};
        struct mono begun = mono_now();
        MUST(pg_each(c, "SELECT generate_series(1, 2000000000)", 0, NULL, count_row, &n, &why));
        assert_int_equal(n.rows, 10);
        assert_true(since_ms(begun) < 60000);               /* all rows take longer */
        MUST(pg_query(c, "SELECT 1", 0, NULL, NULL, &why)); /* the cancel does not hit it */
    }
    struct errinfo ei;
    struct counted n = {0};
    assert_int_equal(pg_each(c, "SELECT 10 / (i - 50) FROM generate_series(1, 100) AS i", 0, NULL, count_row, &n, &ei),
                     ERR_DB);
    assert_int_equal(n.rows, 49);
    assert_string_equal(ei.sqlstate, "22012");
    MUST(pg_query(c, "SELECT 1", 0, NULL, NULL, &why));
    pg_give(&c);
    assert_int_equal(pg_pool_open(p), 1);
    pg_pool_free(&p);
}

static void giving_back_rolls_back(void **state)
{
    struct pg_pool *p = pool_of(1);
    struct pg *c = NULL;
    struct pg_result *r = NULL;
    (void)state;
    MUST(pg_take(p, &c, &why));
    MUST(pg_script(c, "CREATE TEMPORARY TABLE t (i int)", &why));
    MUST(pg_script(c, "BEGIN; INSERT INTO t VALUES (1)", &why));
    pg_give(&c);
    assert_null(c);
    MUST(pg_run(p, "SELECT count(*) FROM t", 0, NULL, &r, &why)); /* the same connection: the pool has one */
    assert_int_equal(pg_i64(r, 0, 0), 0);
    pg_result_free(&r);
    MUST(pg_take(p, &c, &why));
    struct errinfo ei;
    assert_int_equal(pg_script(c, "BEGIN; SELECT 1 / 0", &ei), ERR_DB);
    pg_give(&c);
    pg_pool_free(&p); /* while the rollback runs */
}

struct queue {
    struct pg_pool *pool;
    int order[40], n, next, failed;
};

static void take_a_turn(void *arg)
{
    struct queue *q = arg;
    int me = q->next++;
    struct pg *c = NULL;
    struct errinfo ei;
    bool taken = pg_take(q->pool, &c, &ei) == ERR_OK;
    q->order[q->n++] = me; /* the order of the turns: how long a statement takes is Postgres' affair */
    if (!taken || pg_query(c, "SELECT pg_sleep(0.005)", 0, NULL, NULL, &ei))
        q->failed++;
    pg_give(&c);
}

static void a_pool_serves_in_order(void **state)
{
    struct queue q = {.pool = pool_of(3)};
    struct group g = {0};
    (void)state;
    for (int i = 0; i < 3; i++) /* connecting takes as long as it takes */
        group_spawn(loop, &g, take_a_turn, &q);
    group_wait(loop, &g);
    q.n = q.next = 0;
    for (int i = 0; i < 40; i++)
        group_spawn(loop, &g, take_a_turn, &q);
    group_wait(loop, &g);
    assert_int_equal(q.failed, 0);
    assert_int_equal(pg_pool_open(q.pool), 3);
    for (int i = 0; i < 40; i++)
        assert_int_equal(q.order[i], i);
    pg_pool_free(&q.pool);
}

static void broken_connections_are_replaced(void **state)
{
    struct pg_pool *p = pool_of(2), *other = pool_of(1);
    struct pg *c = NULL;
    struct pg_result *r = NULL;
    struct errinfo ei;
    (void)state;
    MUST(pg_run(p, "SELECT pg_backend_pid()::text", 0, NULL, &r, &why));
    const char *victim[] = {pg_str(r, 0, 0)};
    MUST(pg_run(other, "SELECT pg_terminate_backend($1::int, 5000)", 1, victim, NULL, &why));
    MUST(pg_run(p, "SELECT 1", 0, NULL, NULL, &why)); /* it died idle: nobody notices */
    pg_result_free(&r);
    MUST(pg_take(p, &c, &why));
    assert_int_equal(pg_query(c, "SELECT pg_terminate_backend(pg_backend_pid())", 0, NULL, NULL, &ei), ERR_DB_GONE);
    assert_int_equal(pg_query(c, "SELECT 1", 0, NULL, NULL, &ei), ERR_DB_GONE);
    pg_give(&c);
    MUST(pg_run(p, "SELECT 1", 0, NULL, NULL, &why));
    pg_pool_free(&p);
    pg_pool_free(&other);
}

static void a_killed_database_comes_back(void **state)
{
    struct pg_pool *p = pool_of(4);
    struct errinfo ei;
    (void)state;
    MUST(pg_run(p, "SELECT 1", 0, NULL, NULL, &why));
    stack("kill", "postgres");
    struct mono begun = mono_now();
    for (int tries = 0; tries < 5; tries++)
        assert_int_equal(pg_run(p, "SELECT 1", 0, NULL, NULL, &ei), ERR_DB_GONE);
    assert_true(since_ms(begun) >= 5 * 50); /* refused connections do not make callers spin */
    assert_non_null(strstr(ei.msg, "refused"));
    stack("start", "postgres");
    MUST(pg_run(p, "SELECT 1", 0, NULL, NULL, &why));
    pg_pool_free(&p);
}

struct asker {
    struct pg_pool *pool;
    const char *sql;
    enum err err;
    int64_t took_ms;
};

static void ask(void *arg)
{
    struct asker *a = arg;
    struct errinfo ei;
    struct mono begun = mono_now();
    a->err = pg_run(a->pool, a->sql, 0, NULL, NULL, &ei);
    a->took_ms = since_ms(begun);
}

/* Opens as many connections as the pool may have: on a busy machine that takes longer than an answer. */
static void open_all(struct pg_pool *p, size_t n)
{
    struct pg *c[4];
    assert_true(n <= ARRAY_LEN(c));
    for (size_t i = 0; i < n; i++)
        MUST(pg_take(p, &c[i], &why));
    for (size_t i = 0; i < n; i++)
        pg_give(&c[i]);
}

/* The first two find out, the last one is told at once; with the server everything is back. */
static void a_silent_database_is_given_up_once(void **state)
{
    struct asker a[3] = {{.sql = "SELECT 1"}, {.sql = "SELECT 2"}, {.sql = "SELECT 3"}};
    struct pg_pool *p = pool_of(4);
    struct group g = {0};
    (void)state;
    open_all(p, 4);
    for (int i = 0; i < 3; i++) {
        a[i].pool = p;
        ask(&a[i]);
        assert_int_equal(a[i].err, ERR_OK);
    }
    pg_pool_set_limit(p, 2 * US_PER_S);
    stack("pause", "postgres");
    for (int i = 0; i < 2; i++)
        group_spawn(loop, &g, ask, &a[i]);
    group_wait(loop, &g);
    for (int i = 0; i < 2; i++)
        assert_int_equal(a[i].err, ERR_DB_GONE);
    pg_pool_set_limit(p, 600 * US_PER_S); /* none of what follows ends by it */
    group_spawn(loop, &g, ask, &a[0]);
    coro_sleep_until(loop, mono_add(mono_now(), 100 * US_PER_MS));
    ask(&a[2]);
    assert_int_equal(a[2].err, ERR_DB_GONE);
    assert_true(g.running == 1);
    stack("resume", "postgres");
    group_wait(loop, &g);
    MUST(pg_run(p, "SELECT 1", 0, NULL, NULL, &why));
    pg_pool_free(&p);
}

/* A statement that is slow beside others that are answered gets four times the limit, a job what it takes. */
static void slow_statements_get_more_time(void **state)
{
    struct asker slow = {.sql = "SELECT pg_sleep(1.2)"}, too_slow = {.sql = "SELECT pg_sleep(30)"};
    struct pg_pool *p = pool_of(3);
    struct group g = {0};
    (void)state;
    open_all(p, 3);
    pg_pool_set_limit(p, US_PER_S);
    slow.pool = too_slow.pool = p;
    group_spawn(loop, &g, ask, &slow);
    group_spawn(loop, &g, ask, &too_slow);
    for (int i = 0; g.running > 0 && i < 200; i++) {
        MUST(pg_run(p, "SELECT 1", 0, NULL, NULL, &why));
        coro_sleep_until(loop, mono_add(mono_now(), 50 * US_PER_MS));
    }
    group_wait(loop, &g);
    assert_int_equal(slow.err, ERR_OK);
    assert_int_equal(too_slow.err, ERR_DB_GONE);
    assert_true(too_slow.took_ms >= 3900);
    MUST(pg_run_long(p, "SELECT pg_sleep(1.2)", 0, NULL, NULL, &why));
    pg_pool_free(&p);
}

static void wrong_addresses_say_so(void **state)
{
    struct pg_pool *p = NULL;
    struct errinfo ei;
    (void)state;
    assert_int_equal(pg_pool_new(&p, loop, "postgresql://127.0.0.1:port/x", 1, &ei), ERR_USAGE);
    assert_int_equal(pg_pool_new(&p, loop, "nonsense", 1, &ei), ERR_USAGE);
    assert_int_equal(pg_pool_new(&p, loop, "postgresql://tma:wrong@127.0.0.1:1/tma_load", 1, &ei), ERR_OK);
    assert_int_equal(pg_run(p, "SELECT 1", 0, NULL, NULL, &ei), ERR_DB_GONE);
    pg_pool_free(&p);
}

/* ---- Redis ---- */

static struct kv *kv_of(void)
{
    struct kv *k = NULL;
    MUST(kv_new(&k, loop, env("REDIS_URL"), &why));
    MUST(kv_ready(k, mono_add(mono_now(), 300 * US_PER_S), &why));
    return k;
}

static enum err command(struct kv *k, struct kv_reply *out, struct errinfo *ei, const char *text)
{
    struct sv argv[16], rest = sv_of(text);
    size_t n = 0;
    while (n < 16 && sv_split(&rest, ' ', &argv[n]))
        n++;
    return kv_command(k, n, argv, out, ei);
}

static void replies_of_every_kind(void **state)
{
    struct kv *k = kv_of();
    struct kv_reply r = {0};
    struct errinfo ei;
    const struct sv binary[] = {SV("SET"), SV("bin"), SV("a\0\r\n\xff z")};
    const struct sv get[] = {SV("GET"), SV("bin")};
    (void)state;
    MUST(kv_command(k, 3, binary, &r, &why));
    assert_int_equal(r.type, KV_STATUS);
    kv_reply_done(&r);
    MUST(kv_command(k, 2, get, &r, &why));
    assert_int_equal(r.type, KV_STR);
    assert_int_equal(r.n, binary[2].n);
    assert_memory_equal(r.s, binary[2].p, r.n);
    kv_reply_done(&r);
    MUST(command(k, &r, &why, "GET absent"));
    assert_int_equal(r.type, KV_NIL);
    MUST(command(k, &r, &why, "INCRBY n 41"));
    assert_true(r.type == KV_INT && r.i == 41);
    MUST(command(k, NULL, &why, "RPUSH l a b"));
    MUST(command(k, &r, &why, "LRANGE l 0 -1"));
    assert_true(r.type == KV_ARRAY && r.n_items == 2 && r.items[1].n == 1 && r.items[1].s[0] == 'b');
    kv_reply_done(&r);
    assert_int_equal(command(k, &r, &ei, "LPUSH n x"), ERR_KV);
    assert_non_null(strstr(ei.msg, "WRONGTYPE"));
    kv_free(&k);
}

static void commands_keep_their_order(void **state)
{
    struct kv *k = kv_of();
    struct kv_reply r = {0};
    char number[16];
    (void)state;
    MUST(command(k, NULL, &why, "DEL order"));
    for (int i = 0; i < 500; i++) {
        snprintf(number, sizeof number, "%d", i);
        const struct sv push[] = {SV("RPUSH"), SV("order"), sv_of(number)};
        assert_true(kv_send(k, 3, push));
    }
    MUST(command(k, &r, &why, "LRANGE order 0 -1"));
    assert_int_equal(r.n_items, 500);
    for (int i = 0; i < 500; i++) {
        snprintf(number, sizeof number, "%d", i);
        assert_string_equal(r.items[i].s, number);
    }
    kv_reply_done(&r);
    kv_free(&k);
}

struct heard {
    char text[400];
    int ups, downs;
    struct done changed;
};

static void on_message(void *arg, struct sv channel, struct sv payload)
{
    struct heard *h = arg;
    size_t n = strlen(h->text);
    snprintf(h->text + n, sizeof h->text - n, SV_FMT "=" SV_FMT " ", SV_ARG(channel), SV_ARG(payload));
    done_set(&h->changed);
}

static void on_up(void *arg, bool up)
{
    struct heard *h = arg;
    if (up)
        h->ups++;
    else
        h->downs++;
    done_set(&h->changed);
}

static void messages_arrive_and_losses_are_told(void **state)
{
    struct kv *k = kv_of();
    struct heard h = {0};
    struct errinfo ei;
    struct mono limit = mono_add(mono_now(), 300 * US_PER_S);
    (void)state;
    MUST(kv_subscribe(k, "t:*", on_message, on_up, &h, &why));
    while (h.ups == 0)
        assert_true(done_wait_until(loop, &h.changed, limit));
    for (int i = 0; i < 3; i++)
        MUST(command(k, NULL, &why, i == 1 ? "PUBLISH other no" : i == 0 ? "PUBLISH t:1 one" : "PUBLISH t:2 two"));
    while (!strstr(h.text, "two"))
        assert_true(done_wait_until(loop, &h.changed, limit));
    assert_string_equal(h.text, "t:1=one t:2=two ");
    stack("kill", "redis");
    while (h.downs == 0)
        assert_true(done_wait_until(loop, &h.changed, limit));
    struct mono begun = mono_now();
    while (kv_up(k))
        (void)!command(k, NULL, &ei, "PING");
    for (int i = 0; i < 10; i++)
        assert_int_equal(command(k, NULL, &ei, "PING"), ERR_KV);
    const struct sv ping[] = {SV("PING")};
    assert_false(kv_send(k, 1, ping));
    assert_true(since_ms(begun) < 30000); /* down is said at once: ten limits of 4 s would take longer */
    stack("start", "redis");
    MUST(kv_ready(k, limit, &why));
    while (h.ups < 2)
        assert_true(done_wait_until(loop, &h.changed, limit));
    MUST(command(k, NULL, &why, "PUBLISH t:3 three"));
    while (!strstr(h.text, "three"))
        assert_true(done_wait_until(loop, &h.changed, limit));
    kv_free(&k);
}

static void a_silent_redis_is_given_up(void **state)
{
    struct kv *k = kv_of();
    struct kv_reply r = {0};
    struct errinfo ei;
    int64_t pid = 0;
    (void)state;
    MUST(command(k, &r, &why, "INFO server"));
    const char *at = strstr(r.s, "process_id:");
    assert_non_null(at);
    struct sv rest = sv_of(at + 11), digits;
    assert_true(sv_split(&rest, '\r', &digits) && sv_to_i64(digits, &pid));
    kv_reply_done(&r);
    kill((pid_t)pid, SIGSTOP);
    struct mono begun = mono_now();
    assert_int_equal(command(k, NULL, &ei, "PING"), ERR_KV);
    int64_t took = since_ms(begun);
    kill((pid_t)pid, SIGCONT);
    assert_true(took >= 4000 && took < 60000);
    MUST(kv_ready(k, mono_add(mono_now(), 300 * US_PER_S), &why));
    MUST(command(k, NULL, &why, "PING"));
    kv_free(&k);
}

/* As long as no connection was tried, nothing can be said of it. */
static void never_ready(struct kv *k, const char *says)
{
    struct errinfo ei = {.code = ERR_OK};
    for (int i = 0; i < 200 && !strstr(ei.msg, says); i++)
        assert_int_equal(kv_ready(k, mono_add(mono_now(), 300 * US_PER_MS), &ei), ERR_KV);
    assert_non_null(strstr(ei.msg, says));
}

static void wrong_redis_addresses_say_so(void **state)
{
    static const char *const bad[] = {"",
                                      "redis:",
                                      "http://h",
                                      "redis://",
                                      "redis://h:x",
                                      "redis://h:0",
                                      "redis://h/x",
                                      "redis://u@h",
                                      "redis://[::1"};
    struct kv *k = NULL;
    struct errinfo ei;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (kv_new(&k, loop, bad[i], &ei) != ERR_USAGE)
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(kv_new(&k, loop, "redis://kv.example.com/0", &ei), ERR_SAFETY);
    assert_int_equal(kv_new(&k, loop, "rediss://127.0.0.1/0", &ei), ERR_ENV); /* TLS is not spoken, and said */
    MUST(kv_new(&k, loop, "redis://127.0.0.1:1/0", &why));
    never_ready(k, "refused");
    kv_free(&k);
    char url[200];
    snprintf(url, sizeof url, "redis://:secret@%s", env("REDIS_URL") + strlen("redis://"));
    MUST(kv_new(&k, loop, url, &why)); /* a password where none is set */
    never_ready(k, "AUTH");
    kv_free(&k);
}

/* ---- the store ---- */

static struct blob *blob_of(const char *secret)
{
    struct blob *b = NULL;
    struct blob_conf conf = {.endpoint = env("TMA_LOAD_S3_ENDPOINT"),
                             .bucket = env("TMA_LOAD_S3_BUCKET"),
                             .access_key = env("TMA_LOAD_S3_ACCESS_KEY"),
                             .secret_key = secret ? secret : env("TMA_LOAD_S3_SECRET_KEY"),
                             .path_style = true};
    MUST(blob_new(&b, loop, http, work, &conf, &why));
    return b;
}

static void objects_come_and_go(void **state)
{
    struct blob *b = blob_of(NULL);
    struct buf got = BUF_INIT(100);
    struct blob_info info;
    struct errinfo ei;
    (void)state;
    MUST(blob_bucket_create(b, &why));
    MUST(blob_bucket_create(b, &why));
    MUST(blob_probe(b, &why));
    MUST(blob_put(b, "acc/One_1.-x", "0123456789", 10, &why));
    MUST(blob_put(b, "acc/empty", NULL, 0, &why));
    MUST(blob_head(b, "acc/One_1.-x", &info, &why));
    assert_int_equal(info.size, 10);
    assert_true(llabs(info.modified.us - wall_now().us) < 60 * US_PER_S);
    MUST(blob_head(b, "acc/empty", &info, &why));
    assert_int_equal(info.size, 0);
    MUST(blob_get(b, "acc/empty", 0, 0, &got, &why));
    assert_int_equal(got.len, 0);
    MUST(blob_get(b, "acc/One_1.-x", 3, 4, &got, &why));
    assert_string_equal(buf_cstr(&got), "3456");
    MUST(blob_get(b, "acc/One_1.-x", 7, 0, &got, &why));
    assert_string_equal(buf_cstr(&got), "3456789");
    buf_reset(&got);
    MUST(blob_copy(b, "acc/One_1.-x", "acc/copy", &why));
    MUST(blob_delete(b, "acc/One_1.-x", &why));
    MUST(blob_delete(b, "acc/One_1.-x", &why));
    MUST(blob_get(b, "acc/copy", 0, 0, &got, &why));
    assert_string_equal(buf_cstr(&got), "0123456789");
    assert_int_equal(blob_head(b, "acc/One_1.-x", &info, &ei), ERR_NOTFOUND);
    assert_int_equal(blob_get(b, "acc/One_1.-x", 0, 0, &got, &ei), ERR_NOTFOUND);
    assert_int_equal(blob_copy(b, "acc/One_1.-x", "acc/copy2", &ei), ERR_NOTFOUND);
    MUST(blob_delete(b, "acc/copy", &why));
    MUST(blob_delete(b, "acc/empty", &why));
    buf_done(&got);
    blob_free(&b);
}

static void wrong_keys_and_buckets_say_so(void **state)
{
    struct blob *b = blob_of("not the secret");
    struct errinfo ei;
    (void)state;
    assert_int_equal(blob_put(b, "k", "x", 1, &ei), ERR_STORE);
    assert_non_null(strstr(ei.msg, "SignatureDoesNotMatch"));
    assert_int_equal(blob_probe(b, &ei), ERR_STORE);
    assert_memory_equal(ei.msg, "head: ", 6);
    blob_free(&b);
    struct blob_conf conf = {.endpoint = env("TMA_LOAD_S3_ENDPOINT"),
                             .bucket = "no-such-bucket",
                             .access_key = env("TMA_LOAD_S3_ACCESS_KEY"),
                             .secret_key = env("TMA_LOAD_S3_SECRET_KEY"),
                             .path_style = true};
    MUST(blob_new(&b, loop, http, work, &conf, &why));
    assert_int_equal(blob_put(b, "k", "x", 1, &ei), ERR_STORE);
    assert_non_null(strstr(ei.msg, "NoSuchBucket"));
    assert_int_equal(blob_probe(b, &ei), ERR_STORE);
    assert_non_null(strstr(ei.msg, "no-such-bucket does not exist"));
    blob_free(&b);
}

/* A body that can be computed at any offset. */
static void pattern(char *dst, uint64_t offset, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (char)((offset + i) * 2654435761u >> 13);
}

struct feed {
    struct wpipe *pipe;
    uint64_t size;
    enum err end; /* closes with it */
    enum err err; /* of the writer */
};

static void write_feed(void *arg)
{
    struct feed *f = arg;
    static char chunk[40000]; /* not on a coroutine's stack; one feed at a time */
    for (uint64_t at = 0; at < f->size && !f->err;) {
        size_t n = f->size - at < sizeof chunk ? (size_t)(f->size - at) : sizeof chunk;
        pattern(chunk, at, n);
        f->err = wpipe_write(f->pipe, chunk, n);
        at += n;
    }
    wpipe_close_write(f->pipe, f->end);
}

static enum err put_feed(struct blob *b, const char *key, uint64_t size, struct feed *f, struct errinfo *ei)
{
    struct group g = {0};
    f->pipe = wpipe_new(loop, 256 * 1024);
    group_spawn(loop, &g, write_feed, f);
    enum err err = blob_put_stream(b, key, size, f->pipe, ei);
    group_wait(loop, &g);
    wpipe_free(&f->pipe);
    return err;
}

static void read_all(void *arg)
{
    struct feed *f = arg;
    static char chunk[50000], want[50000];
    size_t n;
    for (;;) {
        f->err = wpipe_read(f->pipe, chunk, sizeof chunk, &n);
        if (f->err || n == 0)
            return;
        pattern(want, f->size, n);
        if (memcmp(chunk, want, n) != 0) {
            f->err = ERR_WRONG;
            wpipe_close_read(f->pipe);
            return;
        }
        f->size += n;
    }
}

static enum err get_feed(struct blob *b, const char *key, uint64_t offset, uint64_t length, struct feed *f,
                         struct errinfo *ei)
{
    struct group g = {0};
    f->pipe = wpipe_new(loop, 256 * 1024);
    f->size = offset;
    group_spawn(loop, &g, read_all, f);
    enum err err = blob_get_stream(b, key, offset, length, f->pipe, ei);
    group_wait(loop, &g);
    wpipe_free(&f->pipe);
    return err;
}

static void large_bodies_stream(void **state)
{
    const uint64_t size = 30 * 1024 * 1024 + 7;
    struct blob *b = blob_of(NULL);
    struct feed f = {.size = size};
    struct blob_info info;
    struct rusage before;
    (void)state;
    getrusage(RUSAGE_SELF, &before);
    MUST(put_feed(b, "big/one", size, &f, &why));
    MUST(blob_head(b, "big/one", &info, &why));
    assert_true(info.size == size);
    MUST(get_feed(b, "big/one", 0, 0, &f, &why));
    assert_true(f.size == size && f.err == ERR_OK);
    MUST(get_feed(b, "big/one", 1000001, 3000000, &f, &why));
    assert_true(f.size == 4000001);
    assert_grown_less(&before, 16 * 1024);
    struct errinfo ei;
    assert_int_equal(get_feed(b, "big/none", 0, 0, &f, &ei), ERR_NOTFOUND);
    assert_int_equal(f.err, ERR_NOTFOUND); /* the reader is told too */
    MUST(blob_delete(b, "big/one", &why));
    blob_free(&b);
}

static void an_upload_that_fails_leaves_nothing(void **state)
{
    static const struct {
        uint64_t written, promised;
        enum err end;
    } rows[] = {
        {5 * 1024 * 1024, 6 * 1024 * 1024, ERR_OK},    /* ends early */
        {5 * 1024 * 1024, 6 * 1024 * 1024, ERR_RESET}, /* its client went away */
        {0, 10, ERR_OK},
        {1000, 2000, ERR_CANCELLED},
    };
    struct blob *b = blob_of(NULL);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct feed f = {.size = rows[i].written, .end = rows[i].end};
        struct blob_info info;
        struct errinfo ei;
        char key[32];
        snprintf(key, sizeof key, "cut/%zu", i);
        assert_int_equal(put_feed(b, key, rows[i].promised, &f, &ei), ERR_CANCELLED);
        assert_int_equal(blob_head(b, key, &info, &ei), ERR_NOTFOUND);
    }
    blob_free(&b);
}

static void a_reader_that_leaves_ends_the_download(void **state)
{
    struct blob *b = blob_of(NULL);
    struct feed f = {.size = 8 * 1024 * 1024};
    struct errinfo ei;
    (void)state;
    MUST(put_feed(b, "left/one", f.size, &f, &why));
    struct wpipe *pipe = wpipe_new(loop, 64 * 1024);
    wpipe_close_read(pipe);
    assert_int_equal(blob_get_stream(b, "left/one", 0, 0, pipe, &ei), ERR_CANCELLED);
    wpipe_free(&pipe);
    MUST(blob_delete(b, "left/one", &why));
    blob_free(&b);
}

struct many {
    struct blob *b;
    int next, n, failed;
};

static void put_and_get_many(void *arg)
{
    struct many *m = arg;
    while (m->next < m->n) {
        char key[32], body[64];
        struct buf got = BUF_INIT(100);
        struct errinfo ei;
        snprintf(key, sizeof key, "many/%05d", m->next++);
        snprintf(body, sizeof body, "body of %s", key);
        if (blob_put(m->b, key, body, strlen(body), &ei) || blob_get(m->b, key, 0, 0, &got, &ei) ||
            strcmp(buf_cstr(&got), body) != 0)
            m->failed++;
        buf_done(&got);
    }
}

static bool count_key(void *arg, const char *key, const struct blob_info *info)
{
    struct many *m = arg;
    char want[32];
    (void)info;
    snprintf(want, sizeof want, "many/%05d", m->next++);
    return strcmp(want, key) == 0 || ++m->failed < 1;
}

static void thousands_are_listed_and_deleted(void **state)
{
    struct many m = {.b = blob_of(NULL), .n = 2100};
    struct group g = {0};
    size_t failed = 9;
    (void)state;
    for (int i = 0; i < 16; i++)
        group_spawn(loop, &g, put_and_get_many, &m);
    group_wait(loop, &g);
    assert_int_equal(m.failed, 0);
    m.next = 0;
    MUST(blob_list(m.b, "many/", count_key, &m, &why));
    assert_int_equal(m.next, 2100);
    assert_int_equal(m.failed, 0);
    char **keys = mem_alloc(2101 * sizeof *keys);
    for (int i = 0; i < 2101; i++) { /* the last one does not exist: that is no failure */
        keys[i] = mem_alloc(32);
        snprintf(keys[i], 32, "many/%05d", i);
    }
    MUST(blob_delete_many(m.b, (const char *const *)keys, 2101, &failed, &why));
    assert_int_equal(failed, 0);
    assert_true(blob_has_multi_delete(m.b));
    m.next = 0;
    MUST(blob_list(m.b, "many/", count_key, &m, &why));
    assert_int_equal(m.next, 0);
    for (int i = 0; i < 2101; i++)
        mem_free(keys[i]);
    mem_free(keys);
    blob_free(&m.b);
}

struct patient {
    struct blob *b;
    enum err err;
    int64_t took_ms;
};

static void put_patiently(void *arg)
{
    struct patient *p = arg;
    struct errinfo ei;
    struct mono begun = mono_now();
    p->err = blob_put(p->b, "silent", "x", 1, &ei);
    p->took_ms = since_ms(begun);
}

/* More calls than threads: without the gate the last would wait for several limits of 15 s. */
static void a_silent_store_is_given_up_once(void **state)
{
    struct blob *b = blob_of(NULL);
    struct patient calls[24];
    struct group g = {0};
    (void)state;
    MUST(blob_put(b, "silent", "x", 1, &why));
    stack("pause", "store");
    struct mono begun = mono_now();
    for (int i = 0; i < 24; i++) {
        calls[i] = (struct patient){.b = b};
        group_spawn(loop, &g, put_patiently, &calls[i]);
    }
    group_wait(loop, &g);
    int64_t took = since_ms(begun);
    struct patient probe = {.b = b};
    stack("resume", "store");
    for (int i = 0; i < 24; i++)
        assert_int_equal(calls[i].err, ERR_STORE);
    assert_true(took >= 10000 && took < 29000);
    for (begun = mono_now(); since_ms(begun) < 120000; coro_sleep_until(loop, mono_add(mono_now(), 100 * US_PER_MS))) {
        put_patiently(&probe);
        if (probe.err == ERR_OK)
            break;
    }
    assert_int_equal(probe.err, ERR_OK);
    MUST(blob_delete(b, "silent", &why));
    blob_free(&b);
}

/* Whatever a row calls an object: nothing outside of the bucket is read, written or deleted. */
static void keys_stay_in_their_bucket(void **state)
{
    static const char *const keys[] = {"../../../outside/x", "a/../../../../outside/x",
                                       "../tma-load/../../../outside/x"};
    struct blob *b = blob_of(NULL);
    struct blob_info info;
    struct buf got = BUF_INIT(100);
    size_t failed = 0;
    FILE *f;
    (void)state;
    assert_int_equal(system("mkdir .sim/outside .sim/outside/empty"), 0);
    assert_non_null(f = fopen(".sim/outside/x._S3rver_object", "w"));
    assert_true(fputs("theirs", f) > 0 && fclose(f) == 0);
    (void)!blob_delete_many(b, keys, ARRAY_LEN(keys), &failed, NULL);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        assert_int_not_equal(blob_head(b, keys[i], &info, NULL), ERR_OK);
        assert_int_not_equal(blob_get(b, keys[i], 0, 0, &got, NULL), ERR_OK);
        (void)!blob_put(b, keys[i], "ours", 4, NULL);
        (void)!blob_delete(b, keys[i], NULL);
        assert_int_not_equal(blob_copy(b, keys[i], "copied", NULL), ERR_OK);
    }
    char text[16] = "";
    assert_non_null(f = fopen(".sim/outside/x._S3rver_object", "r"));
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "theirs");
    assert_int_equal(system("rm -r .sim/outside/empty .sim/outside"), 0);
    buf_done(&got);
    blob_free(&b);
}

static void a_killed_store_comes_back(void **state)
{
    struct blob *b = blob_of(NULL);
    struct patient p = {.b = b};
    struct buf got = BUF_INIT(100);
    (void)state;
    MUST(blob_put(b, "kept", "still here", 10, &why));
    stack("kill", "store");
    put_patiently(&p);
    assert_int_equal(p.err, ERR_STORE);
    assert_true(p.took_ms < 14000); /* a limit is 15 s */
    stack("start", "store");
    MUST(blob_get(b, "kept", 0, 0, &got, &why));
    assert_string_equal(buf_cstr(&got), "still here");
    MUST(blob_delete(b, "kept", &why));
    buf_done(&got);
    blob_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_in_and_come_back),
        cmocka_unit_test(arrays_survive_any_text),
        cmocka_unit_test(errors_carry_their_sqlstate),
        cmocka_unit_test(statements_are_prepared_once),
        cmocka_unit_test(large_values_pass_in_both_directions),
        cmocka_unit_test(rows_come_one_by_one),
        cmocka_unit_test(a_stopped_query_is_cancelled_and_drained),
        cmocka_unit_test(giving_back_rolls_back),
        cmocka_unit_test(a_pool_serves_in_order),
        cmocka_unit_test(broken_connections_are_replaced),
        cmocka_unit_test(a_killed_database_comes_back),
        cmocka_unit_test(a_silent_database_is_given_up_once),
        cmocka_unit_test(slow_statements_get_more_time),
        cmocka_unit_test(wrong_addresses_say_so),
        cmocka_unit_test(replies_of_every_kind),
        cmocka_unit_test(commands_keep_their_order),
        cmocka_unit_test(messages_arrive_and_losses_are_told),
        cmocka_unit_test(a_silent_redis_is_given_up),
        cmocka_unit_test(wrong_redis_addresses_say_so),
        cmocka_unit_test(objects_come_and_go),
        cmocka_unit_test(wrong_keys_and_buckets_say_so),
        cmocka_unit_test(large_bodies_stream),
        cmocka_unit_test(an_upload_that_fails_leaves_nothing),
        cmocka_unit_test(a_reader_that_leaves_ends_the_download),
        cmocka_unit_test(thousands_are_listed_and_deleted),
        cmocka_unit_test(keys_stay_in_their_bucket),
        cmocka_unit_test(a_killed_store_comes_back),
        cmocka_unit_test(a_silent_store_is_given_up_once),
    };
    return cmocka_run_group_tests(tests, services_up, services_down);
}
