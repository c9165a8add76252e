/* Logins that were given: nobody is signed up, and who works in which tree is found out by signing in. */
#include "base/mem.h"
#include "seed/entry.h"

#include <string.h>

static MAY_YIELD void enter_given(struct seeder *s, struct seed_login *l, const char *name)
{
    const struct api_conf conf = api_conf_of(s->ctx);
    struct errinfo why = {0};
    struct api_result r;
    snprintf(l->email, sizeof l->email, "%s", name);
    if (api_new(&l->api, &conf, &why)) {
        seed_fail(s, ERR_ENV, "%s", err_message(&why));
        return;
    }
    entry_ask(s, l, NULL, &r);
    if (r.outcome != OUT_OK)
        entry_failed(s, l, &r);
}

static bool same_tree(const struct seed_login *a, const struct seed_login *b)
{
    return strcmp(api_tree(a->api), api_tree(b->api)) == 0;
}

/* Each login to those that work in the same tree; a tree beyond those planned for is not used. */
static void place_login(struct seeder *s, struct seed_login *l, size_t *trees)
{
    size_t a = 0;
    while (a < *trees && !same_tree(&s->accounts[a].logins[0], l))
        a++;
    if (a == s->n_accounts || s->accounts[a].n_logins > (size_t)s->conf->sub_users) {
        api_free(&l->api);
        return;
    }
    struct seed_account *acc = &s->accounts[a];
    acc->logins = mem_realloc_array(acc->logins, acc->n_logins + 1, sizeof *acc->logins);
    l->account = (unsigned)a;
    acc->logins[acc->n_logins++] = *l;
    *trees += a == *trees;
}

void seed_given_logins(struct seeder *s)
{
    const struct target *t = s->ctx->target;
    size_t trees = 0;
    s->accounts = mem_zalloc(s->n_accounts * sizeof *s->accounts);
    s->signins_total = (unsigned)t->n_logins;
    for (size_t i = 0; i < t->n_logins && !s->stop; i++) {
        struct seed_login l = {0};
        enter_given(s, &l, t->logins[i].name);
        if (s->stop)
            api_free(&l.api);
        else
            place_login(s, &l, &trees);
    }
    if (!s->stop && trees < s->n_accounts)
        seed_fail(s, ERR_ENV, "the given logins work in %zu tree%s: --accounts %zu needs as many", trees,
                  trees == 1 ? "" : "s", s->n_accounts);
    for (size_t a = 0; a < s->n_accounts && !s->stop; a++) {
        if (s->accounts[a].n_logins < 1 + (size_t)s->conf->sub_users)
            seed_say(s, "the server signs nobody up: %zu given login%s work%s instead of %lld", s->accounts[a].n_logins,
                     s->accounts[a].n_logins == 1 ? "" : "s", s->accounts[a].n_logins == 1 ? "s" : "",
                     (long long)s->conf->sub_users + 1);
        entry_claim(s, &s->accounts[a].logins[0]);
    }
}
