/* The ground that refusals stand on. All of it is ours and throwaway: an account with sub-users that lack one
 * permission each, a folder with files in every state that a row needs. Where a server lets nobody make an account, the
 * seeded owner's serves, and what then cannot be tried is said. */
#include "sim/refusals/stage.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/api/caps.h"
#include "drive/api/profile.h"
#include "drive/wire.h"
#include "sim/app/remover.h"
#include "sim/app/turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ADMIN       "owner" DRIVE_EMAIL_DOMAIN
#define OWNER       "refusals" DRIVE_EMAIL_DOMAIN
#define SUB_PREFIX  "refusals-"
#define JOB_WAIT_US (60 * US_PER_S)

/* ---- sessions ---- */

static enum err open_api(struct stage *s, struct api **out, struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(s->ctx);
    conf.timeout_us = 30 * US_PER_S;
    conf.budget = &s->budget;
    return api_new(out, &conf, ei);
}

/* GO_ON: a session may be an earlier one, and others may use it. */
enum entry { GO_ON, SIGN_IN, SIGN_UP };

/* Waits out the limiter. */
static MAY_YIELD bool enter(struct stage *s, struct api *a, const char *email, enum entry how, struct api_result *r)
{
    const char *password = target_password(s->ctx->target, email);
    struct turn turn = {.loop = s->ctx->loop, .stop = s->stop, .command = "refusals"};
    rng_init(&turn.rng, (uint64_t)s->ctx->common->seed, 7);
    do {
        if (how == SIGN_UP)
            (void)!api_sign_up(a, email, password, "Refusals", r);
        else
            (void)!(how == GO_ON ? api_enter(a, email, password, r) : api_sign_in(a, email, password, r));
    } while (turn_again(&turn, email, r));
    if (r->outcome == OUT_THROTTLED)
        str_format(r->reason, sizeof(r->reason), "interrupted");
    return r->outcome == OUT_OK;
}

/* Opens a session for who; its absence is noted, not an error. */
static MAY_YIELD void sign_in_as(struct stage *s, enum refusal_who who, const char *email)
{
    struct api_result r = {0};
    struct errinfo ei = {0};
    if (open_api(s, &s->logins[who], &ei) != ERR_OK) {
        str_format(s->why[who], sizeof(s->why[who]), "%s", err_message(&ei));
        return;
    }
    mem_free(s->emails[who]);
    s->emails[who] = mem_strdup(email);
    if (enter(s, s->logins[who], email, who == WHO_OWNER ? GO_ON : SIGN_IN, &r))
        return;
    str_format(s->why[who], sizeof(s->why[who]), "%s cannot sign in: %s", email, r.reason);
    api_free(&s->logins[who]);
}

static MAY_YIELD enum err admin_in(struct stage *s, struct errinfo *ei)
{
    struct api_result r = {0};
    enum err e = open_api(s, &s->admin, ei);
    if (e != ERR_OK || enter(s, s->admin, ADMIN, GO_ON, &r))
        return e;
    if (*s->stop)
        return err_set(ei, ERR_INTERRUPTED, "interrupted while signing in");
    return err_set(ei, ERR_ENV, ADMIN " cannot sign in: %s%s", r.reason,
                   outcome_is_no(r.outcome) ? "; fill the server first with sim seed" : "");
}

/* Our own account: signed in, or signed up while the administrator lets people in. */
static MAY_YIELD void owner_in(struct stage *s)
{
    struct api_result r = {0};
    bool open = true;
    sign_in_as(s, WHO_OWNER, OWNER);
    s->own_account = s->logins[WHO_OWNER] != NULL;
    struct errinfo ei;
    if (s->own_account || open_api(s, &s->logins[WHO_OWNER], &ei) != ERR_OK)
        return;
    (void)!api_signup_status(s->admin, &open, &r);
    if (!open)
        (void)!api_signup_toggle(s->admin, true, &r);
    s->own_account = enter(s, s->logins[WHO_OWNER], OWNER, SIGN_UP, &r);
    if (!open)
        (void)!api_signup_toggle(s->admin, false, &(struct api_result){0});
    if (s->own_account)
        return;
    api_free(&s->logins[WHO_OWNER]);
    LOGW("refusals", "no account of our own can be made (%s): " ADMIN " serves instead", r.reason);
    sign_in_as(s, WHO_OWNER, ADMIN);
}

/* ---- sub-users ---- */

static MAY_YIELD int delete_sub_user(struct stage *s, const char *id)
{
    char path[DRIVE_ID_MAX + 40];
    struct answer a;
    str_format(path, sizeof(path), "/api/user/sub-users/%s", id);
    refusal_request(api_peer(s->logins[WHO_OWNER]), &(struct http_req){.method = "DELETE", .path = path}, &a);
    return a.status;
}

/* Ours alone: those of a run before this one that was cut off, or of this one at its end. */
static MAY_YIELD unsigned delete_sub_users(struct stage *s)
{
    struct arena *mem = arena_new(16 << 10);
    struct api_users users = {0};
    struct api_result r;
    unsigned left = 0;
    if (api_sub_users(s->logins[WHO_OWNER], mem, &users, &r) == ERR_OK) {
        for (size_t i = 0; i < users.n; i++)
            if (sv_starts(sv_of(users.items[i].email), SV(SUB_PREFIX)))
                left += delete_sub_user(s, users.items[i].id) / 100 != 2;
    }
    arena_free(&mem);
    return left;
}

static MAY_YIELD void sub_user_in(struct stage *s, enum refusal_who who, const char *name, unsigned perms)
{
    char email[80];
    struct api_result r;
    str_format(email, sizeof(email), SUB_PREFIX "%s" DRIVE_EMAIL_DOMAIN, name);
    (void)!api_sub_user_create(s->logins[WHO_OWNER], email, s->ctx->target->password, name, perms, &r);
    if (r.outcome == OUT_OK)
        sign_in_as(s, who, email);
    else
        str_format(s->why[who], sizeof(s->why[who]), "no sub-user can be made: %s", r.reason);
}

static MAY_YIELD void sub_users_in(struct stage *s)
{
    delete_sub_users(s);
    for (unsigned bit = 0; bit < PERM_COUNT && !*s->stop; bit++) {
        char name[40];
        str_format(name, sizeof(name), "without-%s", perm_name((enum perm_bit)bit) + sizeof("files.") - 1);
        sub_user_in(s, WHO_LACKS + bit, name, PERM_ALL & ~(1u << bit));
    }
    sub_user_in(s, WHO_SPENDER, "spender", PERM_ALL);
    sub_user_in(s, WHO_LISTENER, "listener", PERM_ALL);
}

/* ---- those without a session ---- */

static void stranger_in(struct stage *s, enum refusal_who who, const char *token)
{
    struct errinfo ei;
    struct buf cookie = BUF_INIT(16 << 10);
    if (httpc_peer_new(&s->strangers[who], s->ctx->http, s->ctx->target->url, s->source[0] ? s->source : NULL, &ei)) {
        str_format(s->why[who], sizeof(s->why[who]), "%s", err_message(&ei));
        return;
    }
    httpc_peer_count(s->strangers[who], cmd_counters(s->ctx, CAUSE_ACTION));
    httpc_peer_header(s->strangers[who], WIRE_CSRF_HEADER, WIRE_CSRF_VALUE);
    httpc_peer_header(s->strangers[who], WIRE_DESKTOP_HEADER, WIRE_DESKTOP_VALUE);
    if (token && buf_appendf(&cookie, "Bearer %s", token) == ERR_OK)
        httpc_peer_header(s->strangers[who], "Authorization", buf_cstr(&cookie));
    buf_done(&cookie);
}

/* The token of a session that is signed out. */
static MAY_YIELD void revoked_in(struct stage *s)
{
    struct api *gone = NULL;
    struct errinfo ei;
    struct api_result r;
    if (open_api(s, &gone, &ei) != ERR_OK || !enter(s, gone, s->emails[WHO_OWNER], SIGN_IN, &r)) {
        str_format(s->why[WHO_REVOKED], sizeof(s->why[WHO_REVOKED]), "no session to revoke");
        api_free(&gone);
        return;
    }
    struct sv token = api_session_token(gone);
    char *text = mem_strndup(token.p, token.n);
    (void)!api_sign_out(gone, &r);
    stranger_in(s, WHO_REVOKED, text);
    mem_free(text);
    api_free(&gone);
}

static MAY_YIELD void strangers_in(struct stage *s)
{
    struct sv token = api_session_token(s->logins[WHO_OWNER]);
    char *forged = mem_strndup(token.p, token.n);
    if (token.n > 20) /* in the middle of the signature: a last letter may hold bits that mean nothing */
        forged[token.n - 10] = forged[token.n - 10] == 'A' ? 'B' : 'A';
    stranger_in(s, WHO_NOBODY, NULL);
    stranger_in(s, WHO_BAD_TOKEN, "this-is-no-token");
    stranger_in(s, WHO_FORGED, forged);
    mem_free(forged);
    revoked_in(s);
}

/* ---- things ---- */

static void keep(struct stage *s, enum refusal_thing t, const char *id)
{
    str_format(s->things[t], sizeof(s->things[t]), "%s", id ? id : "");
}

static MAY_YIELD bool make_folder(struct stage *s, enum refusal_thing t, enum refusal_thing in, const char *name,
                                  struct api_result *r)
{
    struct arena *mem = arena_new(2048);
    struct drive_file f;
    const char *parent = in == t ? NULL : s->things[in];
    bool ok = api_folder_create(s->logins[WHO_OWNER], parent, name, mem, &f, r) == ERR_OK && r->outcome == OUT_OK;
    keep(s, t, ok ? f.id : "");
    arena_free(&mem);
    return ok;
}

static MAY_YIELD bool make_file(struct stage *s, enum refusal_thing t, uint64_t size, struct api_result *r)
{
    struct arena *mem = arena_new(2048);
    char name[40];
    struct drive_file f;
    str_format(name, sizeof(name), "file %d.bin", (int)t);
    const struct content c = {.key = 2 + (uint64_t)t, .revision = 1, .size = size, .ext = "bin"};
    const struct api_upload u = {.parent_id = s->things[THING_FOLDER], .name = name, .content = &c};
    bool ok = api_upload(s->logins[WHO_OWNER], &u, mem, &f, r) == ERR_OK && r->outcome == OUT_OK;
    keep(s, t, ok ? f.id : "");
    if (ok && t == THING_FILE)
        keep(s, THING_STALE, f.version);
    arena_free(&mem);
    return ok;
}

static MAY_YIELD void put_in_trash(struct stage *s, enum refusal_thing t)
{
    const char *id = s->things[t];
    struct api_job job;
    struct api_result r;
    if (api_trash(s->logins[WHO_OWNER], &id, 1, &job, &r) != ERR_OK || r.outcome != OUT_OK)
        s->things[t][0] = '\0';
}

/* {file} gets a second version, so that the first one is stale. */
static MAY_YIELD void make_stale(struct stage *s)
{
    const struct content c = {.key = 1, .revision = 2, .size = 2000, .ext = "bin"};
    struct arena *mem = arena_new(2048);
    struct drive_file f;
    struct api_result r;
    if (api_replace(s->logins[WHO_OWNER], s->things[THING_FILE], "file.bin", NULL, NULL, &c, mem, &f, &r) != ERR_OK ||
        r.outcome != OUT_OK)
        s->things[THING_STALE][0] = '\0';
    arena_free(&mem);
}

/* One lock that another session holds to the end, one that lapses meanwhile: as soon as the server allows. */
static MAY_YIELD void make_locks(struct stage *s)
{
    static const unsigned ttls_s[] = {1, 2, 30}; /* the shortest that the server takes */
    struct api_lock lock;
    struct api_result r = {0};
    if (!s->logins[WHO_SECOND] ||
        api_lock(s->logins[WHO_SECOND], s->things[THING_LOCKED], 600, NULL, &lock, &r) != ERR_OK || r.outcome != OUT_OK)
        s->things[THING_LOCKED][0] = '\0';
    else
        str_format(s->held_lock, sizeof(s->held_lock), "%s", lock.id);
    if (!target_shows_inside(s->ctx->target))
        return; /* no row of those servers is about a lapsed lock, and one of them would keep the folder from going */
    for (size_t i = 0; i < ARRAY_LEN(ttls_s); i++) {
        if (api_lock(s->logins[WHO_OWNER], s->things[THING_LAPSED], ttls_s[i], NULL, &lock, &r) != ERR_OK ||
            r.outcome != OUT_OK)
            continue;
        keep(s, THING_LAPSED_LOCK, lock.id);
        int64_t left = lock.expires.us ? lock.expires.us - wall_now().us : ttls_s[i] * US_PER_S;
        s->lapses = mono_add(mono_now(), left + US_PER_S / 2);
        return;
    }
}

/* A file and a folder of the seeded owner. */
static MAY_YIELD void find_foreign(struct stage *s)
{
    struct arena *mem = arena_new(64 << 10);
    struct drive_listing top = {0}, recent = {0};
    struct api_result r;
    if (s->own_account && api_list(s->admin, NULL, mem, &top, &r) == ERR_OK)
        for (size_t i = 0; i < top.n; i++)
            keep(s, top.items[i].folder ? THING_FOREIGN_FOLDER : THING_FOREIGN, top.items[i].id);
    if (s->own_account && !s->things[THING_FOREIGN][0] && api_recent(s->admin, 1, mem, &recent, &r) == ERR_OK &&
        recent.n > 0)
        keep(s, THING_FOREIGN, recent.items[0].id);
    arena_free(&mem);
}

static MAY_YIELD enum err make_things(struct stage *s, struct errinfo *ei)
{
    static const enum refusal_thing files[] = {THING_FILE, THING_VICTIM, THING_TRASHED, THING_LOCKED, THING_LAPSED};
    struct api_result r = {0};
    char name[60];
    str_format(name, sizeof(name), "refusals %" PRId64, wall_now().us);
    bool ok = make_folder(s, THING_FOLDER, THING_FOLDER, name, &r) &&
              make_folder(s, THING_CHILD, THING_FOLDER, "child", &r) &&
              make_folder(s, THING_TRASHED_FOLDER, THING_FOLDER, "trashed", &r);
    for (size_t i = 0; i < ARRAY_LEN(files) && ok; i++)
        ok = make_file(s, files[i], 3000, &r);
    if (!ok || !make_file(s, THING_BIG, 2 * REFUSAL_ROOM, &r))
        return err_set(ei, *s->stop ? ERR_INTERRUPTED : ERR_ENV, "nothing can be stored to be refused later: %s",
                       r.reason);
    make_stale(s);
    make_locks(s);
    put_in_trash(s, THING_TRASHED);
    put_in_trash(s, THING_TRASHED_FOLDER);
    keep(s, THING_MISSING, "zzzzzzzzzzzzzzzz");
    find_foreign(s);
    return ERR_OK;
}

/* ---- the whole ---- */

/* The first given login, and the second where it works in the same tree. */
static MAY_YIELD enum err given_in(struct stage *s, struct errinfo *ei)
{
    char name[TARGET_LOGIN_MAX + 1], second[TARGET_LOGIN_MAX + 1];
    target_owner(s->ctx->target, 0, name, sizeof(name));
    sign_in_as(s, WHO_OWNER, name);
    if (!s->logins[WHO_OWNER])
        return err_set(ei, *s->stop ? ERR_INTERRUPTED : ERR_ENV, "%s", s->why[WHO_OWNER]);
    if (target_owner(s->ctx->target, 1, second, sizeof(second)))
        sign_in_as(s, WHO_SECOND, second);
    if (s->logins[WHO_SECOND] && strcmp(api_tree(s->logins[WHO_SECOND]), api_tree(s->logins[WHO_OWNER])) != 0)
        api_free(&s->logins[WHO_SECOND]);
    if (!s->logins[WHO_SECOND])
        sign_in_as(s, WHO_SECOND, name);
    return make_things(s, ei);
}

/* On this machine strangers get an address of their own: failed sign-ins that are counted by address must not be held
 * against everybody else. */
static enum err choose_source(struct stage *s, struct errinfo *ei)
{
    struct http_url u;
    enum err e = http_url_parse(s->ctx->target->url, &u, ei);
    if (e != ERR_OK)
        return e;
    if (strcmp(u.host, "localhost") == 0 || strncmp(u.host, "127.", 4) == 0) {
        uint64_t any = rng_mix64((uint64_t)wall_now().us);
        str_format(s->source, sizeof(s->source), "127.77.%u.%u", 1 + (unsigned)(any % 250),
                   1 + (unsigned)(any / 250 % 250));
    }
    http_url_done(&u);
    return ERR_OK;
}

enum err stage_build(struct stage *s, struct errinfo *ei)
{
    if (!target_shows_inside(s->ctx->target))
        return given_in(s, ei);
    enum err e = choose_source(s, ei);
    if (e == ERR_OK)
        e = admin_in(s, ei);
    if (e != ERR_OK)
        return e;
    owner_in(s);
    if (!s->logins[WHO_OWNER])
        return err_set(ei, *s->stop ? ERR_INTERRUPTED : ERR_ENV, "%s", s->why[WHO_OWNER]);
    s->account_id = profile_read_id(api_peer(s->logins[WHO_OWNER]));
    caps_tell(s->ctx, caps_ask(s->logins[WHO_OWNER]));
    char why[160];
    if (s->own_account)
        stage_limit(s, -1, why, sizeof(why)); /* left by a run that was cut off */
    sign_in_as(s, WHO_SECOND, s->emails[WHO_OWNER]);
    sub_users_in(s);
    strangers_in(s);
    return *s->stop ? err_set(ei, ERR_INTERRUPTED, "interrupted while preparing") : make_things(s, ei);
}

struct httpc_peer *stage_peer(struct stage *s, enum refusal_who who, const char **why)
{
    *why = s->why[who][0] ? s->why[who] : "there is no such login";
    if (s->strangers[who])
        return s->strangers[who];
    return s->logins[who] ? api_peer(s->logins[who]) : NULL;
}

bool stage_limit(struct stage *s, int64_t bytes, char *why, size_t n)
{
    struct buf body = BUF_INIT(512);
    struct jsonw w;
    struct answer a;
    if (!s->own_account || !s->account_id) {
        str_format(why, n, "no account of our own, whose quota could be set");
        return false;
    }
    jsonw_init(&w, &body);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "targetUserId", s->account_id);
    if (bytes < 0)
        jsonw_null(&w, "storageLimit");
    else
        jsonw_i64(&w, "storageLimit", bytes);
    jsonw_end_object(&w);
    refusal_request(
        api_peer(s->admin),
        &(struct http_req){.method = "PUT", .path = "/api/user/storage-limit", .body = {buf_cstr(&body), body.len}},
        &a);
    buf_done(&body);
    if (a.status / 100 != 2)
        str_format(why, n, "the quota cannot be set: %d %s", a.status, a.reason);
    return a.status / 100 == 2;
}

void stage_holdings(struct stage *s, struct holdings *out)
{
    struct arena *mem = arena_new(16 << 10);
    struct api_storage storage = {0};
    struct api_totals totals = {0};
    struct drive_listing listing = {0};
    struct api_result r[3] = {0};
    struct api *a = s->logins[WHO_OWNER];
    (void)!api_storage(a, &storage, &r[0]);
    (void)!api_stats(a, &totals, &r[1]);
    (void)!api_list(a, s->things[THING_FOLDER], mem, &listing, &r[2]);
    *out = (struct holdings){.known = r[0].outcome == OUT_OK && r[1].outcome == OUT_OK && r[2].outcome == OUT_OK,
                             .used = storage.used,
                             .files = totals.files,
                             .folders = totals.folders,
                             .listed = listing.n};
    arena_free(&mem);
}

void stage_clear(struct stage *s, char *left, size_t n)
{
    struct api_result r = {0};
    const char *folder = s->things[THING_FOLDER];
    /* what was made is removed, also after an interruption */
    struct remover m = {.ctx = s->ctx,
                        .api = s->logins[WHO_OWNER],
                        .hurried = s->stop,
                        .limit_us = JOB_WAIT_US,
                        .away_us = JOB_AWAY_US};
    const struct job_caller calls = remover_caller(&m);
    char why[160];
    left[0] = '\0';
    if (!s->logins[WHO_OWNER])
        return;
    if (s->own_account)
        stage_limit(s, -1, why, sizeof(why));
    if (s->held_lock[0])
        (void)!api_unlock(s->logins[WHO_SECOND], s->things[THING_LOCKED], s->held_lock, &r);
    if (folder[0] && !job_remove(&calls, &folder, 1, why, sizeof(why)))
        str_format(left, n, "a folder of %s: %s", s->emails[WHO_OWNER], why);
    unsigned users = delete_sub_users(s);
    if (users && !left[0])
        str_format(left, n, "%s of %s", COUNTED(users, "sub-user"), s->emails[WHO_OWNER]);
}

void stage_free(struct stage *s)
{
    refusal_give_streams(s);
    for (int i = 0; i < WHO_COUNT; i++) {
        api_free(&s->logins[i]);
        if (s->strangers[i])
            httpc_peer_free(&s->strangers[i]);
        mem_free(s->emails[i]);
    }
    api_free(&s->admin);
    mem_free(s->account_id);
}
