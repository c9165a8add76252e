#ifndef UNIT_H
#define UNIT_H
/* What every unit test includes: cmocka wants these four headers in this order. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include "base/mem.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* fn ends the process it runs in, by a signal or with a status that is not 0. */
static inline void assert_dies(void (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL); /* not the test runner's */
        fn();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}
#endif
