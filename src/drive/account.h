#ifndef DRIVE_ACCOUNT_H
#define DRIVE_ACCOUNT_H
/* Accounts of this machine: a program that must not run as root is started as one of them. Layer 2. */
#include "base/err.h"
#include <stddef.h>
#include <sys/types.h>

struct account {
    char name[64];
    uid_t uid;
    gid_t gid;
};
/* The first of the names (NULL entries are passed over) that this machine knows and that is not root's. ERR_ENV when
 * there is none. */
enum err account_find(const char *const *names, size_t n, struct account *out, struct errinfo *ei) WARN_UNUSED;
/* Whether that account may work in an existing folder. */
bool account_can_use(const struct account *a, const char *folder);

/* fn(arg, out) in a child that has become a: what the kernel tells only to an equal (root in a container is none). out
 * is n bytes, handed in and copied back. a NULL: here and now. False when it could not be asked. */
bool account_ask(const struct account *a, void (*fn)(const void *arg, void *out), const void *arg, void *out, size_t n);

/* Becoming one, in two steps: what needs lookups before fork, what is safe after it. */
struct account_switch {
    bool wanted;
    uid_t uid;
    gid_t gid;
    gid_t groups[64];
    int n_groups;
};
void account_switch_prepare(struct account_switch *s, const struct account *a); /* a NULL: stay who we are */
bool account_switch_now(const struct account_switch *s);
#endif
