#include "drive/account.h"
#include "base/mem.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum err account_find(const char *const *names, size_t n, struct account *out, struct errinfo *ei)
{
    for (size_t i = 0; i < n; i++) {
        const struct passwd *pw = names[i] ? getpwnam(names[i]) : NULL;
        if (!pw || pw->pw_uid == 0)
            continue;
        snprintf(out->name, sizeof out->name, "%s", names[i]);
        out->uid = pw->pw_uid;
        out->gid = pw->pw_gid;
        return ERR_OK;
    }
    return err_set(ei, ERR_ENV,
                   "Postgres refuses to run as root and there is no other account for it: name one with "
                   "--account");
}

void account_switch_prepare(struct account_switch *s, const struct account *a)
{
    s->wanted = a != NULL;
    if (!a)
        return;
    s->uid = a->uid;
    s->gid = a->gid;
    s->n_groups = (int)ARRAY_LEN(s->groups);
    if (getgrouplist(a->name, a->gid, s->groups, &s->n_groups) < 0)
        s->n_groups = 0;
}

bool account_switch_now(const struct account_switch *s)
{
    return !s->wanted || (setgroups((size_t)s->n_groups, s->groups) == 0 && setgid(s->gid) == 0 && setuid(s->uid) == 0);
}

bool account_ask(const struct account *a, void (*fn)(const void *arg, void *out), const void *arg, void *out, size_t n)
{
    struct account_switch s;
    int status = 1;
    if (!a) {
        fn(arg, out);
        return true;
    }
    void *shared = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    memcpy(shared, out, n);
    account_switch_prepare(&s, a);
    pid_t pid = fork();
    if (pid == 0) {
        if (!account_switch_now(&s))
            _exit(1);
        fn(arg, shared);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    bool answered = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (answered)
        memcpy(out, shared, n);
    munmap(shared, n);
    return answered;
}

static void look_into(const void *arg, void *out)
{
    bool *usable = out;
    *usable = access(arg, R_OK | W_OK | X_OK) == 0;
}

bool account_can_use(const struct account *a, const char *folder)
{
    bool usable = false;
    return account_ask(a, look_into, folder, &usable, sizeof usable) && usable;
}
