/* Signing in, and what makes it rare. */
#include "drive/api/space.h"
#include "base/map.h"
#include "base/mem.h"
#include "drive/api/dialect.h"
#include <string.h>

struct api_space *api_space_new(void)
{
    struct api_space *s = mem_zalloc(sizeof *s);
    s->trees = map_new();
    s->sessions = token_store_new();
    return s;
}

static bool free_tree(void *arg, struct sv key, void *value)
{
    struct names *names = value;
    (void)arg, (void)key;
    names_free(&names);
    return false;
}

void api_space_free(struct api_space **s)
{
    if (!*s)
        return;
    map_filter((*s)->trees, free_tree, NULL);
    map_free(&(*s)->trees);
    token_store_free(&(*s)->sessions);
    MEM_FREE(*s);
}

void api_space_keep(struct api_space *s, const struct target *target, bool afresh)
{
    token_store_open(s->sessions, target, afresh);
}

void api_space_save(struct api_space *s)
{
    token_store_save(s->sessions);
}

void api_space_forget(struct api_space *s)
{
    token_store_forget(s->sessions);
}

void api_space_tally(const struct api_space *s, unsigned *kept, unsigned *signed_in)
{
    *kept = s->kept;
    *signed_in = s->signed_in;
}

bool api_space_lacks(const struct api_space *s, const char *email, const char *password)
{
    return token_store_absent(s->sessions, email, password);
}

bool api_space_keeps(const struct api_space *s, struct sv token)
{
    return token_store_keeps(s->sessions, token);
}

void api_space_look(struct api_space *s, const char *password, struct token_store_view *out)
{
    token_store_look(s->sessions, password, out);
}

/* ---- sessions ---- */

static bool has_begun(struct api *a, enum err err, const struct api_result *r)
{
    a->went_on = false;
    if (err || r->outcome != OUT_OK || !a->token)
        return false;
    a->token_since = r->sent; /* its life may have begun then */
    a->space->signed_in++;
    return true;
}

static struct wall wall_of(struct mono t)
{
    return (struct wall){wall_now().us - mono_diff(mono_now(), t)};
}

static void note(struct api *a, const char *email, const char *password)
{
    token_store_put(a->space->sessions, email, password,
                    &(struct kept_session){a->token, wall_of(a->token_since), a->caps, a->locks_seen});
}

enum err api_sign_in(struct api *a, const char *email, const char *password, struct api_result *r)
{
    enum err err = api_told(&a->space->sign_ins, r, API_ROW(sign_in, r, email, password, r));
    has_begun(a, err, r);
    return err;
}

enum err api_sign_up(struct api *a, const char *email, const char *password, const char *name, struct api_result *r)
{
    enum err err = api_told(&a->space->sign_ins, r, API_ROW(sign_up, r, email, password, name, r));
    if (has_begun(a, err, r))
        note(a, email, password);
    return err;
}

static MAY_YIELD enum err prove(struct api *a, const char *email, const struct kept_session *k, struct api_result *r)
{
    api_set_token(a, sv_of(k->token));
    a->token_since = mono_add(mono_now(), k->since.us - wall_now().us);
    a->caps &= k->caps;
    a->locks_seen = k->locks_seen;
    char *token = mem_strdup(k->token); /* k lasts until the next call of the store */
    enum err err = API_CALL(prove_session, r, email, r);
    a->went_on = err == ERR_OK && r->outcome == OUT_OK;
    if (a->went_on)
        a->space->kept += token_store_take(a->space->sessions, email);
    else if (r->status / 100 == 4 ? r->status != 429 : r->outcome == OUT_WRONG)
        token_store_refused(a->space->sessions, token);
    if (!a->went_on)
        api_set_token(a, (struct sv){"", 0});
    mem_free(token);
    return err;
}

enum err api_renew(struct api *a, const char *email, const char *password, struct api_result *r)
{
    enum err err = api_sign_in(a, email, password, r);
    if (err == ERR_OK && r->status == 401)
        token_store_put(a->space->sessions, email, password, &(struct kept_session){.since = wall_of(r->sent)});
    else if (err == ERR_OK && r->outcome == OUT_OK && a->token)
        note(a, email, password);
    return err;
}

enum err api_enter(struct api *a, const char *email, const char *password, struct api_result *r)
{
    struct kept_session k;
    if (a->dialect->prove_session && token_store_find(a->space->sessions, email, password, &k)) {
        enum err err = prove(a, email, &k, r);
        if (a->went_on || r->outcome == OUT_THROTTLED || err == ERR_CANCELLED)
            return err;
    }
    return api_renew(a, email, password, r);
}

bool api_went_on(const struct api *a)
{
    return a->went_on;
}

void api_renew_token(struct api *a, struct sv token, struct mono sent)
{
    char *before = mem_strdup(a->token);
    api_set_token(a, token);
    a->token_since = sent;
    if (before && a->token)
        token_store_renew(a->space->sessions, before, a->token, wall_of(sent));
    mem_free(before);
}

enum err api_sign_out(struct api *a, struct api_result *r)
{
    if (a->token)
        token_store_drop(a->space->sessions, a->token);
    return API_CALL(sign_out, r, r);
}
