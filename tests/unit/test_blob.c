/* The bucket client against a scripted store: what real ones do when they are old, busy or broken (cases.md C13). */
#include "base/digest.h"
#include "services.h"
#include "store/blob.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a store that answers by a list, whichever connections its requests come on ---- */

struct answer {
    const char *expect; /* must stand in the request's head; NULL: anything */
    const char *status; /* "200 OK"; NULL: closes without a word */
    const char *body;
    int extra_length; /* Content-Length says so much more than is sent, then the connection closes */
};
struct store {
    pthread_t thread;
    pthread_mutex_t lock;
    int listener, port;
    pthread_t threads[64]; /* one a connection */
    int fds[64], n_connections;
    const struct answer *answers;
    size_t n, served;
    bool deaf;       /* never says 100 Continue */
    char wrong[400]; /* the first request that was not expected */
};
struct connection {
    struct store *store;
    int fd;
};

/* deaf: does not say 100 Continue. */
static bool read_request(int fd, char *head, size_t cap, bool deaf)
{
    size_t n = 0;
    char *end = NULL;
    while (n < cap - 1 && !end) {
        ssize_t got = read(fd, head + n, cap - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        head[n] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    const char *length = strstr(head, "Content-Length: ");
    long body = length && length < end ? strtol(length + 16, NULL, 10) : 0;
    long have = end ? (long)n - (end + 4 - head) : 0;
    if (end && !deaf && strstr(head, "Expect: 100-continue"))
        (void)!write(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    char sink[65536];
    if (end)
        end[2] = '\0';
    while (have < body) {
        ssize_t got = read(fd, sink, sizeof sink);
        if (got <= 0)
            return false;
        have += got;
    }
    return true;
}

static void reply(int fd, const struct answer *a, bool head_only)
{
    char text[512];
    size_t n = a->body ? strlen(a->body) : 0;
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 %s\r\nContent-Length: %zu\r\nLast-Modified: Mon, 30 Nov 2026 09:00:00 GMT\r\n"
                       "ETag: \"e\"\r\n\r\n",
                       a->status, n + (size_t)a->extra_length);
    (void)!write(fd, text, (size_t)len);
    if (n > 0 && !head_only)
        (void)!write(fd, a->body, n);
}

static const struct answer *next_answer(struct store *s, const char *head)
{
    static const struct answer none = {.status = "500 Not Scripted"};
    pthread_mutex_lock(&s->lock);
    const struct answer *a = s->served < s->n ? &s->answers[s->served] : &none;
    s->served++;
    if (!s->wrong[0] && (a == &none || (a->expect && !strstr(head, a->expect))))
        snprintf(s->wrong, sizeof s->wrong, "wanted %s, got %.300s", a->expect ? a->expect : "nothing", head);
    pthread_mutex_unlock(&s->lock);
    return a;
}

static void *serve_connection(void *arg)
{
    struct connection *c = arg;
    struct store *s = c->store;
    char head[8192];
    while (read_request(c->fd, head, sizeof head, s->deaf)) { /* the client also connects just to see whether it can */
        const struct answer *a = next_answer(s, head);
        if (!a->status)
            break;
        reply(c->fd, a, strncmp(head, "HEAD", 4) == 0);
        if (a->extra_length)
            break;
    }
    shutdown(c->fd, SHUT_RDWR); /* closed by store_end: the number stays ours until then */
    free(c);
    return NULL;
}

static void *serve(void *arg)
{
    struct store *s = arg;
    int fd;
    while (s->n_connections < 64 && (fd = accept(s->listener, NULL, NULL)) >= 0) {
        struct connection *c = malloc(sizeof *c);
        *c = (struct connection){s, fd};
        s->fds[s->n_connections] = fd;
        pthread_create(&s->threads[s->n_connections++], NULL, serve_connection, c);
    }
    return NULL;
}

static void store_start(struct store *s, const struct answer *answers, size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    *s = (struct store){.answers = answers, .n = n};
    pthread_mutex_init(&s->lock, NULL);
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    getsockname(s->listener, (struct sockaddr *)&a, &len);
    s->port = ntohs(a.sin_port);
    pthread_create(&s->thread, NULL, serve, s);
}

/* Every scripted answer was given, and to the right request. libs3 keeps its connections in a pool of its own, so those
 * are cut here. */
static void store_end(struct store *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    for (int i = 0; i < s->n_connections; i++) {
        shutdown(s->fds[i], SHUT_RDWR);
        pthread_join(s->threads[i], NULL);
        close(s->fds[i]);
    }
    assert_string_equal(s->wrong, "");
    assert_int_equal(s->served, s->n);
}

/* ---- the client ---- */

static struct blob *client(int port)
{
    char endpoint[64];
    struct blob *b = NULL;
    struct errinfo ei;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", port);
    struct blob_conf conf = {
        .endpoint = endpoint, .bucket = "bucket", .access_key = "key", .secret_key = "secret", .path_style = true};
    if (blob_new(&b, loop, http, work, &conf, &ei))
        fail_msg("%s", err_message(&ei));
    return b;
}

#define SCRIPT(...)                                                                                                    \
    static const struct answer script[] = {__VA_ARGS__};                                                               \
    struct store store;                                                                                                \
    struct errinfo ei = {0};                                                                                           \
    (void)state;                                                                                                       \
    store_start(&store, script, ARRAY_LEN(script));                                                                    \
    struct blob *b = client(store.port)

#define OK_DELETE "<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>"
static const char *const three[] = {"a/1", "a/2", "a/3"};

static void multi_delete_is_used_where_it_works(void **state)
{
    size_t failed = 9;
    SCRIPT({"POST /bucket?delete= ", "200 OK", OK_DELETE, 0}, {"POST /bucket?delete= ", "200 OK", OK_DELETE, 0});
    assert_int_equal(blob_delete_many(b, three, 3, &failed, &ei), ERR_OK);
    assert_int_equal(failed, 0);
    assert_true(blob_has_multi_delete(b));
    assert_int_equal(blob_delete_many(b, three, 1, &failed, &ei), ERR_OK);
    blob_free(&b);
    store_end(&store);
}

/* libs3 would go there, whatever host it is. */
static void a_redirect_is_not_followed(void **state)
{
    struct blob_info info;
    SCRIPT({"HEAD ", "307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/elsewhere", NULL, 0});
    assert_int_equal(blob_head(b, "a/1", &info, &ei), ERR_STORE);
    assert_null(strstr(ei.msg, "onnect"));
    blob_free(&b);
    store_end(&store);
}

static void batches_hold_a_thousand(void **state)
{
    const char **keys = mem_alloc(2001 * sizeof *keys);
    size_t failed = 9;
    SCRIPT({"POST ", "200 OK", OK_DELETE, 0}, {"POST ", "200 OK", OK_DELETE, 0}, {"POST ", "200 OK", OK_DELETE, 0});
    for (int i = 0; i < 2001; i++)
        keys[i] = "a/key";
    assert_int_equal(blob_delete_many(b, keys, 2001, &failed, &ei), ERR_OK);
    mem_free(keys);
    blob_free(&b);
    store_end(&store);
}

static void falls_back_to_single_deletes(void **state)
{
    static const struct {
        const char *status, *body;
    } rows[] = {
        {"501 Not Implemented", "<Error><Code>NotImplemented</Code></Error>"},
        {"405 Method Not Allowed", "<Error><Code>MethodNotAllowed</Code></Error>"},
        {"400 Bad Request", "<Error><Code>MalformedXML</Code></Error>"},
        {"500 Internal Server Error", "<Error><Code>InternalError</Code></Error>"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct answer script[] = {{"POST /bucket?delete= ", rows[i].status, rows[i].body, 0},
                                        {"DELETE /bucket/a/1 ", "204 No Content", NULL, 0},
                                        {"DELETE /bucket/a/1 ", "204 No Content", NULL, 0}};
        struct store store;
        struct errinfo ei;
        size_t failed = 9;
        store_start(&store, script, ARRAY_LEN(script));
        struct blob *b = client(store.port);
        assert_int_equal(blob_delete_many(b, three, 1, &failed, &ei), ERR_OK);
        assert_int_equal(failed, 0);
        assert_false(blob_has_multi_delete(b));
        assert_int_equal(blob_delete_many(b, three, 1, &failed, &ei), ERR_OK); /* not asked again */
        blob_free(&b);
        store_end(&store);
    }
}

static void inner_errors_are_counted_and_named(void **state)
{
    size_t failed = 9;
    SCRIPT({"POST ", "200 OK",
            "<DeleteResult><Error><Key>a/2</Key><Code>AccessDenied</Code><Message>not yours</Message></Error>"
            "</DeleteResult>",
            0});
    assert_int_equal(blob_delete_many(b, three, 3, &failed, &ei), ERR_STORE);
    assert_int_equal(failed, 1);
    assert_non_null(strstr(ei.msg, "AccessDenied: not yours"));
    blob_free(&b);
    store_end(&store);
}

static void a_refused_single_delete_is_counted(void **state)
{
    size_t failed = 9;
    SCRIPT({"POST ", "501 Not Implemented", NULL, 0},
           {"DELETE /bucket/a/1 ", "403 Forbidden", "<Error><Code>AccessDenied</Code></Error>", 0});
    assert_int_equal(blob_delete_many(b, three, 1, &failed, &ei), ERR_STORE);
    assert_int_equal(failed, 1);
    assert_non_null(strstr(ei.msg, "AccessDenied"));
    blob_free(&b);
    store_end(&store);
}

struct keys {
    char text[200];
    int stop_after;
};

static bool collect(void *arg, const char *key, const struct blob_info *info)
{
    struct keys *k = arg;
    size_t n = strlen(k->text);
    snprintf(k->text + n, sizeof k->text - n, "%s:%d ", key, (int)info->size);
    return --k->stop_after != 0;
}

#define PAGE(more, keys) "<ListBucketResult><IsTruncated>" more "</IsTruncated>" keys "</ListBucketResult>"
#define KEY(name)        "<Contents><Key>" name "</Key><Size>1</Size></Contents>"
#define TOKEN(t)         "<NextContinuationToken>" t "</NextContinuationToken>"

static void listing_follows_every_page(void **state)
{
    struct keys k = {0};
    SCRIPT({"GET /bucket?encoding-type=url&list-type=2&max-keys=1000&prefix=a%2F ", "200 OK",
            PAGE("true", KEY("a/1") KEY("a/2") TOKEN("t+/=")), 0},
           {"GET /bucket?continuation-token=t%2B%2F%3D&encoding-type=url&list-type=2&max-keys=1000&prefix=a%2F ",
            "200 OK", PAGE("true", TOKEN("u")), 0}, /* an empty page in the middle */
           {"continuation-token=u&", "200 OK", PAGE("false", KEY("a/3")), 0});
    assert_int_equal(blob_list(b, "a/", collect, &k, &ei), ERR_OK);
    assert_string_equal(k.text, "a/1:1 a/2:1 a/3:1 ");
    blob_free(&b);
    store_end(&store);
}

static void listing_stops_when_told(void **state)
{
    struct keys k = {.stop_after = 1};
    SCRIPT({NULL, "200 OK", PAGE("true", KEY("a/1") KEY("a/2") TOKEN("t")), 0});
    assert_int_equal(blob_list(b, "", collect, &k, &ei), ERR_OK);
    assert_string_equal(k.text, "a/1:1 ");
    blob_free(&b);
    store_end(&store);
}

static void a_cut_listing_is_an_error(void **state)
{
    static const struct answer rows[][2] = {
        {{NULL, "200 OK", PAGE("true", KEY("a/1")), 0}, {0}},
        {{NULL, "200 OK", PAGE("true", KEY("a/1") TOKEN("t")), 0},
         {NULL, "200 OK", PAGE("true", KEY("a/2") TOKEN("t")), 0}},
        {{NULL, "200 OK", PAGE("true", KEY("a/1") TOKEN("t")), 0}, {NULL, "200 OK", "<html>busy</html>", 0}},
        {{NULL, "200 OK", PAGE("true", KEY("a/1") TOKEN("t")), 0},
         {NULL, "404 Not Found", "<Error><Code>NoSuchBucket</Code></Error>", 0}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct store store;
        struct errinfo ei;
        struct keys k = {0};
        store_start(&store, rows[i], i == 0 ? 1 : 2);
        struct blob *b = client(store.port);
        assert_int_equal(blob_list(b, "", collect, &k, &ei), ERR_STORE);
        blob_free(&b);
        store_end(&store);
    }
}

static void a_busy_store_gets_another_chance(void **state)
{
    struct keys k = {0};
    SCRIPT({NULL, "503 Slow Down", "<Error><Code>SlowDown</Code></Error>", 0}, {NULL, NULL, NULL, 0},
           {NULL, "200 OK", PAGE("false", KEY("a/1")), 0});
    assert_int_equal(blob_list(b, "", collect, &k, &ei), ERR_OK);
    assert_string_equal(k.text, "a/1:1 ");
    blob_free(&b);
    store_end(&store);
}

static void a_bucket_that_is_ours_is_fine(void **state)
{
    SCRIPT({"PUT /bucket ", "409 Conflict", "<Error><Code>BucketAlreadyOwnedByYou</Code></Error>", 0},
           {"HEAD /bucket ", "200 OK", NULL, 0});
    assert_int_equal(blob_bucket_create(b, &ei), ERR_OK);
    blob_free(&b);
    store_end(&store);
}

static void a_bucket_of_somebody_else_is_not(void **state)
{
    SCRIPT({"PUT /bucket ", "409 Conflict", "<Error><Code>BucketAlreadyExists</Code></Error>", 0},
           {"HEAD /bucket ", "403 Forbidden", NULL, 0});
    assert_int_equal(blob_bucket_create(b, &ei), ERR_STORE);
    assert_int_equal(ei.http_status, 403);
    blob_free(&b);
    store_end(&store);
}

/* libs3 takes an answer that ends early for a good one. */
static void a_cut_download_is_an_error(void **state)
{
    struct buf got = BUF_INIT(1000);
    SCRIPT({"GET /bucket/k ", "200 OK", "half", 4});
    assert_int_equal(blob_get(b, "k", 0, 0, &got, &ei), ERR_STORE);
    assert_non_null(strstr(ei.msg, "4 of 8 bytes"));
    buf_done(&got);
    blob_free(&b);
    store_end(&store);
}

static void more_than_the_buffer_takes_is_a_limit(void **state)
{
    struct buf got = BUF_INIT(3);
    SCRIPT({"GET /bucket/k ", "200 OK", "four", 0});
    assert_int_equal(blob_get(b, "k", 0, 0, &got, &ei), ERR_LIMIT);
    buf_done(&got);
    blob_free(&b);
    store_end(&store);
}

static void a_put_is_sent_again_after_a_stale_connection(void **state)
{
    SCRIPT({"PUT /bucket/k ", NULL, NULL, 0}, {"HEAD /bucket/k ", "404 Not Found", NULL, 0},
           {"PUT /bucket/k ", "200 OK", NULL, 0});
    assert_int_equal(blob_put(b, "k", "body", 4, &ei), ERR_OK);
    blob_free(&b);
    store_end(&store);
}

/* libs3 loses the answer of a store that takes longer than a second to say 100 Continue: the object tells. */
static void a_put_whose_answer_was_lost_is_looked_up(void **state)
{
    SCRIPT({"PUT /bucket/k ", "200 OK", NULL, 0}, {"HEAD /bucket/k ", "200 OK", "body", 0},
           {"PUT /bucket/k ", "200 OK", NULL, 0}, {"HEAD /bucket/k ", "200 OK", "bod", 0},
           {"PUT /bucket/k ", "403 Forbidden", NULL, 0}, {"HEAD /bucket/k ", "404 Not Found", NULL, 0});
    store.deaf = true;
    assert_int_equal(blob_put(b, "k", "body", 4, &ei), ERR_OK);
    assert_int_equal(blob_put(b, "k", "body", 4, &ei), ERR_STORE);
    blob_free(&b);
    store_end(&store);
}

static void a_copy_is_what_the_answer_says(void **state)
{
    SCRIPT({"PUT /bucket/to ", "200 OK", "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>", 0},
           {"PUT /bucket/to ", "200 OK", "<Error><Code>InternalError</Code><Message>late</Message></Error>", 0},
           {"PUT /bucket/to ", "404 Not Found", "<Error><Code>NoSuchKey</Code></Error>", 0});
    assert_int_equal(blob_copy(b, "from", "to", &ei), ERR_OK);
    assert_int_equal(blob_copy(b, "from", "to", &ei), ERR_STORE);
    assert_non_null(strstr(ei.msg, "InternalError"));
    assert_int_equal(blob_copy(b, "from", "to", &ei), ERR_NOTFOUND);
    assert_int_equal(blob_copy(b, "a b", "to", &ei), ERR_USAGE);
    blob_free(&b);
    store_end(&store);
}

static void absence_is_told_apart(void **state)
{
    struct blob_info info;
    SCRIPT({"HEAD /bucket/k ", "404 Not Found", NULL, 0},
           {"DELETE /bucket/k ", "404 Not Found", "<Error><Code>NoSuchKey</Code></Error>", 0},
           {"GET /bucket/k ", "404 Not Found", "<Error><Code>NoSuchBucket</Code></Error>", 0});
    struct buf got = BUF_INIT(1000);
    assert_int_equal(blob_head(b, "k", &info, &ei), ERR_NOTFOUND);
    assert_int_equal(blob_delete(b, "k", &ei), ERR_OK);
    assert_int_equal(blob_get(b, "k", 0, 0, &got, &ei), ERR_STORE);
    buf_done(&got);
    blob_free(&b);
    store_end(&store);
}

static void the_probe_names_the_step(void **state)
{
    SCRIPT({"HEAD /bucket ", "200 OK", NULL, 0}, {"max-keys=1&", "200 OK", PAGE("false", ""), 0},
           {"PUT /bucket/probe/", "403 Forbidden",
            "<Error><Code>AccessDenied</Code><Message>read only</Message></Error>", 0});
    assert_int_equal(blob_probe(b, &ei), ERR_STORE);
    assert_memory_equal(ei.msg, "write: ", 7);
    assert_non_null(strstr(ei.msg, "AccessDenied: read only"));
    blob_free(&b);
    store_end(&store);
}

static void bad_names_are_refused_before_they_are_sent(void **state)
{
    static const char *const keys[] = {"", "a b", "a+b", "a?b", "\xc3\xa4"};
    static const struct blob_conf confs[] = {
        {.endpoint = "ftp://x", .bucket = "b", .access_key = "a", .secret_key = "s"},
        {.endpoint = "http://h/path", .bucket = "bbb", .access_key = "a", .secret_key = "s", .path_style = true},
        {.endpoint = "http://h", .bucket = "b\nb", .access_key = "a", .secret_key = "s", .path_style = true},
        {.endpoint = "http://h", .bucket = NULL, .access_key = "a", .secret_key = "s", .path_style = true},
    };
    (void)state;
    struct blob *b = client(1);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct errinfo ei;
        assert_int_equal(blob_put(b, keys[i], "x", 1, &ei), ERR_USAGE);
    }
    blob_free(&b);
    for (size_t i = 0; i < ARRAY_LEN(confs); i++) {
        struct errinfo ei;
        assert_int_equal(blob_new(&b, loop, http, work, &confs[i], &ei), ERR_USAGE);
        assert_true(ei.msg[0]);
    }
}

static void nobody_there_is_said_at_once(void **state)
{
    struct errinfo ei;
    struct mono begun = mono_now();
    (void)state;
    struct blob *b = client(1); /* nothing listens on port 1 */
    assert_int_equal(blob_put(b, "k", "x", 1, &ei), ERR_STORE);
    assert_non_null(strstr(ei.msg, "refused"));
    assert_int_equal(blob_probe(b, &ei), ERR_STORE);
    assert_true(mono_diff(mono_now(), begun) < 5 * US_PER_S);
    blob_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multi_delete_is_used_where_it_works),
        cmocka_unit_test(a_redirect_is_not_followed),
        cmocka_unit_test(batches_hold_a_thousand),
        cmocka_unit_test(falls_back_to_single_deletes),
        cmocka_unit_test(inner_errors_are_counted_and_named),
        cmocka_unit_test(a_refused_single_delete_is_counted),
        cmocka_unit_test(listing_follows_every_page),
        cmocka_unit_test(listing_stops_when_told),
        cmocka_unit_test(a_cut_listing_is_an_error),
        cmocka_unit_test(a_busy_store_gets_another_chance),
        cmocka_unit_test(a_bucket_that_is_ours_is_fine),
        cmocka_unit_test(a_bucket_of_somebody_else_is_not),
        cmocka_unit_test(a_cut_download_is_an_error),
        cmocka_unit_test(more_than_the_buffer_takes_is_a_limit),
        cmocka_unit_test(a_put_is_sent_again_after_a_stale_connection),
        cmocka_unit_test(a_put_whose_answer_was_lost_is_looked_up),
        cmocka_unit_test(a_copy_is_what_the_answer_says),
        cmocka_unit_test(absence_is_told_apart),
        cmocka_unit_test(the_probe_names_the_step),
        cmocka_unit_test(bad_names_are_refused_before_they_are_sent),
        cmocka_unit_test(nobody_there_is_said_at_once),
    };
    return cmocka_run_group_tests(tests, services_up, services_down);
}
