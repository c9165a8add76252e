#include "sim/app/open_files.h"

#include "base/str.h"

#include <sys/resource.h>

enum { OTHER_FILES = 80, AT_ONCE_LEAST = 500 };

uint64_t open_files_needed(unsigned apps, unsigned logins)
{
    /* 2 an app; a third for the time in which it acts and looks at once, for one in twenty of many apps; one a login
     * for signing in again; libcurl's wake-up pair for each 256 apps; the readers of the tree; and what the program
     * holds anyway: epoll, standard streams, ledger, database and store. */
    uint64_t at_once = apps < AT_ONCE_LEAST ? apps : AT_ONCE_LEAST + (apps - AT_ONCE_LEAST) / 20;
    return 2 * (uint64_t)apps + at_once + logins + 2 * ((uint64_t)apps / 256 + 1) + OTHER_FILES;
}

void open_files_raise(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == r.rlim_max)
        return;
    r.rlim_cur = r.rlim_max;
    (void)!setrlimit(RLIMIT_NOFILE, &r);
}

/* noun: what is counted, for the sentence. */
static enum err allow_files(uint64_t need, unsigned n, const char *noun, uint64_t *limit, struct errinfo *ei)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return err_sys(ei, ERR_ENV, "cannot read the limit of open files");
    if (r.rlim_cur != RLIM_INFINITY && r.rlim_cur < need) {
        if (r.rlim_max != RLIM_INFINITY && r.rlim_max < need)
            return err_set(ei, ERR_ENV,
                           "%s would need %llu open files, %llu are allowed here: raise the hard limit "
                           "(ulimit -Hn %llu) or start fewer %ss",
                           COUNTED(n, noun), (unsigned long long)need, (unsigned long long)r.rlim_max,
                           (unsigned long long)need, noun);
        r.rlim_cur = need;
        if (setrlimit(RLIMIT_NOFILE, &r) != 0)
            return err_sys(ei, ERR_ENV, "cannot raise the limit of open files to %llu", (unsigned long long)need);
    }
    if (limit)
        *limit = r.rlim_cur;
    return ERR_OK;
}

enum err open_files_for_apps(unsigned apps, unsigned logins, uint64_t *limit, struct errinfo *ei)
{
    return allow_files(open_files_needed(apps, logins), apps, "app", limit, ei);
}

enum err open_files_for_connections(unsigned connections, struct errinfo *ei)
{
    return allow_files((uint64_t)connections + OTHER_FILES, connections, "connection", NULL, ei);
}
