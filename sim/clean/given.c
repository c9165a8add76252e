/* On a server that signs nobody up the accounts are not ours, but one folder of each tree is: the one that seed made
 * and marked. It goes as a whole, and nothing else is touched. Accounts that seed made with an administrator's help go
 * by the same help, with all that they hold. */
#include "base/mem.h"
#include "sim/clean/clean.h"

#include <stdio.h>
#include <string.h>

#define LAPSE_MOST_US (150 * US_PER_S)

/* NULL: cannot sign in, why in ei. */
static MAY_YIELD struct api *enter(struct clean *c, const struct target_login *l, struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(c->ctx);
    struct api *a = NULL;
    struct api_result r;
    conf.timeout_us = 60 * US_PER_S;
    conf.budget = &c->budget;
    if (api_new(&a, &conf, ei) != ERR_OK)
        return NULL;
    if (api_sign_in(a, l->name, l->password, &r) != ERR_OK || r.outcome != OUT_OK) {
        err_set(ei, ERR_ENV, "%s cannot sign in: %s", l->name, r.reason);
        api_free(&a);
    }
    return a;
}

static bool known_tree(const struct clean *c, const struct api *a)
{
    for (size_t i = 0; i < c->n_accounts; i++)
        if (strcmp(api_tree(c->accounts[i].api), api_tree(a)) == 0)
            return true;
    return false;
}

static void count_top(struct clean_account *x, const struct drive_listing *top)
{
    for (size_t i = 0; i < top->n; i++) {
        x->folders += top->items[i].folder;
        x->files += !top->items[i].folder;
    }
}

static struct clean_account *add_account(struct clean *c, const char *email, struct api *a)
{
    c->accounts = mem_realloc_array(c->accounts, c->n_accounts + 1, sizeof(*c->accounts));
    struct clean_account *x = &c->accounts[c->n_accounts++];
    *x = (struct clean_account){.owner = {.email = mem_strdup(email)}, .api = a};
    return x;
}

static MAY_YIELD enum err find_made(struct clean *c, struct arena *mem, struct errinfo *ei)
{
    struct api_users users;
    struct api_result r;
    c->admin = enter(c, &c->ctx->target->logins[0], ei);
    if (!c->admin)
        return ei->code;
    if (api_accounts_made(c->admin, mem, &users, &r) != ERR_OK || r.outcome != OUT_OK)
        return err_set(ei, ERR_ENV, "the server does not list its accounts: %d %s", r.status, r.reason);
    for (size_t i = 0; i < users.n; i++)
        add_account(c, users.items[i].email, NULL);
    return ERR_OK;
}

enum err clean_given_find(struct clean *c, struct errinfo *ei)
{
    const struct target *t = c->ctx->target;
    struct arena *mem = arena_new(16 << 10);
    enum err e = ERR_OK;
    c->ours = map_new();
    for (size_t i = 0; i < t->n_logins && e == ERR_OK && !c->stop; i++) {
        struct drive_listing top = {0};
        struct api_result r;
        struct api *a = enter(c, &t->logins[i], ei);
        if (!a) {
            e = ei->code;
            break;
        }
        bool there = !known_tree(c, a) && api_list(a, NULL, mem, &top, &r) == ERR_OK && r.outcome == OUT_OK;
        if (!there) {
            if (!known_tree(c, a) && r.status != 404)
                e = err_set(ei, ERR_ENV, "%s cannot look for drivesim's folder: %d %s; nothing was removed",
                            t->logins[i].name, r.status, r.reason);
            api_free(&a);
            continue;
        }
        count_top(add_account(c, t->logins[i].name, a), &top);
    }
    if (e == ERR_OK && t->logins_made)
        e = find_made(c, mem, ei);
    arena_free(&mem);
    return e;
}

void clean_given_print(const struct clean *c)
{
    fprintf(c->ctx->out, "to be removed from %s, for good:\n", c->ctx->target->url);
    for (size_t i = 0; i < c->n_accounts; i++) {
        const struct clean_account *x = &c->accounts[i];
        if (x->api)
            fprintf(c->ctx->out, "  drivesim's folder of %s: %s and %s at its top, and all below them\n",
                    x->owner.email, COUNTED((uint64_t)x->folders, "folder"), COUNTED((uint64_t)x->files, "file"));
        else
            fprintf(c->ctx->out, "  the account %s, with all that it holds\n", x->owner.email);
    }
}

/* ---- removal ---- */

static bool is_locked(const struct api_result *r)
{
    return r->outcome == OUT_CONFLICT && strcmp(r->code, "LOCKED") == 0;
}

/* Some servers let a lock go for the login alone that took it: the others of the same tree are asked, too. */
static MAY_YIELD void unclaim_by_others(struct clean *c, const struct clean_account *x, struct api_locks_left *left,
                                        struct api_result *r)
{
    const struct target *t = c->ctx->target;
    for (size_t i = 0; i < t->n_logins && is_locked(r) && left->left > 0 && !c->stop; i++) {
        struct errinfo ei;
        struct api *a = strcmp(t->logins[i].name, x->owner.email) == 0 ? NULL : enter(c, &t->logins[i], &ei);
        if (a && strcmp(api_tree(a), api_tree(x->api)) == 0) {
            (void)!api_unclaim(a, left, r);
        }
        if (a)
            api_free(&a);
    }
}

static void name_holder(const struct api_locks_left *left, struct api_result *r)
{
    char length[32];
    str_format(r->reason, sizeof(r->reason), "%.110s, %s%s: let it go, then clean again", left->first,
               left->longest_us < 0 ? "without an end" : "for another ",
               left->longest_us < 0 ? "" : str_duration(length, sizeof(length), left->longest_us));
}

/* What others hold lapses: that is waited for, once and no longer than an app's lock lasts. */
static MAY_YIELD enum err unclaim(struct clean *c, const struct clean_account *x, struct api_result *r)
{
    struct api_locks_left left;
    char length[32];
    enum err e = api_unclaim(x->api, &left, r);
    if (e == ERR_OK && is_locked(r))
        unclaim_by_others(c, x, &left, r);
    if (e != ERR_OK || !is_locked(r) || c->stop)
        return e;
    clean_done(c);
    int64_t wait = left.left == 0 ? LAPSE_MOST_US : left.longest_us;
    if (wait >= 0 && wait <= LAPSE_MOST_US) {
        fprintf(c->ctx->out, "%s: %s%s: waiting for the lock to lapse, at most %s\n", x->owner.email,
                left.left ? left.first : "something in it is locked, the server does not say by whom",
                left.left > 1 ? ", and others" : "", str_duration(length, sizeof(length), wait));
        fflush(c->ctx->out);
        coro_sleep_unless(c->ctx->loop, mono_add(mono_now(), wait + US_PER_S), &c->stop);
        e = api_unclaim(x->api, &left, r);
    }
    if (e == ERR_OK && is_locked(r) && left.left > 0)
        name_holder(&left, r);
    return e;
}

void clean_given_remove(struct clean *c)
{
    for (size_t i = 0; i < c->n_accounts && !c->stop; i++) {
        const struct clean_account *x = &c->accounts[i];
        struct api_result r;
        clean_doing(c, x->api ? "removing drivesim's folder of %s" : "removing the account %s", x->owner.email);
        enum err e = x->api ? unclaim(c, x, &r) : api_account_remove(c->admin, x->owner.email, &r);
        if (e != ERR_OK || r.outcome != OUT_OK)
            clean_left(c, "%s %s: %d %s", x->api ? "drivesim's folder of" : "the account", x->owner.email, r.status,
                       r.reason);
    }
    clean_done(c);
}
