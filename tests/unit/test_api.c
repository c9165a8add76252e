/* The tma dialect against a scripted server in a thread: what real servers were seen to send, and what a lost
 * connection means for reads and for writes. Each test gives the answers in order; the requests are kept for
 * inspection. */
#include "drive/api/dialect.h"
#include "net/loop.h"
#include "unit.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS_MAX 16
#define CUT          "" /* the connection is closed without an answer */

struct script {
    int listener, port;
    pthread_t thread;
    const char *answers[REQUESTS_MAX];
    char *requests[REQUESTS_MAX]; /* whole: head and body */
    int n_answers;
    atomic_int n_requests;
};

/* Reads one request; false when the client closed before it began. */
static bool read_request(int fd, char **out)
{
    size_t n = 0, cap = 1 << 20, want = SIZE_MAX;
    char *buf = mem_zalloc(cap);
    while (n < want && n < cap - 1) {
        ssize_t got = recv(fd, buf + n, cap - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
        char *end = strstr(buf, "\r\n\r\n"), *length = strcasestr(buf, "\r\ncontent-length:");
        if (end && want == SIZE_MAX)
            want = (size_t)(end + 4 - buf) + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
    }
    *out = buf;
    return n > 0;
}

/* The length is told here, so that the tables above hold bodies alone. */
static bool send_answer(int fd, const char *answer)
{
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    struct buf out = BUF_INIT(1 << 20);
    size_t length = strlen(body) + (strstr(answer, "X-Cut-Short") ? 500 : 0);
    bool stream = strstr(answer, "text/event-stream") || strstr(answer, " 204 ");
    assert_int_equal(buf_append(&out, answer, (size_t)(body - answer) - 2), ERR_OK);
    if (!stream)
        assert_int_equal(buf_appendf(&out, "Content-Length: %zu\r\n", length), ERR_OK);
    assert_int_equal(buf_appendf(&out, "\r\n%s", body), ERR_OK);
    bool ok = send(fd, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len;
    buf_done(&out);
    return ok;
}

static void *serve(void *arg)
{
    struct script *s = arg;
    while (s->n_requests < s->n_answers) {
        int fd = accept(s->listener, NULL, NULL);
        if (fd < 0)
            break;
        for (char *request; s->n_requests < s->n_answers;) {
            if (!read_request(fd, &request)) {
                mem_free(request);
                break;
            }
            /* Counted before the answer: the test looks at the count as soon as it has that. */
            const char *answer = s->answers[s->n_requests];
            s->requests[s->n_requests++] = request;
            if (!*answer || !send_answer(fd, answer) || strstr(answer, "Connection: close"))
                break;
        }
        close(fd);
    }
    return NULL;
}

struct fixture {
    struct loop *loop;
    struct httpc *http;
    struct api *api;
    struct arena *mem;
    struct script script;
    uint64_t requests[CAUSE_COUNT];
    char url[64];
};

/* Answers are complete HTTP messages, ending with NULL. */
static void begin(struct fixture *f, const char *const *answers)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    struct errinfo ei = {0};
    memset(f, 0, sizeof *f);
    f->script.listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(f->script.listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(f->script.listener, 16), 0);
    getsockname(f->script.listener, (struct sockaddr *)&at, &n);
    f->script.port = ntohs(at.sin_port);
    for (; answers[f->script.n_answers]; f->script.n_answers++)
        f->script.answers[f->script.n_answers] = answers[f->script.n_answers];
    pthread_create(&f->script.thread, NULL, serve, &f->script);
    snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d/pre", f->script.port);
    assert_int_equal(loop_new(&f->loop, &ei), ERR_OK);
    assert_int_equal(httpc_new(&f->http, f->loop, &(struct httpc_conf){0}, &ei), ERR_OK);
    assert_int_equal(api_new(&f->api,
                             &(struct api_conf){.base_url = f->url,
                                                .http = f->http,
                                                .requests = f->requests,
                                                .cause = CAUSE_SETUP,
                                                .listing_most = 3,
                                                .timeout_us = 5 * US_PER_S},
                             &ei),
                     ERR_OK);
    f->mem = arena_new(4096);
}

static void end(struct fixture *f)
{
    api_free(&f->api);
    httpc_free(&f->http);
    loop_free(&f->loop);
    shutdown(f->script.listener, SHUT_RDWR);
    pthread_join(f->script.thread, NULL);
    close(f->script.listener);
    for (int i = 0; i < f->script.n_requests; i++)
        mem_free(f->script.requests[i]);
    arena_free(&f->mem);
}

static void assert_has(const struct fixture *f, int i, const char *text)
{
    if (!f->script.requests[i] || !strstr(f->script.requests[i], text))
        fail_msg("request %d lacks \"%s\":\n%s", i, text, f->script.requests[i] ? f->script.requests[i] : "(none)");
}

#define ANSWER(status, headers, body) "HTTP/1.1 " status "\r\n" headers "\r\n" body
#define CUT_SHORT                     "X-Cut-Short: the body is announced longer than it is\r\nConnection: close\r\n"
#define HTML404                       ANSWER("404 Not Found", "Content-Type: text/html\r\n", "Cannot POST")

static void the_token_comes_by_cookie(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    begin(&f, (const char *const[]){
                  ANSWER("200 OK", "Set-Cookie: other=1\r\nSet-Cookie: token=abc; Path=/; HttpOnly\r\n", "{}"),
                  ANSWER("200 OK", "Set-Cookie: token=def; Path=/\r\n", "{\"ok\":true}"),
                  ANSWER("200 OK", "", "{\"ok\":true}"), NULL});
    assert_int_equal(api_sign_in(f.api, "owner@load.test", "secret \"1\"", &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_OK);
    assert_int_equal(api_heartbeat(f.api, &r), ERR_OK);
    assert_int_equal(api_heartbeat(f.api, &r), ERR_OK);
    assert_has(&f, 0, "POST /pre/api/login HTTP/1.1");
    assert_has(&f, 0, "X-Requested-With: XMLHttpRequest");
    assert_has(&f, 0, "X-TMA-Desktop-Client: tma-electron-client-v1");
    assert_has(&f, 0, "\"password\":\"secret \\\"1\\\"\"");
    assert_has(&f, 1, "Cookie: token=abc");
    assert_has(&f, 1, "\"appVersion\"");
    assert_has(&f, 2, "Cookie: token=def"); /* re-issued */
    end(&f);
}

/* Each time another client of the same space. */
static struct api_result enter(const struct fixture *f, struct api_space *space, bool went_on)
{
    struct api_result r;
    struct api *a = NULL;
    struct errinfo ei = {0};
    const struct api_conf conf = {.base_url = f->url, .http = f->http, .space = space, .timeout_us = 5 * US_PER_S};
    assert_int_equal(api_new(&a, &conf, &ei), ERR_OK);
    assert_int_equal(api_enter(a, "owner@load.test", "secret", &r), ERR_OK);
    assert_int_equal(api_went_on(a), went_on);
    api_free(&a);
    return r;
}

#define LOGIN(token) ANSWER("200 OK", "Set-Cookie: token=" token "\r\n", "{}")
#define WHO(email)   ANSWER("200 OK", "", "{\"email\":\"" email "\"}")

static void a_known_session_is_gone_on_with(void **state)
{
    (void)state;
    struct fixture f;
    struct api_space *space = api_space_new();
    unsigned kept, signed_in;
    begin(&f, (const char *const[]){LOGIN("one"),
                                    ANSWER("200 OK", "Set-Cookie: token=two\r\n", "{\"email\":\"OWNER@load.test\"}"),
                                    WHO("owner@load.test"), ANSWER("401 Unauthorized", "", "{}"), LOGIN("three"),
                                    WHO("another@load.test"), LOGIN("four"), ANSWER("429 Too Many Requests", "", "{}"),
                                    WHO("owner@load.test"), NULL});
    enter(&f, space, false);
    enter(&f, space, true);
    enter(&f, space, true);
    assert_has(&f, 1, "GET /pre/api/profile HTTP/1.1");
    assert_has(&f, 2, "Cookie: token=two"); /* re-issued */
    enter(&f, space, false);
    assert_has(&f, 4, "POST /pre/api/login");
    enter(&f, space, false);
    assert_int_equal(enter(&f, space, false).outcome, OUT_THROTTLED); /* to be asked again, not signed in anew */
    enter(&f, space, true);
    assert_has(&f, 8, "Cookie: token=four");
    api_space_tally(space, &kept, &signed_in);
    assert_int_equal(signed_in, 3);
    assert_int_equal(kept, 0); /* none is of an earlier program */
    api_space_free(&space);
    end(&f);
}

static void sign_in_without_a_token_is_wrong(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    begin(&f, (const char *const[]){ANSWER("200 OK", "", "{}"), NULL});
    assert_int_not_equal(api_sign_in(f.api, "a", "b", &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_WRONG);
    end(&f);
}

#define FILE_A "{\"id\":\"a\",\"name\":\"A\",\"type\":\"folder\",\"size\":null}"
#define FILE_B "{\"id\":\"b\",\"name\":\"B\",\"type\":\"file\",\"size\":\"7\",\"version\":\"v1\"}"

static void pages_are_followed(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct drive_listing l;
    begin(&f, (const char *const[]){ANSWER("200 OK", "X-Next-Cursor: c/1\r\n", "[" FILE_A "]"),
                                    ANSWER("200 OK", "X-Next-Cursor: c2\r\n", "[" FILE_B "]"),
                                    ANSWER("200 OK", "", "[]"), NULL});
    api_cause(f.api, CAUSE_RELIST);
    assert_int_equal(api_list(f.api, "p q", f.mem, &l, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_OK);
    assert_int_equal(l.n, 2);
    assert_true(l.items[0].folder);
    assert_int_equal(l.items[1].size, 7);
    assert_string_equal(l.items[1].parent_id, "p q");
    assert_int_equal(f.requests[CAUSE_RELIST], 3); /* each page is a request */
    assert_int_equal(f.requests[CAUSE_SETUP], 0);
    assert_has(&f, 0, "GET /pre/api/files?parentId=p%20q&limit=500 ");
    assert_has(&f, 1, "&cursor=c%2F1 ");
    assert_has(&f, 2, "&cursor=c2 ");
    end(&f);
}

/* A cut listing is a failure, never a short folder. */
static void broken_pages_fail_whole(void **state)
{
    (void)state;
    static const char *const second[] = {
        ANSWER("200 OK", "X-Next-Cursor: c1\r\n", "[" FILE_B "]"), /* the cursor repeats */
        ANSWER("500 Oops", "", "{\"message\":\"no\"}"),
        ANSWER("200 OK", CUT_SHORT, "[" FILE_B ","), /* cut short */
        ANSWER("200 OK", "", "[{\"id\":\"b\",\"name\":\"B\",\"type\":\"file\","),
        ANSWER("200 OK", "", "{\"message\":\"not list\"}"),
        ANSWER("200 OK", "X-Next-Cursor: c2\r\n", "[" FILE_A "," FILE_B "," FILE_A "]"), /* more than are taken */
    };
    static const enum outcome want[] = {OUT_WRONG, OUT_SERVER, OUT_TRANSPORT, OUT_WRONG, OUT_WRONG, OUT_WRONG};
    for (size_t i = 0; i < ARRAY_LEN(second); i++) {
        struct fixture f;
        struct api_result r;
        struct drive_listing l;
        begin(&f, (const char *const[]){ANSWER("200 OK", "X-Next-Cursor: c1\r\n", "[" FILE_A "]"), second[i], NULL});
        enum err err = api_list(f.api, NULL, f.mem, &l, &r);
        (void)err;
        if (r.outcome != want[i])
            fail_msg("row %zu: %s (%s)", i, outcome_key(r.outcome), r.reason);
        assert_int_equal(l.n, 0);
        end(&f);
    }
}

static void absent_calls_clear_their_capability(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct api_lock lock;
    struct api_changes ch;
    begin(&f, (const char *const[]){HTML404, ANSWER("404 Not Found", "", "{\"message\":\"not found\"}"), NULL});
    assert_int_equal(api_lock(f.api, "x", 0, NULL, &lock, &r), ERR_OK);
    assert_string_equal(r.code, API_CODE_ABSENT);
    assert_false(api_caps(f.api) & API_CAP_LOCKS);
    assert_int_equal(api_lock(f.api, "x", 0, NULL, &lock, &r), ERR_OK); /* not sent again */
    assert_string_equal(r.code, API_CODE_ABSENT);
    assert_int_equal(api_unlock(f.api, "x", "l", &r), ERR_OK);
    assert_int_equal(api_changes(f.api, NULL, f.mem, &ch, &r), ERR_OK); /* names no resource: any 404 is absence */
    assert_false(api_caps(f.api) & API_CAP_FEED);
    assert_int_equal(f.script.n_requests, 2);
    end(&f);
}

/* 404 with a sentence: the file may be gone. If the file is there, it is the call that is missing. */
static void a_lock_call_missing_politely(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct api_lock lock;
    begin(&f, (const char *const[]){ANSWER("404 Not Found", "", "{\"message\":\"not found\"}"),
                                    ANSWER("404 Not Found", "", "{\"message\":\"not found\"}"),
                                    ANSWER("404 Not Found", "", "{\"message\":\"not found\"}"),
                                    ANSWER("200 OK", "", FILE_B), NULL});
    assert_int_equal(api_lock(f.api, "gone", 0, NULL, &lock, &r), ERR_OK);
    assert_true(api_caps(f.api) & API_CAP_LOCKS);
    assert_int_equal(api_lock(f.api, "b", 0, NULL, &lock, &r), ERR_OK);
    assert_false(api_caps(f.api) & API_CAP_LOCKS);
    assert_string_equal(r.code, API_CODE_ABSENT);
    end(&f);
}

static void copies_done_at_once_or_as_jobs(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct api_job job;
    const char *ids[] = {"a", "b"};
    begin(&f, (const char *const[]){
                  ANSWER("200 OK", "", "{\"message\":\"copied.\"}"),
                  ANSWER("202 Accepted", "", "{\"queued\":true,\"jobId\":\"job-1\"}"),
                  ANSWER("202 Accepted", "", "{\"status\":\"active\"}"),
                  ANSWER("200 OK", "", "{\"status\":\"completed\",\"result\":{\"count\":2,\"ids\":[\"c\",\"d\"]}}    "),
                  ANSWER("500 Failed", "", "{\"status\":\"failed\"}"), NULL});
    assert_int_equal(api_copy(f.api, ids, 2, NULL, &job, &r), ERR_OK);
    assert_true(job.done);
    assert_has(&f, 0, "{\"ids\":[\"a\",\"b\"],\"parentId\":null}");
    assert_int_equal(api_copy(f.api, ids, 2, "p", &job, &r), ERR_OK);
    assert_false(job.done);
    assert_string_equal(job.id, "job-1");
    assert_int_equal(api_job_poll(f.api, &job, f.mem, &r), ERR_OK);
    assert_false(job.done);
    assert_int_equal(api_job_poll(f.api, &job, f.mem, &r), ERR_OK);
    assert_true(job.done && !job.failed);
    assert_int_equal(job.n_ids, 2);
    assert_string_equal(job.ids[1], "d");
    assert_int_equal(api_job_poll(f.api, &job, f.mem, &r), ERR_OK);
    assert_true(job.done && job.failed);
    end(&f);
}

static void refusals_are_told_apart(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct api_lock lock;
    struct api_storage st;
    begin(&f, (const char *const[]){
                  ANSWER("423 Locked", "", "{\"message\":\"held by \\u001b[2JBob\",\"error\":\"LOCKED\"}"),
                  ANSWER("429 Too Many", "Retry-After: 7\r\n", "{\"error\":\"slow down\"} "),
                  ANSWER("429 Too Many", "RateLimit-Reset: 9\r\n", "{}"),
                  ANSWER("429 Too Many", "Retry-After: 1000000000\r\n", "{\"error\":\"slow down\"} "),
                  ANSWER("200 OK", "", "{\"used\":5,\"total\":null,\"free\":null}    "), NULL});
    assert_int_equal(api_lock(f.api, "x", 60, "mine", &lock, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_CONFLICT);
    assert_string_equal(r.code, "LOCKED");
    assert_string_equal(r.reason, "held by \\x1b[2JBob");
    assert_has(&f, 0, "X-Lock-Id: mine");
    assert_has(&f, 0, "{\"ttlSeconds\":60}");
    assert_int_equal(api_heartbeat(f.api, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_THROTTLED);
    assert_int_equal(r.retry_after_us, 7 * US_PER_S);
    assert_string_equal(r.reason, "slow down");
    assert_int_equal(api_heartbeat(f.api, &r), ERR_OK);
    assert_int_equal(r.retry_after_us, 9 * US_PER_S);
    assert_int_equal(api_heartbeat(f.api, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_REFUSED); /* nobody waits for years */
    assert_string_equal(r.reason, "the server asked to wait 31 years, and 1 h at most is waited: slow down");
    assert_int_equal(api_storage(f.api, &st, &r), ERR_OK);
    assert_int_equal(st.used, 5);
    assert_int_equal(st.total, -1);
    end(&f);
}

/* The sign-ins of all clients are waited for together, the requests of each by itself. */
static void a_spent_budget_is_not_waited_for_endlessly(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    const char *spent = ANSWER("429 Too Many", "", "{\"error\":\"slow down\"}");
    begin(&f, (const char *const[]){spent, spent, spent, spent, ANSWER("200 OK", "", "{}"), spent, NULL});
    struct patience *of[] = {&f.api->space->sign_ins, &f.api->patience};
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        for (int later = 0; later < 2; later++) {
            assert_int_equal(i == 0 ? api_sign_in(f.api, "owner@load.test", "x", &r) : api_heartbeat(f.api, &r),
                             ERR_OK);
            assert_int_equal(r.outcome, later ? OUT_REFUSED : OUT_THROTTLED);
            assert_string_equal(r.reason, later
                                              ? "nothing but 429 for 5 min 1 s (slow down): raise the server's limit, "
                                                "or try again later"
                                              : "slow down");
            of[i]->since = mono_add(of[i]->since, -301 * US_PER_S);
        }
    }
    assert_int_equal(api_heartbeat(f.api, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_OK);
    assert_int_equal(api_heartbeat(f.api, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_THROTTLED); /* another row */
    end(&f);
}

/* A write that was sent and got no answer is unknown; a read or an unsent write is simply not done. */
static void lost_connections(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct drive_file made;
    struct drive_listing l;
    begin(&f, (const char *const[]){CUT, CUT, CUT, NULL});
    assert_int_not_equal(api_folder_create(f.api, NULL, "N", f.mem, &made, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_UNKNOWN);
    assert_int_equal(r.status, 0);
    assert_true(r.reason[0] != '\0');
    assert_int_not_equal(api_list(f.api, NULL, f.mem, &l, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_TRANSPORT);
    assert_int_equal(l.n, 0);
    end(&f);
    begin(&f, (const char *const[]){NULL});
    pthread_join(f.script.thread, NULL);
    close(f.script.listener);
    assert_int_not_equal(api_folder_create(f.api, NULL, "N", f.mem, &made, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_TRANSPORT); /* nothing listens: certainly not done */
    f.script.listener = -1;
    pthread_create(&f.script.thread, NULL, serve, &f.script);
    end(&f);
}

static void a_2xx_that_cannot_be_read(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct drive_file made;
    begin(&f, (const char *const[]){ANSWER("200 OK", "", "<html>"), ANSWER("200 OK", "", "{\"name\":\"N\"}  "), NULL});
    assert_int_not_equal(api_folder_create(f.api, NULL, "N", f.mem, &made, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_WRONG);
    assert_int_not_equal(api_folder_create(f.api, NULL, "N", f.mem, &made, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_WRONG);
    end(&f);
}

static void uploads(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct drive_file made, many[3];
    struct content c = {.key = 1, .revision = 1, .size = 3000, .ext = "pdf"};
    struct api_upload u = {.parent_id = "p", .name = "a \"b\" %22.pdf", .content = &c, .modified = {US_PER_S * 86400}};
    struct api_upload three[3] = {u, u, u};
    three[1].name = "two.pdf";
    three[2].name = "three.pdf";
    begin(&f, (const char *const[]){
                  ANSWER("200 OK", "", FILE_B),
                  ANSWER("200 OK", "",
                         "{\"files\":[{\"id\":\"x\",\"name\":\"three.pdf\",\"size\":\"3000\",\"type\":\"file\","
                         "\"clientId\":\"2\"},"
                         "{\"id\":\"y\",\"name\":\"one.pdf\",\"size\":3000,\"type\":\"file\",\"clientId\":\"0\"}],"
                         "\"failed\":[{\"fileName\":\"n\",\"error\":\"full\"}]} "),
                  ANSWER("200 OK", "", FILE_B), NULL});
    assert_int_equal(api_upload(f.api, &u, f.mem, &made, &r), ERR_OK);
    assert_string_equal(made.id, "b");
    assert_has(&f, 0, "name=\"parentId\"");
    assert_has(&f, 0, "1970-01-02T00:00:00");
    assert_has(&f, 0, "filename=\"a %22b%22 %22.pdf\"");
    assert_has(&f, 0, "%PDF-1.7");
    assert_int_equal(api_upload_bulk(f.api, three, 3, f.mem, many, &r), ERR_OK);
    assert_string_equal(many[0].id, "y");
    assert_null(many[1].id);
    assert_string_equal(many[2].id, "x");
    assert_string_equal(r.reason, "full");
    assert_int_equal(api_replace(f.api, "b", "B.pdf", "v7", "L9", &c, f.mem, &made, &r), ERR_OK);
    assert_has(&f, 2, "POST /pre/api/files/b/replace ");
    assert_has(&f, 2, "If-Match: \"v7\"");
    assert_has(&f, 2, "X-Lock-Id: L9");
    end(&f);
}

static int collect(void *arg, const char *p, size_t n)
{
    return buf_append(arg, p, n) ? 1 : 0;
}

static int refuse(void *arg, const char *p, size_t n)
{
    (void)arg;
    (void)p;
    (void)n;
    return 1;
}

static void downloads(void **state)
{
    (void)state;
    struct fixture f;
    struct api_result r;
    struct buf got = BUF_INIT(100);
    char version[32];
    begin(&f, (const char *const[]){ANSWER("200 OK", "ETag: \"v3\"\r\n", "0123456789"),
                                    ANSWER("206 Partial Content", "ETag: W/\"v3\"\r\n", "2345"),
                                    ANSWER("200 OK", "", "0123456789"), /* Range ignored */
                                    ANSWER("200 OK", "Connection: close\r\n", "0123456789"), NULL});
    assert_int_equal(api_download(f.api, "x", 0, 0, collect, &got, version, sizeof version, &r), ERR_OK);
    assert_string_equal(buf_cstr(&got), "0123456789");
    assert_string_equal(version, "v3");
    buf_reset(&got);
    assert_int_equal(api_download(f.api, "x", 2, 4, collect, &got, version, sizeof version, &r), ERR_OK);
    assert_string_equal(buf_cstr(&got), "2345");
    assert_string_equal(version, ""); /* weak: no usable validator */
    assert_has(&f, 1, "Range: bytes=2-5");
    assert_true(api_caps(f.api) & API_CAP_RANGES);
    buf_reset(&got);
    assert_int_equal(api_download(f.api, "x", 2, 4, collect, &got, NULL, 0, &r), ERR_OK);
    assert_string_equal(buf_cstr(&got), "2345");
    assert_false(api_caps(f.api) & API_CAP_RANGES);
    assert_int_not_equal(api_download(f.api, "x", 0, 0, refuse, NULL, NULL, 0, &r), ERR_OK);
    assert_int_equal(r.outcome, OUT_WRONG);
    buf_done(&got);
    end(&f);
}

/* ---- events ---- */

struct seen {
    char text[512];
    int opened, closed;
    enum outcome outcome;
    struct api_result reason;
    struct api_stream_memory memory;
    struct api_stream *stream;
    bool close_at_first;
};

static void on_open(void *arg)
{
    ((struct seen *)arg)->opened++;
}

static void on_event(void *arg, const struct api_event *ev)
{
    struct seen *s = arg;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s:%s:%s:%s%s%s;", ev->type, ev->cursor, ev->file_id ? ev->file_id : "-",
             ev->parent_id ? ev->parent_id : "-", ev->names_folders ? "" : "?",
             ev->connected ? "!"
             : ev->resync  ? "*"
                           : "");
    if (s->close_at_first)
        api_stream_close(&s->stream);
}

static void on_close(void *arg, const struct api_result *r)
{
    struct seen *s = arg;
    s->closed = 1;
    s->outcome = r->outcome;
    s->reason = *r;
    assert_null(s->stream);
}

static const struct api_stream_ops stream_ops = {on_open, on_event, on_close};
#define STREAM                                                                                                         \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"                                  \
    "data: {\"type\":\"connected\",\"message\":\"x\"}\n\n: keepalive\n\n"                                              \
    "id: e-1\ndata: "                                                                                                  \
    "{\"type\":\"file.uploaded\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"data\":{\"id\":\"a\",\"parentId\":"      \
    "\"p\"}}\n\n"                                                                                                      \
    "data: not json\n\n"                                                                                               \
    "id: e-2\ndata: "                                                                                                  \
    "{\"type\":\"file.batch\",\"data\":{\"events\":[{\"type\":\"file.moved\",\"data\":{\"id\":\"b\",\"parentId\":"     \
    "null}},"                                                                                                          \
    "{\"type\":\"file.moved\",\"data\":{\"id\":\"c\",\"parentId\":\"q\",\"oldParentId\":\"p\"}}]}}\n\n"                \
    "id: e-3\ndata: {\"type\":\"resync\"}\n\n"

static void events(void **state)
{
    (void)state;
    struct fixture f;
    struct errinfo ei = {0};
    struct seen s = {0};
    begin(&f, (const char *const[]){STREAM, NULL});
    s.memory.last_event_id = mem_strdup("e-0");
    assert_int_equal(api_stream_open(&s.stream, f.api, &s.memory, &stream_ops, &s, &ei), ERR_OK);
    struct mono deadline = mono_add(mono_now(), 5 * US_PER_S);
    while (!s.closed && mono_before(mono_now(), deadline))
        loop_step(f.loop, deadline);
    assert_int_equal(s.opened, 1);
    assert_int_equal(s.closed, 1);
    assert_int_equal(s.outcome, OUT_TRANSPORT);
    assert_string_equal(s.text, "connected:e-0:-:-?!;file.uploaded:e-1:a:p;file.moved:e-2:b:-?;file.moved:e-2:c:q;"
                                "resync:e-3:-:-?*;");
    assert_has(&f, 0, "GET /pre/api/files/events ");
    assert_has(&f, 0, "Last-Event-ID: e-0");
    assert_has(&f, 0, "Accept: text/event-stream");
    assert_string_equal(s.memory.last_event_id, "e-3");
    mem_free(s.memory.last_event_id);
    end(&f);
}

/* What is no event stream, and what a stream is remembered by. */
static void answers_to_a_stream(void **state)
{
    (void)state;
#define SSE(type)                    "HTTP/1.1 200 OK\r\n" type "Connection: close\r\nX: text/event-stream\r\n\r\nid: 5\nretry: 2000\n\n"
#define OTHER(status, headers, body) "HTTP/1.1 " status "\r\n" headers "Connection: close\r\n\r\n" body
    static const struct {
        const char *answer;
        int opened;
        enum outcome outcome;
        const char *code, *reason, *last_id;
        int64_t retry_after_us, retry_us;
    } rows[] = {
        {SSE("Content-Type: text/event-stream\r\n"), 1, OUT_TRANSPORT, "", "the server closed the stream", "5", -1,
         2 * US_PER_S},
        {SSE("content-type: Text/Event-Stream ; charset=windows-1252\r\n"), 1, OUT_TRANSPORT, "",
         "the server closed the stream", "5", -1, 2 * US_PER_S},
        {SSE("Content-Type: text/event-stream;\r\n"), 1, OUT_TRANSPORT, "", "the server closed the stream", "5", -1,
         2 * US_PER_S},
        {SSE("Content-Type: text/event-stream;x bogus\r\n"), 1, OUT_TRANSPORT, "", "the server closed the stream", "5",
         -1, 2 * US_PER_S},
        {SSE("Content-Type: text/html\r\nContent-Type: text/event-stream\r\n"), 1, OUT_TRANSPORT, "",
         "the server closed the stream", "5", -1, 2 * US_PER_S},
        {SSE("Content-Type: text/html; charset=utf-8\r\n"), 0, OUT_WRONG, "",
         "the server answered with text/html instead of an event stream", "old", -1, 0},
        {SSE("Content-Type: text/x-bogus\r\n"), 0, OUT_WRONG, "",
         "the server answered with text/x-bogus instead of an event stream", "old", -1, 0},
        {SSE("Content-Type: text/event-streams\r\n"), 0, OUT_WRONG, "",
         "the server answered with text/event-streams instead of an event stream", "old", -1, 0},
        {SSE(""), 0, OUT_WRONG, "", "the server answered without a content type instead of an event stream", "old", -1,
         0},
        {SSE("Content-Type:\r\n"), 0, OUT_WRONG, "",
         "the server answered without a content type instead of an event stream", "old", -1, 0},
        {OTHER("204 No Content", "", ""), 0, OUT_WRONG, API_CODE_NO_MORE,
         "the server wants no event stream to be opened again", "old", -1, 0},
        {OTHER("205 Reset Content", "", ""), 0, OUT_WRONG, "", "no content of an event stream", "old", -1, 0},
        {OTHER("206 Partial Content", "Content-Type: text/event-stream\r\n", "data: x\n\n"), 0, OUT_WRONG, "",
         "no content of an event stream", "old", -1, 0},
        {OTHER("304 Not Modified", "", ""), 0, OUT_WRONG, "", "HTTP 304 without a reason", "old", -1, 0},
        {OTHER("302 Found", "Location: /login\r\n", ""), 0, OUT_CLIENT, "",
         "the server redirects to /login, which is not followed", "old", -1, 0},
        {OTHER("404 Not Found", "", "{\"message\":\"no\"}"), 0, OUT_CLIENT, API_CODE_ABSENT, "no", "old", -1, 0},
        {OTHER("429 Slow", "Retry-After: 3\r\n", "{\"error\":\"Too many streams.\"}"), 0, OUT_THROTTLED, "",
         "Too many streams.", "old", 3 * US_PER_S, 0},
        {OTHER("429 Slow", "Retry-After: 99999999999\r\n", "{\"error\":\"Too many streams.\"}"), 0, OUT_REFUSED, "",
         "the server asked to wait 3,168 years, and 1 h at most is waited: Too many streams.", "old", 3600 * US_PER_S,
         0},
        {OTHER("503 Down", "Retry-After: 86400\r\n", "{\"message\":\"down\"}"), 0, OUT_SERVER, "",
         "the server asked to wait 25 h, and 1 h at most is waited: down", "old", 3600 * US_PER_S, 0},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: unknown\r\nConnection: "
         "close\r\n\r\nx",
         1, OUT_TRANSPORT, "", "a content coding that cannot be undone, from", "old", -1, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;
        struct errinfo ei = {0};
        struct seen s = {.memory = {.last_event_id = mem_strdup("old")}};
        begin(&f, (const char *const[]){rows[i].answer, NULL});
        assert_int_equal(api_stream_open(&s.stream, f.api, &s.memory, &stream_ops, &s, &ei), ERR_OK);
        struct mono deadline = mono_add(mono_now(), 5 * US_PER_S);
        while (!s.closed && mono_before(mono_now(), deadline))
            loop_step(f.loop, deadline);
        assert_int_equal(s.closed, 1);
        if (s.opened != rows[i].opened || s.outcome != rows[i].outcome || strcmp(s.reason.code, rows[i].code) != 0 ||
            strncmp(s.reason.reason, rows[i].reason, strlen(rows[i].reason)) != 0 ||
            s.reason.retry_after_us != rows[i].retry_after_us || s.memory.retry_us != rows[i].retry_us)
            fail_msg("row %zu: %d, %s, %s, \"%s\", %lld, %lld", i, s.opened, outcome_key(s.outcome), s.reason.code,
                     s.reason.reason, (long long)s.reason.retry_after_us, (long long)s.memory.retry_us);
        assert_string_equal(s.memory.last_event_id, rows[i].last_id);
        mem_free(s.memory.last_event_id);
        end(&f);
    }
#undef SSE
#undef OTHER
}

static void a_stream_closed_by_its_own_callback(void **state)
{
    (void)state;
    struct fixture f;
    struct errinfo ei = {0};
    struct seen s = {.close_at_first = true};
    begin(&f, (const char *const[]){STREAM, NULL});
    assert_int_equal(api_stream_open(&s.stream, f.api, NULL, &stream_ops, &s, &ei), ERR_OK);
    struct mono deadline = mono_add(mono_now(), 300 * US_PER_MS);
    while (mono_before(mono_now(), deadline))
        loop_step(f.loop, deadline);
    assert_string_equal(s.text, "connected::-:-?!;");
    assert_int_equal(s.closed, 0); /* no further callback */
    assert_null(s.stream);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_token_comes_by_cookie),
        cmocka_unit_test(a_known_session_is_gone_on_with),
        cmocka_unit_test(sign_in_without_a_token_is_wrong),
        cmocka_unit_test(pages_are_followed),
        cmocka_unit_test(broken_pages_fail_whole),
        cmocka_unit_test(absent_calls_clear_their_capability),
        cmocka_unit_test(a_lock_call_missing_politely),
        cmocka_unit_test(copies_done_at_once_or_as_jobs),
        cmocka_unit_test(refusals_are_told_apart),
        cmocka_unit_test(a_spent_budget_is_not_waited_for_endlessly),
        cmocka_unit_test(lost_connections),
        cmocka_unit_test(a_2xx_that_cannot_be_read),
        cmocka_unit_test(uploads),
        cmocka_unit_test(downloads),
        cmocka_unit_test(events),
        cmocka_unit_test(answers_to_a_stream),
        cmocka_unit_test(a_stream_closed_by_its_own_callback),
    };
    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
