/* On a server that signs nobody up the accounts are not ours, but one folder of each tree is: the one that seed made
 * and marked. It goes as a whole, and nothing else is touched. Accounts that seed made with an administrator's help go
 * by the same help, with all that they hold. */
#include "base/mem.h"
#include "sim/clean/clean.h"

#include <stdio.h>
#include <string.h>

/* NULL: cannot sign in, why in ei. */
static MAY_YIELD struct api *enter(struct clean *c, const struct target_login *l, struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(c->ctx);
    struct api *a = NULL;
    struct api_result r;
    conf.timeout_us = 60 * US_PER_S;
    if (api_new(&a, &conf, ei) != ERR_OK)
        return NULL;
    c->requests++;
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
    c->requests++;
    if (api_accounts_made(c->admin, mem, &users, &r) != ERR_OK || r.outcome != OUT_OK)
        return err_set(ei, ERR_ENV, "the server does not tell its accounts: %d %s", r.status, r.reason);
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
        c->requests++;
        bool there = !known_tree(c, a) && api_list(a, NULL, mem, &top, &r) == ERR_OK && r.outcome == OUT_OK;
        if (!there) {
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

void clean_given_remove(struct clean *c)
{
    for (size_t i = 0; i < c->n_accounts && !c->stop; i++) {
        const struct clean_account *x = &c->accounts[i];
        struct api_result r;
        c->requests++;
        enum err e = x->api ? api_unclaim(x->api, &r) : api_account_remove(c->admin, x->owner.email, &r);
        if (e != ERR_OK || r.outcome != OUT_OK)
            clean_left(c, "%s %s: %d %s", x->api ? "drivesim's folder of" : "the account", x->owner.email, r.status,
                       r.reason);
    }
}
