#ifndef SIM_APP_ROSTER_H
#define SIM_APP_ROSTER_H
/* Whom a run can be: the accounts that were found, each with its tree, and the logins that share their sessions among
 * the apps. logins.h fills it. Layer 3. */
#include "drive/api/api.h"
#include "net/coro.h"

struct delivery;
struct folders;
struct worker;

/* One owner with its sub-users: they share the tree. */
struct account {
    struct folders *folders;
    uint32_t n_logins;         /* of those in use */
    struct delivery *delivery; /* NULL until a change is known */
    uint64_t writes;           /* acknowledged: what the account committed for its apps, locks not counted */
};
/* A session that several apps share: signed in once, renewed once when it expires. */
struct login {
    char *email;
    struct account *account;
    struct api *api;
    uint32_t index;      /* in roster.logins and in run.json */
    uint32_t generation; /* counts the sign-ins; 0: none yet */
    struct sem renewing; /* one at a time; the others then find it done */
    struct worker *w;
    struct timer early; /* renews the session before it expires, where its life is known */
};
struct roster {
    struct account *accounts;
    uint32_t n_accounts;
    struct login *logins; /* in use, at most one an app; each account has its first one among the first n_accounts */
    uint32_t n_logins;
    uint32_t found;      /* logins; the server may have more than the apps can use */
    struct sem sign_ins; /* how many at once */
};
#endif
