#include "sim/process.h"
#include "base/secret.h"
#include "sim/app/open_files.h"
#include "sim/arguments.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* A file opened later must not become stdin, stdout or stderr. */
static void hold_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* What a core holds cannot be hidden. 1 byte, not 0: the kernel then asks no program to take one either. */
static void leave_no_core(void)
{
    struct rlimit core;

    if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max > 1) {
        core.rlim_cur = 1;
        setrlimit(RLIMIT_CORE, &core);
    }
}

char **process_prepare(int argc, char **argv, bool *no_stdout)
{
    char **copy = arguments_guard(argc, argv); /* first: whoever lists processes has it in view from the start */
    *no_stdout = fcntl(STDOUT_FILENO, F_GETFD) < 0;
    hold_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    secret_learn_program();
    secret_guard_streams();
    leave_no_core();
    open_files_raise();
    return copy;
}
