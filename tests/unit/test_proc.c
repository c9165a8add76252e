/* Other programs: started, awaited, told apart, ended. */
#include "base/buf.h"
#include "drive/account.h"
#include "drive/proc.h"
#include "unit.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop *loop;
static char dir[64], log_path[96];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/test-proc-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    snprintf(log_path, sizeof log_path, "%s/log", dir);
    return loop_new(&loop, NULL);
}

static int teardown(void **state)
{
    (void)state;
    unlink(log_path);
    rmdir(dir);
    coro_pool_trim();
    loop_free(&loop);
    return 0;
}

static const char *logged(void)
{
    static char text[4096];
    FILE *f = fopen(log_path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    unlink(log_path);
    return text;
}

static struct proc_spec shell(const char **argv, const char *script)
{
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = script;
    argv[3] = NULL;
    return (struct proc_spec){.argv = argv, .cwd = dir, .log = log_path};
}

static struct mono in_ms(int64_t ms)
{
    return mono_add(mono_now(), ms * US_PER_MS);
}

static void tools_end_with_a_status(void **state)
{
    static const struct {
        const char *script;
        int status;
        const char *text;
    } rows[] = {
        {"echo out; echo err >&2", 0, "out\nerr\n"},
        {"exit 7", 7, ""},
        {"kill -9 $$", 128 + 9, ""},
        {"pwd", 0, NULL},
        {"echo $ONE$HOME", 0, "1replaced\n"},
        {"umask", 0, "0077\n"},
        {"ls /proc/self/fd | wc -l", 0, "4\n"},               /* 0, 1, 2 and the listing's own */
        {"trap 'exit 3' TERM INT HUP; kill -TERM $$", 3, ""}, /* no signal is blocked */
    };
    static const char *const env[] = {"ONE=1", "HOME=replaced", NULL};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *argv[4];
        struct proc_spec spec = shell(argv, rows[i].script);
        struct errinfo ei;
        int status = -1;
        spec.env = env;
        assert_int_equal(proc_run(loop, &spec, in_ms(20000), NULL, &status, &ei), ERR_OK);
        assert_int_equal(status, rows[i].status);
        const char *text = logged();
        if (rows[i].text)
            assert_string_equal(text, rows[i].text);
        else
            assert_memory_equal(text, dir, strlen(dir));
    }
}

static void a_tool_is_asked(void **state)
{
    (void)state;
    static const char *const argv[] = {"/bin/sh", "-c", "echo seven; echo eight >&2; exit 3", NULL};
    struct errinfo ei;
    char said[32], cut[4];
    int status = -1;
    struct mono limit = mono_add(mono_now(), 60 * US_PER_S);
    assert_int_equal(proc_ask(loop, argv, limit, said, sizeof said, &status, &ei), ERR_OK);
    assert_int_equal(status, 3);
    assert_string_equal(said, "seven\neight\n");
    assert_int_equal(proc_ask(loop, argv, limit, cut, sizeof cut, &status, &ei), ERR_OK);
    assert_string_equal(cut, "sev");
}

static void what_cannot_be_started_says_why(void **state)
{
    const char *absent[] = {"no-such-program-here", NULL}, *path[] = {"/nonexistent/x", NULL}, *sh[] = {"sh", NULL};
    struct proc_spec spec = {.argv = absent, .cwd = dir, .log = log_path};
    struct errinfo ei;
    int status;
    (void)state;
    assert_int_equal(proc_run(loop, &spec, in_ms(20000), NULL, &status, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "no-such-program-here is not installed"));
    spec.argv = path;
    assert_int_equal(proc_run(loop, &spec, in_ms(20000), NULL, &status, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "No such file"));
    spec.argv = sh;
    spec.cwd = "/nonexistent";
    assert_int_equal(proc_run(loop, &spec, in_ms(20000), NULL, &status, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "/nonexistent"));
    logged();
}

static void a_tool_that_hangs_is_killed_with_its_children(void **state)
{
    const char *argv[4];
    struct proc_spec spec = shell(argv, "sleep 1000 & echo $!; wait");
    struct errinfo ei;
    int status = 0;
    (void)state;
    assert_int_equal(proc_run(loop, &spec, in_ms(300), NULL, &status, &ei), ERR_TIMEOUT);
    pid_t child = (pid_t)strtol(logged(), NULL, 10);
    assert_true(child > 1);
    for (int i = 0; i < 1000 && kill(child, 0) == 0; i++) { /* init reaps it, or it stays a zombie */
        struct proc p = {.pid = child};
        char exe[64];
        if (!proc_exe(&p, exe, sizeof exe))
            return;
        usleep(10000);
    }
    assert_int_equal(kill(child, 0), -1);
}

static void processes_are_told_apart(void **state)
{
    const char *argv[4];
    struct proc_spec spec = shell(argv, "exec sleep 1000");
    struct proc p, found[4];
    struct errinfo ei;
    char exe[256];
    int pidfd;
    (void)state;
    assert_int_equal(proc_start(&spec, &p, &pidfd, &ei), ERR_OK);
    assert_true(proc_alive(&p));
    struct proc other = {.pid = p.pid, .start = p.start + 1}; /* the same number in another life */
    assert_false(proc_alive(&other));
    assert_int_equal(proc_pidfd(&other), -1);
    assert_int_equal(getsid(p.pid), p.pid);
    int64_t rss, peak;
    assert_true(proc_memory(&p, &rss, &peak));
    assert_true(rss > 0 && peak >= rss);
    assert_false(proc_memory(&other, &rss, &peak));
    struct proc same;
    assert_true(proc_of_pid(p.pid, &same));
    assert_true(same.start == p.start);
    assert_false(proc_of_pid(0, &same));
    assert_true(llabs(proc_started(&p).us - wall_now().us) < 10 * US_PER_S);
    while (!proc_exe(&p, exe, sizeof exe) || !strstr(exe, "sleep")) /* the shell becomes it */
        usleep(1000);
    assert_int_equal(proc_find(exe, dir, found, 4), 1);
    assert_int_equal(found[0].pid, p.pid);
    assert_true(found[0].start == p.start);
    assert_int_equal(proc_find(exe, "/nonexistent", found, 4), 0);
    assert_int_equal(proc_find("/bin/other", dir, found, 4), 0);
    assert_int_equal(proc_end(loop, &other, 1, SIGKILL, US_PER_S, &ei), ERR_OK); /* touches nobody */
    assert_true(proc_alive(&p));
    assert_int_equal(proc_end(loop, &p, 1, SIGTERM, 10 * US_PER_S, &ei), ERR_OK);
    assert_false(proc_alive(&p));
    assert_false(proc_of_pid(p.pid, &same));
    close(pidfd);
    logged();
}

static void the_stubborn_are_killed(void **state)
{
    const char *argv[4];
    struct proc_spec spec = shell(argv, "trap '' TERM; echo on; while :; do read x < /dev/zero; done");
    struct proc p;
    struct errinfo ei;
    int pidfd;
    (void)state;
    assert_int_equal(proc_start(&spec, &p, &pidfd, &ei), ERR_OK);
    struct stat st;
    while (stat(log_path, &st) < 0 || st.st_size == 0)
        usleep(1000);
    assert_int_equal(proc_end(loop, &p, 1, SIGTERM, 200 * US_PER_MS, &ei), ERR_OK);
    assert_false(proc_alive(&p));
    close(pidfd);
    logged();
}

static void listeners_are_found(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    struct proc us = {.pid = getpid()}, init = {.pid = 1};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    getsockname(fd, (struct sockaddr *)&a, &n);
    assert_false(proc_listens(&us, ntohs(a.sin_port)));
    assert_int_equal(listen(fd, 1), 0);
    assert_true(proc_listens(&us, ntohs(a.sin_port)));
    assert_false(proc_listens(&init, ntohs(a.sin_port)));
    assert_false(proc_listens(&us, ntohs(a.sin_port) ^ 1));
    close(fd);
    assert_false(proc_listens(&us, ntohs(a.sin_port)));
}

static void programs_are_looked_up(void **state)
{
    char path[256];
    (void)state;
    assert_true(proc_which("sh", NULL, path, sizeof path));
    assert_int_equal(access(path, X_OK), 0);
    assert_false(proc_which("no-such-program-here", NULL, path, sizeof path));
    assert_false(proc_which("tmp", "/", path, sizeof path)); /* a folder is none */
    assert_false(proc_which("sh", NULL, path, 4));
}

struct question {
    int a, b;
};

static void add(const void *arg, void *out)
{
    const struct question *q = arg;
    *(int *)out = q->a + q->b + (geteuid() == 0 ? 1000 : 0);
}

static void accounts_are_asked(void **state)
{
    static const char *const nobody[] = {NULL, "no-such-account", "root", "nobody"};
    struct question q = {20, 22};
    struct account a;
    struct errinfo ei;
    int sum = 0;
    (void)state;
    assert_true(account_ask(NULL, add, &q, &sum, sizeof sum));
    assert_int_equal(sum, geteuid() == 0 ? 1042 : 42);
    assert_int_equal(account_find(nobody, 3, &a, &ei), ERR_ENV);
    if (account_find(nobody, 4, &a, &ei) || geteuid() != 0)
        skip();
    assert_true(account_ask(&a, add, &q, &sum, sizeof sum));
    assert_int_equal(sum, 42);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_false(account_can_use(&a, dir));
    assert_true(account_can_use(&a, "/tmp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_end_with_a_status),
        cmocka_unit_test(a_tool_is_asked),
        cmocka_unit_test(what_cannot_be_started_says_why),
        cmocka_unit_test(a_tool_that_hangs_is_killed_with_its_children),
        cmocka_unit_test(processes_are_told_apart),
        cmocka_unit_test(the_stubborn_are_killed),
        cmocka_unit_test(listeners_are_found),
        cmocka_unit_test(programs_are_looked_up),
        cmocka_unit_test(accounts_are_asked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
