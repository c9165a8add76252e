#include "drive/account.h"
#include "base/mem.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
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

bool account_can_use(const struct account *a, const char *folder)
{
    struct account_switch s;
    int status = 0;
    account_switch_prepare(&s, a);
    pid_t pid = fork();
    if (pid == 0)
        _exit(account_switch_now(&s) && access(folder, R_OK | W_OK | X_OK) == 0 ? 0 : 1);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
