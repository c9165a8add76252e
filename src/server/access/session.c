/* Remembered entries are keyed by the token's text, so that a known token costs neither a signature check nor a query.
 */
#include "server/access/session.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "server/access/seats.h"
#include "server/events/events.h"
#include "store/kv.h"
#include "store/pg.h"
#include <stdio.h>
#include <string.h>

#define FRESH_US    (3 * US_PER_S)
#define TOUCH_US    (15 * US_PER_S)
#define TOUCHED_MAX 10000

struct known {
    struct token token;
    struct login login;
    struct mono read; /* when the rows were */
    bool touched;     /* since the last batch */
};
struct sessions {
    struct server *server;
    struct map *known; /* token text -> struct known */
    struct seats *seats;
    uint64_t forgotten; /* counts forget_here: rows read before one must not be remembered after it */
    struct timer touch;
    bool touching;
};

static const char refused_missing[] = "No token provided";
static const char refused_bad[] = "Invalid token";
static const char refused_expired[] = "Session expired. Please login again.";
static const char refused_revoked[] = "Session has been revoked. Please login again.";

static struct sv token_text(const struct request *r)
{
    struct sv cookie = req_cookie(r, "token"), auth = req_header(r, "Authorization"), scheme;
    if (cookie.p && cookie.n)
        return cookie;
    if (!auth.p || !sv_split(&auth, ' ', &scheme))
        return (struct sv){NULL, 0};
    return sv_trim(auth);
}

bool session_token(struct request *r, const struct token **out)
{
    struct sv text = token_text(r);
    struct wall now = wall_now();
    if (!text.p || text.n == 0) {
        reply_message(r, 401, NULL, "%s", refused_missing);
        return false;
    }
    const struct known *k = map_get(r->server->sessions->known, text);
    struct token *t = arena_alloc(r->mem, sizeof *t);
    enum token_state state = TOKEN_OK;
    if (k) {
        *t = k->token;
        if (t->expires_s <= now.us / US_PER_S)
            state = TOKEN_EXPIRED;
    } else {
        state = token_read(r->server->conf->jwt_secret, text, now, t);
    }
    *out = t;
    if (state == TOKEN_OK)
        return true;
    reply_message(r, 401, NULL, "%s", state == TOKEN_EXPIRED ? refused_expired : refused_bad);
    return false;
}

/* ERR_NOTFOUND: no such session, or it was revoked. */
static MAY_YIELD enum err read_rows(struct server *s, const struct token *t, struct login *out, struct errinfo *ei)
{
    static const char sql[] = "SELECT u.id, coalesce(u.parent_user_id, u.id), u.name, u.email, "
                              "coalesce(array_to_string(u.permissions, ','), ''), "
                              "u.parent_user_id IS NULL, u.id = a.first_user_id "
                              "FROM sessions s JOIN users u ON u.id = s.user_id, app_settings a "
                              "WHERE s.id = $1 AND s.user_id = $2 AND s.revoked_at IS NULL AND s.expires_at > now()";
    const char *params[] = {t->session_id, t->user_id};
    struct pg_result *res = NULL;
    enum err err = pg_run(s->pg, sql, 2, params, &res, ei);
    if (err)
        return err;
    if (pg_rows(res) == 0) {
        pg_result_free(&res);
        return err_set(ei, ERR_NOTFOUND, "no such session");
    }
    *out = (struct login){.owner = pg_bool(res, 0, 5), .admin = pg_bool(res, 0, 6)};
    snprintf(out->user_id, sizeof out->user_id, "%s", pg_str(res, 0, 0));
    snprintf(out->account_id, sizeof out->account_id, "%s", pg_str(res, 0, 1));
    snprintf(out->name, sizeof out->name, "%s", pg_str(res, 0, 2));
    snprintf(out->email, sizeof out->email, "%s", pg_str(res, 0, 3));
    snprintf(out->session_id, sizeof out->session_id, "%s", t->session_id);
    struct sv names = sv_of(pg_str(res, 0, 4)), one;
    char name[64];
    while (names.n > 0 && sv_split(&names, ',', &one)) {
        snprintf(name, sizeof name, SV_FMT, SV_ARG(one));
        if (!perm_parse(name, &out->perms))
            LOGW("session", "%s has an unknown permission: %s", out->email, name);
    }
    if (out->owner)
        out->perms = PERM_ALL;
    pg_result_free(&res);
    return ERR_OK;
}

static void set_cookie(struct request *r, const char *token)
{
    const struct server_conf *c = r->server->conf;
    bool secure = !c->insecure_cookies && strncmp(c->backend_url, "https://", 8) == 0;
    reply_header(r, "Set-Cookie", "token=%s; Max-Age=%lld; Path=/; HttpOnly; SameSite=Lax%s", token,
                 (long long)(c->token_lifetime_us / US_PER_S), secure ? "; Secure" : "");
}

static enum err issue(struct request *r, const char *user_id, const char *session_id, struct errinfo *ei)
{
    int64_t now = wall_now().us / US_PER_S;
    struct token t = {.issued_s = now, .expires_s = now + r->server->conf->token_lifetime_us / US_PER_S};
    snprintf(t.user_id, sizeof t.user_id, "%s", user_id);
    snprintf(t.session_id, sizeof t.session_id, "%s", session_id);
    char *text = token_make(r->server->conf->jwt_secret, &t);
    if (!text)
        return err_set(ei, ERR_IO, "a token could not be signed");
    set_cookie(r, text);
    mem_free(text);
    return ERR_OK;
}

/* An active client never runs out: past half its life a token is replaced, its session going on. Called when the rows
 * were just read, so that a client that ignores the new one costs little. */
static MAY_YIELD void renew_if_due(struct request *r, const struct token *t)
{
    struct errinfo ei;
    int64_t now = wall_now().us / US_PER_S, lifetime = r->server->conf->token_lifetime_us / US_PER_S;
    const char *params[] = {t->session_id, arena_printf(r->mem, "%lld", (long long)lifetime)};

    if (now - t->issued_s <= (t->expires_s - t->issued_s) / 2)
        return;
    if (pg_run(r->server->pg, "SELECT drive_session_extend($1, $2)", 2, params, NULL, &ei) != ERR_OK ||
        issue(r, t->user_id, t->session_id, &ei) != ERR_OK)
        LOGW("session", "not renewed: %s", err_message(&ei));
}

/* Reads the rows and remembers them under the token's text. */
static MAY_YIELD enum err learn(struct request *r, const struct token *t, struct errinfo *ei)
{
    struct sessions *ss = r->server->sessions;
    struct sv text = token_text(r);
    uint64_t before;
    enum err err;
    do { /* what was read before a change must not be remembered after it */
        before = ss->forgotten;
        err = read_rows(r->server, t, &r->login, ei);
    } while (!err && before != ss->forgotten);
    if (err)
        return err;
    struct known *k = map_get(ss->known, text);
    if (!k) {
        k = mem_zalloc(sizeof *k);
        k->token = *t;
        map_put(ss->known, text, k);
    }
    k->login = r->login;
    k->read = mono_now();
    k->touched = true;
    return ERR_OK;
}

bool session_admit(struct request *r)
{
    if (seats_reserve(r->server->sessions->seats, mono_now()))
        return true;
    reply_header(r, "Retry-After", "5");
    reply_message(r, 503, "TOO_MANY_SESSIONS", "%lld sessions are signed in already",
                  (long long)r->server->conf->max_sessions);
    return false;
}

void session_turn_away(struct request *r)
{
    seats_give_up(r->server->sessions->seats);
}

bool session_login(struct request *r, const struct token *t)
{
    struct known *k = map_get(r->server->sessions->known, token_text(r));
    struct errinfo ei;

    if (k && mono_diff(mono_now(), k->read) <= FRESH_US) {
        k->touched = true;
        r->login = k->login;
        seats_touch(r->server->sessions->seats, t->session_id, mono_now());
        return true;
    }
    enum err err = learn(r, t, &ei);
    if (!err) {
        seats_touch(r->server->sessions->seats, t->session_id, mono_now());
        renew_if_due(r, t);
    } else if (err == ERR_NOTFOUND)
        reply_message(r, 401, NULL, "%s", refused_revoked);
    else
        reply_error(r, &ei);
    return !err;
}

/* A header as Postgres takes it: text, not bytes. */
static const char *readable(struct arena *mem, struct sv s)
{
    char text[504];
    return s.p ? arena_strdup(mem, str_shown(text, sizeof(text), s)) : NULL;
}

enum err session_open(struct request *r, const char *user_id, struct errinfo *ei)
{
    struct sv agent = req_header(r, "User-Agent");
    const char *lifetime = arena_printf(r->mem, "%lld", (long long)(r->server->conf->token_lifetime_us / US_PER_S));
    const char *params[] = {user_id, r->client_ip, readable(r->mem, agent), lifetime};
    struct pg_result *res = NULL;
    enum err err = pg_run(r->server->pg, "SELECT drive_session_open($1, $2, $3, $4)", 4, params, &res, ei);
    if (!err)
        err = issue(r, user_id, pg_str(res, 0, 0), ei);
    if (err)
        session_turn_away(r);
    else
        seats_sit(r->server->sessions->seats, pg_str(res, 0, 0), mono_now());
    pg_result_free(&res);
    return err;
}

void session_clear_cookie(struct request *r)
{
    reply_header(r, "Set-Cookie", "token=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax");
}

struct forget {
    const char *session_id, *user_id; /* one of them */
};

static bool keep_known(void *arg, struct sv key, void *value)
{
    const struct forget *f = arg;
    struct known *k = value;
    (void)key;
    bool same =
        f->session_id ? strcmp(f->session_id, k->token.session_id) == 0 : strcmp(f->user_id, k->token.user_id) == 0;
    if (same)
        mem_free(k);
    return !same;
}

static void forget_here(struct server *s, struct forget f)
{
    s->sessions->forgotten++;
    map_filter(s->sessions->known, keep_known, &f);
}

void session_forget(struct server *s, const char *session_id)
{
    forget_here(s, (struct forget){session_id, NULL});
    seats_leave(s->sessions->seats, session_id);
    events_drop_session(s, session_id);
    events_control(s, "session", session_id);
}

void session_forget_user(struct server *s, const char *user_id, bool gone)
{
    forget_here(s, (struct forget){NULL, user_id});
    if (gone)
        events_drop_user(s, user_id);
    events_control(s, gone ? "gone" : "user", user_id);
}

void session_on_control(struct server *s, const char *what, const char *id)
{
    if (strcmp(what, "session") == 0) {
        forget_here(s, (struct forget){id, NULL});
        seats_leave(s->sessions->seats, id);
        events_drop_session(s, id);
    } else if (strcmp(what, "user") == 0 || strcmp(what, "gone") == 0) {
        forget_here(s, (struct forget){NULL, id});
        if (strcmp(what, "gone") == 0)
            events_drop_user(s, id);
    }
}

/* last_seen_at is written for many sessions at once, and what was not used for a while is forgotten in the same walk.
 */
struct batch {
    struct buf ids;
    size_t n;
    struct mono now;
};

static bool collect(void *arg, struct sv key, void *value)
{
    struct batch *b = arg;
    struct known *k = value;
    (void)key;
    if (k->touched && b->n < TOUCHED_MAX &&
        buf_appendf(&b->ids, "%s%s", b->n ? "," : "", k->token.session_id) == ERR_OK) {
        k->touched = false;
        b->n++;
    }
    if (k->touched || mono_diff(b->now, k->read) <= TOUCH_US)
        return true;
    mem_free(k);
    return false;
}

static MAY_YIELD void write_touched(void *arg)
{
    struct sessions *ss = arg;
    struct batch b = {.ids = BUF_INIT(TOUCHED_MAX * (DRIVE_ID_MAX + 2)), .now = mono_now()};
    struct errinfo ei;

    map_filter(ss->known, collect, &b);
    if (b.n > 0) {
        const char *params[] = {buf_cstr(&b.ids)};
        if (pg_run(ss->server->pg, "SELECT drive_sessions_seen(string_to_array($1, ','))", 1, params, NULL, &ei) !=
            ERR_OK)
            LOGW("session", "when sessions were seen last was not written: %s", err_message(&ei));
    }
    buf_done(&b.ids);
    ss->touching = false;
}

static void on_touch(struct timer *t)
{
    struct sessions *ss = container_of(t, struct sessions, touch);
    loop_timer_set(ss->server->loop, t, mono_add(mono_now(), TOUCH_US));
    if (!ss->touching) {
        ss->touching = true;
        coro_spawn(ss->server->loop, write_touched, ss);
    }
}

static MAY_YIELD enum err start(struct server *s, struct errinfo *ei)
{
    (void)ei;
    struct sessions *ss = mem_zalloc(sizeof *ss);
    ss->server = s;
    ss->known = map_new();
    ss->seats = seats_new(s->conf->max_sessions);
    ss->touch.fn = on_touch;
    loop_timer_set(s->loop, &ss->touch, mono_add(mono_now(), TOUCH_US));
    s->sessions = ss;
    return ERR_OK;
}

static bool drop_all(void *arg, struct sv key, void *value)
{
    (void)arg;
    (void)key;
    mem_free(value);
    return false;
}

static MAY_YIELD void stop(struct server *s)
{
    struct sessions *ss = s->sessions;
    loop_timer_stop(&ss->touch);
    write_touched(ss);
    map_filter(ss->known, drop_all, NULL);
    map_free(&ss->known);
    seats_free(&ss->seats);
    MEM_FREE(s->sessions);
}

const struct server_part session_part = {"sessions", start, stop};
