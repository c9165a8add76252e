/* On a server that signs nobody up the accounts are not ours, but one folder of each tree is: the one that seed made
 * and marked. It goes as a whole, and nothing else is touched. */
#include "base/mem.h"
#include "sim/clean.h"

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
        c->accounts = mem_realloc_array(c->accounts, c->n_accounts + 1, sizeof(*c->accounts));
        struct clean_account *x = &c->accounts[c->n_accounts++];
        *x = (struct clean_account){.owner = {.email = mem_strdup(t->logins[i].name)}, .api = a};
        count_top(x, &top);
    }
    arena_free(&mem);
    return e;
}

void clean_given_print(const struct clean *c)
{
    fprintf(c->ctx->out, "to be removed from %s, for good:\n", c->ctx->target->url);
    for (size_t i = 0; i < c->n_accounts; i++)
        fprintf(c->ctx->out, "  drivesim's folder of %s: %s and %s at its top, and all below them\n",
                c->accounts[i].owner.email, COUNTED((uint64_t)c->accounts[i].folders, "folder"),
                COUNTED((uint64_t)c->accounts[i].files, "file"));
}

void clean_given_remove(struct clean *c)
{
    for (size_t i = 0; i < c->n_accounts && !c->stop; i++) {
        struct api_result r;
        c->requests++;
        if (api_unclaim(c->accounts[i].api, &r) != ERR_OK || r.outcome != OUT_OK)
            clean_left(c, "drivesim's folder of %s: %d %s", c->accounts[i].owner.email, r.status, r.reason);
    }
}
