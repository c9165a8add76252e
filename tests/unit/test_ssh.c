/* What a sign-in makes of servers that end it early: S06's split between refused and timed out, by a scripted one. */
#include "net/sftp.h"
#include "ssh_setup.h"
#include "stub.h"

static int setup(void **state)
{
    const struct ssh_client_conf conf = {.insecure = true};
    (void)state;
    return ssh_up(&conf);
}

/* One behaviour a row: what is sent, and how it ends. */
enum ending { CLOSES, LEAVES, RESETS, STAYS }; /* LEAVES: says no more, but listens on */
struct manner {
    const char *says;
    enum ending ends;
    bool reads; /* takes our banner in before */
};

static void serve(struct stub *s, int fd, int number)
{
    const struct manner *m = s->arg;
    char byte = 0;
    (void)number;
    while (m->reads && byte != '\n' && recv(fd, &byte, 1, 0) == 1)
        continue;
    stub_send(fd, m->says);
    if (m->ends == LEAVES)
        shutdown(fd, SHUT_WR);
    if (m->ends == LEAVES || m->ends == STAYS)
        stub_drain(fd);
    else if (m->ends == RESETS)
        stub_reset(fd);
}

static enum err sign_in(int port, int64_t timeout_us, struct ssh_report *report)
{
    const struct ssh_login login = {.host = "127.0.0.1", .port = port, .user = "u", .password = "p"};
    struct sftp *s = NULL;
    why = (struct errinfo){0};
    enum err e = sftp_open(&s, client, loop, &login, timeout_us, report, &why);
    assert_true((e == ERR_OK) == (s != NULL));
    return e;
}

static void ends_before_the_sign_in(void **state)
{
    (void)state;
    static const struct {
        struct manner manner;
        enum err err;
        enum ssh_stage stage;
        const char *text;
    } rows[] = {
        {{"", CLOSES, false}, ERR_REFUSED, SSH_BANNER, "refused before sign-in"},
        {{"", CLOSES, true}, ERR_REFUSED, SSH_BANNER, "refused before sign-in"},
        {{"", RESETS, true}, ERR_REFUSED, SSH_BANNER, "refused before sign-in"},
        {{"Exceeded MaxStartups\r\n", CLOSES, false},
         ERR_REFUSED,
         SSH_BANNER,
         "refused before sign-in: Exceeded MaxStartups"},
        {{"Exceeded MaxStartups\r\n", CLOSES, true},
         ERR_REFUSED,
         SSH_BANNER,
         "refused before sign-in: Exceeded MaxStartups"},
        {{"one\nNot allowed at this time\x1b[2J\r\n", CLOSES, true},
         ERR_REFUSED,
         SSH_BANNER,
         "refused before sign-in: Not allowed at this time\\x1b[2J"},
        {{"SSH-2.0-half", CLOSES, true}, ERR_REFUSED, SSH_BANNER, "refused before sign-in"},
        {{"SSH-2.0-server\r\n", LEAVES, true}, ERR_CLOSED, SSH_KEX, "closed by the server, key exchange"},
        {{"welcome\r\nSSH-2.0-server\r\n", LEAVES, true}, ERR_CLOSED, SSH_KEX, "closed by the server, key exchange"},
        {{"", STAYS, false}, ERR_TIMEOUT, SSH_BANNER, "timed out, waiting for the banner"},
        {{"wait a moment\r\n", STAYS, false}, ERR_TIMEOUT, SSH_BANNER, "timed out, waiting for the banner"},
        {{"SSH-2.0-server\r\n", STAYS, false}, ERR_TIMEOUT, SSH_KEX, "timed out, key exchange"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct manner m = rows[i].manner;
        struct ssh_report report;
        struct stub *server = stub_start(serve, &m);
        enum err e = sign_in(server->port, m.ends == STAYS ? 300 * US_PER_MS : 20 * US_PER_S, &report);
        if (e != rows[i].err || report.stage != rows[i].stage || strcmp(why.msg, rows[i].text) != 0)
            fail_msg("row %zu: %s, %s: %s", i, err_symbol(e), ssh_stage_text(report.stage), why.msg);
        assert_true(report.connect_us >= 0);
        assert_true((report.banner_us >= 0) == (rows[i].stage == SSH_KEX));
        stub_stop(server);
    }
}

/* Bytes that are no SSH end in an error, whatever they are, and at once. */
static void other_protocols(void **state)
{
    (void)state;
    static const char *const says[] = {
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        "SSH-2.0-x\r\n\xff\xff\xff\xff garbage that is no packet at all ..................................",
        "220 ftp\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        struct manner m = {says[i], CLOSES, true};
        struct ssh_report report;
        struct stub *server = stub_start(serve, &m);
        assert_int_not_equal(sign_in(server->port, 20 * US_PER_S, &report), ERR_OK);
        assert_int_not_equal(why.code, ERR_TIMEOUT);
        stub_stop(server);
    }
}

static void nobody_listens(void **state)
{
    (void)state;
    struct manner m = {"", CLOSES, false};
    struct ssh_report report;
    struct stub *server = stub_start(serve, &m);
    int port = server->port;
    stub_stop(server);
    assert_int_equal(sign_in(port, 5 * US_PER_S, &report), ERR_CONNECT);
    assert_int_equal(report.stage, SSH_CONNECT);
    assert_true(report.connect_us == -1 && report.banner_us == -1);
}

static void cancel_all(void *arg)
{
    (void)arg;
    ssh_client_cancel(client, NULL);
}

/* Whoever waits for a server that says nothing can be called off. */
static void a_cancelled_sign_in(void **state)
{
    (void)state;
    struct manner m = {"", STAYS, true};
    struct ssh_report report;
    struct stub *server = stub_start(serve, &m);
    coro_spawn(loop, cancel_all, NULL);
    assert_int_equal(sign_in(server->port, 20 * US_PER_S, &report), ERR_CANCELLED);
    stub_stop(server);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(ends_before_the_sign_in),
        CASE(other_protocols),
        CASE(nobody_listens),
        CASE(a_cancelled_sign_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
