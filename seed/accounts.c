/* The accounts: found by signing in, made where they are missing. The first owner must be the server's first user, and
 * proves it by a call that only the administrator may make: a server where somebody else was first is not ours. */
#include "base/mem.h"
#include "drive/api/caps.h"
#include "seed/crew.h"
#include "seed/entry.h"
#include "store/blob.h"
#include <string.h>

#define AT_ONCE    4
#define DOOR_TRIES 5 /* to come in while another seeder opens and closes sign-up */

/* ---- the first owner ---- */

static MAY_YIELD void first_sign_up(struct seeder *s, struct seed_login *l)
{
    struct api_result r;
    bool open = false;
    api_signup_status(l->api, &open, &r);
    if (!entry_well(s, OP_ACCOUNT, &r)) {
        entry_failed(s, l, &r);
        return;
    }
    if (open) {
        entry_new(s, l, "Owner", &r);
        if (r.outcome != OUT_OK)
            entry_failed(s, l, &r);
        return;
    }
    entry_ask(s, l, NULL, &r); /* another seeder may have come first, and closed the door behind it */
    if (r.outcome != OUT_OK)
        seed_fail(s, ERR_SAFETY,
                  "the server knows no %s with this password and takes no sign-ups: it is somebody else's, or was "
                  "seeded with another TMA_LOAD_PASSWORD",
                  l->email);
}

static MAY_YIELD void prove_first_user(struct seeder *s, struct seed_login *l)
{
    struct api_result r;
    api_signup_toggle(l->api, false, &r);
    bool ok = entry_well(s, OP_ACCOUNT, &r);
    if (r.status == 403)
        seed_fail(s, ERR_SAFETY, "%s is not this server's first user: it holds other users and is no throwaway server",
                  l->email);
    else if (!ok && !entry_absent(&r))
        entry_failed(s, l, &r);
}

static MAY_YIELD void connect_bucket(struct seeder *s, struct seed_login *l)
{
    struct blob_conf conf = target_blob_conf(s->ctx->target);
    struct api_result r;
    if (!target_has_s3(s->ctx->target) || s->stop)
        return;
    api_storage_config(l->api, &conf, &r);
    if (r.outcome == OUT_CONFLICT) /* another seeder connected it meanwhile: the settings are read again */
        api_storage_config(l->api, &conf, &r);
    bool ok = entry_well(s, OP_ACCOUNT, &r);
    if (entry_absent(&r))
        seed_say(s, "the server has no call to connect a bucket: it keeps its own");
    else if (!ok)
        seed_fail(s, ERR_ENV, "the bucket %s at %s cannot be connected: %s", conf.bucket, conf.endpoint, r.reason);
}

static MAY_YIELD void first_owner(struct seeder *s)
{
    struct seed_login *l = &s->accounts[0].logins[0];
    struct api_result r;
    entry_ask(s, l, NULL, &r);
    if (r.status == 401)
        first_sign_up(s, l);
    else if (r.outcome != OUT_OK)
        entry_failed(s, l, &r);
    if (!s->stop)
        prove_first_user(s, l);
    if (!s->stop)
        caps_tell(s->ctx, caps_ask(l->api));
    if (!s->stop)
        connect_bucket(s, l);
    if (!s->stop)
        entry_claim(s, l);
}

/* ---- everyone else ---- */

static MAY_YIELD bool let_sign_up(struct seeder *s, bool on)
{
    struct seed_login *admin = &s->accounts[0].logins[0];
    struct api_result r;
    api_signup_toggle(admin->api, on, &r);
    if (entry_well(s, OP_ACCOUNT, &r) || entry_absent(&r)) /* absent: it is never off */
        return true;
    seed_fail(s, ERR_ENV, "sign-up cannot be switched %s: %s", on ? "on" : "off", r.reason);
    return false;
}

/* Signs in, or up where the account is new; *opened: sign-up was switched on for it. */
static MAY_YIELD void sign_in_or_up(struct seeder *s, struct seed_login *l, bool *opened)
{
    struct api_result r;
    entry_ask(s, l, NULL, &r);
    if (r.status != 401) {
        if (r.outcome != OUT_OK)
            entry_failed(s, l, &r);
        return;
    }
    for (unsigned tries = 0; tries < DOOR_TRIES && r.outcome != OUT_OK && !s->stop; tries++) {
        if (!*opened && !(*opened = let_sign_up(s, true)))
            return;
        entry_new(s, l, l->email, &r);
        if (r.status != 403)
            break;
        *opened = false; /* another seeder closed the door just now */
    }
    if (r.outcome != OUT_OK)
        entry_failed(s, l, &r);
}

struct logins {
    struct seed_login **all;
    struct crew crew;
};

static MAY_YIELD void other_owners(struct seeder *s)
{
    bool opened = false;
    for (size_t a = 1; a < s->n_accounts && !s->stop; a++) {
        sign_in_or_up(s, &s->accounts[a].logins[0], &opened);
        if (!s->stop)
            entry_claim(s, &s->accounts[a].logins[0]);
    }
    if (opened)
        let_sign_up(s, false);
}

static bool listed(const struct api_users *users, const char *email)
{
    for (size_t i = 0; i < users->n; i++) {
        if (sv_ieq(sv_of(users->items[i].email), sv_of(email)))
            return true;
    }
    return false;
}

/* Until the sub-users have signed in, the owner is the one login that asks. */
static MAY_YIELD void list_sub_users(struct seeder *s, unsigned account, struct arena *mem, struct api_users *out)
{
    struct api_result r = {.outcome = OUT_UNFINISHED};
    struct seed_login *l;
    bool again = true;
    while (again && (l = seed_login_take(s, account))) {
        api_sub_users(l->api, mem, out, &r);
        again = seed_login_give(s, l, OP_ACCOUNT, &r);
    }
    if (entry_absent(&r))
        s->own_sub_users = false;
    else if (r.outcome != OUT_OK && !s->stop)
        seed_fail(s, ERR_ENV, "the sub-users of %s cannot be listed: %s", s->accounts[account].logins[0].email,
                  r.reason);
}

static MAY_YIELD void make_sub_user(struct seeder *s, unsigned account, const char *email, unsigned number)
{
    struct api_result r = {.outcome = OUT_UNFINISHED};
    struct seed_login *l;
    char name[32];
    bool again = true;
    snprintf(name, sizeof name, "User %u", number);
    while (again && (l = seed_login_take(s, account))) {
        api_sub_user_create(l->api, email, s->ctx->target->password, name, PERM_ALL, &r);
        again = seed_login_give(s, l, OP_ACCOUNT, &r);
    }
    /* Unknown, or there already: its sign-in will tell. */
    if (r.outcome != OUT_OK && r.outcome != OUT_UNKNOWN && r.status != 409 && !s->stop)
        seed_fail(s, ERR_ENV, "%s cannot be made: %s", email, r.reason);
}

/* Makes the sub-users that the account lacks. */
static MAY_YIELD void make_sub_users(struct seeder *s, void *arg, size_t account)
{
    struct crew *crew = arg;
    struct seed_account *a = &s->accounts[account];
    struct arena *mem = arena_new(4096);
    struct api_users users = {0};
    list_sub_users(s, (unsigned)account, mem, &users);
    for (unsigned i = 1; i < a->n_logins && s->own_sub_users && !s->stop; i++) {
        if (!listed(&users, a->logins[i].email))
            make_sub_user(s, (unsigned)account, a->logins[i].email, i);
    }
    crew->done++;
    arena_free(&mem);
}

static MAY_YIELD void sign_in_one(struct seeder *s, void *arg, size_t i)
{
    struct logins *logins = arg;
    struct seed_login *l = logins->all[i];
    struct api_result r;
    entry_ask(s, l, NULL, &r);
    if (r.outcome != OUT_OK)
        entry_failed(s, l, &r);
    logins->crew.done++;
}

static MAY_YIELD void sub_users(struct seeder *s)
{
    struct crew make = {.what = "accounts",
                        .units = s->n_accounts,
                        .least = AT_ONCE,
                        .most = AT_ONCE,
                        .one = make_sub_users,
                        .arg = &make};
    struct logins logins = {.all = mem_alloc((s->signins_total + 1) * sizeof(struct seed_login *))};
    bool opened = false;
    size_t n = 0;
    crew_begin(s, &make);
    crew_run(s, &make, s->n_accounts);
    crew_end(&make);
    for (size_t a = 0; a < s->n_accounts; a++) {
        for (size_t i = 1; i < s->accounts[a].n_logins; i++)
            logins.all[n++] = &s->accounts[a].logins[i];
    }
    if (s->own_sub_users) {
        logins.crew = (struct crew){
            .what = "sign-ins", .units = n, .least = AT_ONCE, .most = AT_ONCE, .one = sign_in_one, .arg = &logins};
        crew_begin(s, &logins.crew);
        crew_run(s, &logins.crew, n);
        crew_end(&logins.crew);
    } else {
        seed_say(s, "the server has no sub-users: the other logins become accounts of their own, without a tree");
        for (size_t i = 0; i < n && !s->stop; i++)
            sign_in_or_up(s, logins.all[i], &opened);
        if (opened)
            let_sign_up(s, false);
    }
    mem_free(logins.all);
}

static void make_logins(struct seeder *s)
{
    const struct api_conf conf = api_conf_of(s->ctx);
    s->accounts = mem_zalloc(s->n_accounts * sizeof *s->accounts);
    for (unsigned a = 0; a < s->n_accounts && !s->stop; a++) {
        struct seed_account *acc = &s->accounts[a];
        acc->n_logins = 1 + (size_t)s->conf->sub_users;
        acc->logins = mem_zalloc(acc->n_logins * sizeof *acc->logins);
        for (unsigned i = 0; i < acc->n_logins && !s->stop; i++) {
            struct seed_login *l = &acc->logins[i];
            struct errinfo why = {0};
            l->account = a;
            if (i == 0)
                planned_owner_email(l->email, a);
            else
                planned_user_email(l->email, a, i - 1);
            if (api_new(&l->api, &conf, &why))
                seed_fail(s, ERR_ENV, "%s", err_message(&why));
        }
        s->signins_total += (unsigned)acc->n_logins;
    }
}

void seed_accounts(struct seeder *s)
{
    s->own_sub_users = true;
    s->signins_since = s->last_ok = mono_now();
    if (target_logins_given(s->ctx->target)) {
        seed_given_logins(s);
        return;
    }
    make_logins(s);
    if (!s->stop)
        first_owner(s);
    if (!s->stop)
        other_owners(s);
    if (!s->stop && s->conf->sub_users > 0)
        sub_users(s);
    api_space_save(s->ctx->space); /* for commands that begin meanwhile, and in case this one is killed */
}

void seed_accounts_free(struct seeder *s)
{
    for (size_t a = 0; s->accounts && a < s->n_accounts; a++) {
        for (size_t i = 0; i < s->accounts[a].n_logins; i++)
            api_free(&s->accounts[a].logins[i].api);
        mem_free(s->accounts[a].logins);
    }
    MEM_FREE(s->accounts);
}
