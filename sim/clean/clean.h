#ifndef SIM_CLEAN_CLEAN_H
#define SIM_CLEAN_CLEAN_H
/* Internal to `sim clean`: what drivesim made on a server, found and removed. An account is ours when its email is of
 * our domain and its password is the one that we give: a name alone proves nothing. Trees go by the server's own calls,
 * which keep its objects and totals right; accounts by the database, since no call removes them. Layer 3. */
#include "base/map.h"
#include "drive/api/api.h"
#include "drive/api/budget.h"
#include "drive/cmd.h"
#include "net/loop.h"
#include "store/blob.h"
#include "store/kv.h"
#include "store/pg.h"

struct clean_user {
    char *id, *email;
};
struct clean_account {
    struct clean_user owner; /* id NULL: the server does not tell it */
    struct api *api;         /* signed in; NULL: not ours, why tells */
    char why[200];
    struct clean_user *subs;    /* of our domain */
    size_t n_subs, n_strangers; /* strangers: sub-users that somebody else made */
    int64_t files, folders, bytes, in_trash;
};
struct clean {
    struct cmd_ctx *ctx;
    struct clean_account *accounts; /* the administrator's last */
    size_t n_accounts;
    struct map *ours;   /* ids and emails of all users that will go */
    struct pg_pool *pg; /* NULL: not given; likewise the others */
    struct kv *kv;
    struct blob *blob;
    struct work *work;
    struct errinfo pg_why, kv_why;
    char **paths; /* objects that rows of ours name */
    size_t n_paths;
    char **keys; /* of Redis */
    size_t n_keys;
    char **left; /* what could not be removed, a line each */
    size_t n_left;
    uint64_t objects; /* found without a row, after the server's own removal */
    bool stop;
    struct budget budget;      /* of all its clients */
    char lost[300];            /* the server did not say what it has, so that nothing is known of it; "" */
    struct progress *progress; /* clean/told.c */
    struct timer tick;
    struct mono began;
    char doing[300];
    struct api *admin; /* clean/given.c: the given login by which accounts were made; NULL: none were */
};

/* clean/find.c */
MAY_YIELD enum err clean_find(struct clean *c, struct errinfo *ei) WARN_UNUSED;
/* Anew, as the store or Redis may have changed meanwhile. */
MAY_YIELD void clean_find_keys(struct clean *c);
void clean_print(const struct clean *c);
MAY_YIELD void clean_free(struct clean *c);
bool clean_anything(const struct clean *c);
/* Whether a Redis key is about one of these ids or emails: one of its parts between ':' is it. Pure. */
bool clean_key_is_ours(const struct map *ours, struct sv key);

/* clean/given.c: on a server whose logins were given, or made with a given one's help. */
MAY_YIELD enum err clean_given_find(struct clean *c, struct errinfo *ei) WARN_UNUSED;
void clean_given_print(const struct clean *c);
MAY_YIELD void clean_given_remove(struct clean *c);

/* clean/told.c: a line that says what is being done and for how long, until something else is or clean_done. */
void clean_doing(struct clean *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void clean_done(struct clean *c);

/* clean/remove.c */
MAY_YIELD void clean_remove(struct clean *c);
void clean_left(struct clean *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
#endif
