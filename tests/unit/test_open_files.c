/* What the limit of open files lets through. */
#include "sim/app/open_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In a child, since limits can't be raised again. */
static int limited(uint64_t soft, uint64_t hard, unsigned apps, const char *says)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit r = {soft, hard};
        struct errinfo ei = {0};
        uint64_t now = 0;
        if (setrlimit(RLIMIT_NOFILE, &r) != 0)
            _exit(9);
        enum err e = open_files_for_apps(apps, 10, &now, &ei);
        if (says ? !strstr(ei.msg, says) : now < open_files_needed(apps, 10))
            _exit(8);
        _exit(e == ERR_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void test_open_files(void **state)
{
    (void)state;
    assert_int_equal(limited(64, 64, 100, "64 are allowed"), 1);
    assert_int_equal(limited(64, 64, 100, "100 apps would need 392 open files"), 1);
    assert_int_equal(limited(64, 1000, 100, NULL), 0); /* the soft limit is raised */
    assert_int_equal(limited(500, 500, 100, NULL), 0);
    assert_true(open_files_needed(9000, 450) <= 20000);
    assert_true(open_files_needed(9000, 450) >= 2 * 9000 + 450);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_open_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
