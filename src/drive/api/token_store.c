/* Programs that run side by side share the file without a lock: each writes what it made itself over what it finds
 * then, whole. At worst an update is lost, and a login signs in once more. */
#include "drive/api/token_store.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/private_file.h"
#include "drive/limits.h"
#include "drive/target.h"
#include "drive/wire.h"
#include <limits.h>
#include <string.h>

#define FILE_MAX       (8u << 20)
#define TOKEN_MAX      4096
#define LOGIN_MAX      254
#define UNTOLD_LIFE_US (7 * 24 * 3600 * US_PER_S) /* TMA Cloud's */
#define ABSENT_US      (15 * 60 * US_PER_S)       /* the limiters' window: a try in each is affordable */
#define CLOCK_SLIP_US  (60 * US_PER_S)            /* a stamp so far ahead is another clock's */
#define SALT_HEX       32
#define PROOF_HEX      (SALT_HEX + 2 * DIGEST_SHA256_LEN)

struct entry {
    char *login, *token;       /* token NULL: the server took no such login with this password */
    char proof[PROOF_HEX + 1]; /* salt and digest of server, login and password */
    struct wall since;
    unsigned caps;
    bool locks_seen, from_file, made; /* made: by this program, to be written */
};
struct token_store {
    struct map *sessions; /* login -> struct entry */
    struct map *refused;  /* a set of tokens, which must not come back from the file */
    char *server;         /* the file's: URL without user; NULL: nothing is kept */
    char *folder;         /* NULL: nowhere to keep it */
    char name[24], why[200];
    bool changed;
    bool another; /* a session was refused: the server may hold other accounts now than when the file was written */
};

static void entry_free(struct entry *e)
{
    mem_free(e->login);
    mem_free(e->token);
    mem_free(e);
}

static bool drop_entry(void *arg, struct sv key, void *value)
{
    (void)arg, (void)key;
    entry_free(value);
    return false;
}

static void sessions_free(struct map **m)
{
    map_filter(*m, drop_entry, NULL);
    map_free(m);
}

struct token_store *token_store_new(void)
{
    struct token_store *s = mem_zalloc(sizeof *s);
    s->sessions = map_new();
    s->refused = map_new();
    return s;
}

void token_store_free(struct token_store **s)
{
    if (!*s)
        return;
    sessions_free(&(*s)->sessions);
    map_free(&(*s)->refused);
    mem_free((*s)->server);
    mem_free((*s)->folder);
    MEM_FREE(*s);
}

/* ---- what an entry is worth ---- */

static void prove(const struct token_store *s, const char *salt, const char *login, const char *password,
                  char proof[PROOF_HEX + 1])
{
    unsigned char sum[DIGEST_SHA256_LEN];
    struct buf text = BUF_INIT(64u << 10);
    memcpy(proof, salt, SALT_HEX);
    if (buf_appendf(&text, "%s\n%s\n%s", s->server ? s->server : "", login, password ? password : ""))
        buf_reset(&text); /* no password is that long: one digest for all that are */
    digest_hmac_sha256(salt, SALT_HEX, buf_cstr(&text), text.len, sum);
    digest_hex(proof + SALT_HEX, sum, sizeof sum);
    buf_done(&text);
}

static bool proven(const struct token_store *s, const struct entry *e, const char *password)
{
    char proof[PROOF_HEX + 1];
    prove(s, e->proof, e->login, password, proof);
    return digest_equal(proof, e->proof, PROOF_HEX);
}

static bool young(const char *token, struct wall since)
{
    int64_t life = wire_token_life_us(sv_of(token)), age = wall_now().us - since.us;
    int64_t most = !token ? ABSENT_US : (life < 0 ? UNTOLD_LIFE_US : life) / 2;
    return age > -CLOCK_SLIP_US && age < most;
}

static bool usable(const struct token_store *s, const struct entry *e, const char *password)
{
    return young(e->token, e->since) && proven(s, e, password);
}

/* ---- the file ---- */

/* What goes into a header must not end it. */
static bool is_token(const char *t)
{
    size_t n = 0;
    while (t && n <= TOKEN_MAX && t[n] > ' ' && t[n] < 0x7f && t[n] != ';')
        n++;
    return t && n > 0 && n <= TOKEN_MAX && t[n] == '\0';
}

static bool is_ours(const char *login)
{
    return login && strlen(login) <= LOGIN_MAX && sv_ends(sv_of(login), SV(DRIVE_EMAIL_DOMAIN));
}

static bool is_proof(const char *p)
{
    return p && strlen(p) == PROOF_HEX && strspn(p, "0123456789abcdef") == PROOF_HEX;
}

/* A login that was there once is not made absent by a wrong password. */
static void add_entry(struct map *m, struct entry *e)
{
    struct entry *before = map_get(m, sv_of(e->login)), *out = before && before->token && !e->token ? e : before;
    if (out != e)
        map_put(m, sv_of(e->login), e);
    if (out)
        entry_free(out);
}

static void read_entry(struct map *m, const struct json *j)
{
    const char *login = json_str(json_get(j, "login")), *token = json_str(json_get(j, "token"));
    const char *proof = json_str(json_get(j, "proof"));
    int64_t since_s;
    bool absent = json_is_null(json_get(j, "token"));
    if (!is_ours(login) || !(absent || is_token(token)) || !is_proof(proof) ||
        !json_i64(json_get(j, "since"), &since_s) || since_s < 0 || since_s > INT64_C(1) << 40)
        return;
    struct entry *e = mem_zalloc(sizeof *e);
    e->login = mem_strdup(login);
    e->token = mem_strdup(token);
    memcpy(e->proof, proof, PROOF_HEX);
    e->since.us = since_s * US_PER_S;
    e->caps = UINT_MAX;
    e->from_file = true;
    add_entry(m, e);
}

static void read_text(struct map *m, struct sv text)
{
    struct json *root = NULL;
    if (json_parse(text.p, text.n, &root, NULL))
        return;
    for (const struct json *j = json_first(json_get(root, "sessions")); j; j = json_next(j))
        read_entry(m, j);
    json_free(&root);
}

size_t token_store_read(struct token_store *s, struct sv text)
{
    read_text(s->sessions, text);
    return map_count(s->sessions);
}

static bool not_refused(void *arg, struct sv key, void *value)
{
    const struct token_store *s = arg;
    const struct entry *e = value;
    bool stale = e->token ? map_get(s->refused, sv_of(e->token)) != NULL : s->another;
    return young(e->token, e->since) && !stale ? true : drop_entry(NULL, key, value);
}

/* What this program made goes over what is there. */
static bool lay_over(void *arg, struct sv key, void *value)
{
    const struct entry *e = value, *there = map_get(arg, key);
    if (!e->made || (there && there->since.us > e->since.us))
        return true;
    struct entry *copy = mem_alloc(sizeof *copy);
    *copy = *e;
    copy->login = mem_strdup(e->login);
    copy->token = mem_strdup(e->token);
    add_entry(arg, copy);
    return true;
}

static bool write_entry(void *arg, struct sv key, void *value)
{
    struct jsonw *w = arg;
    const struct entry *e = value;
    jsonw_object(w, NULL);
    jsonw_sv(w, "login", key);
    jsonw_str(w, "token", e->token);
    jsonw_str(w, "proof", e->proof);
    jsonw_i64(w, "since", e->since.us / US_PER_S);
    jsonw_end_object(w);
    return true;
}

static enum err write_file(struct token_store *s, struct map *all, struct errinfo *ei)
{
    struct buf text = BUF_INIT(FILE_MAX);
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "server", s->server);
    jsonw_array(&w, "sessions");
    map_filter(all, write_entry, &w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    enum err err = w.err ? err_set(ei, w.err, "they are too many")
                         : private_file_replace(s->folder, s->name, (struct sv){buf_cstr(&text), text.len}, ei);
    buf_done(&text);
    return err;
}

void token_store_save(struct token_store *s)
{
    struct buf text = BUF_INIT(FILE_MAX);
    struct errinfo ei;
    if (!s->folder || !s->changed)
        return;
    struct map *all = map_new();
    if (private_file_read(s->folder, s->name, &text, &ei) == ERR_OK)
        read_text(all, (struct sv){buf_cstr(&text), text.len});
    buf_done(&text);
    map_filter(all, not_refused, s);
    map_filter(s->sessions, lay_over, all);
    if (map_count(all) == 0)
        private_file_remove(s->folder, s->name);
    else if (write_file(s, all, &ei))
        LOGI("sessions", "not kept for the next command: %s", err_message(&ei));
    s->changed = false;
    sessions_free(&all);
}

/* ---- where ---- */

static void choose_file(struct token_store *s, const struct target *t)
{
    unsigned char sum[DIGEST_SHA256_LEN];
    char hex[17], folder[PATH_MAX];
    struct http_url u;
    struct buf server = BUF_INIT(16u << 10);
    if (!t->url || http_url_parse(t->url, &u, NULL)) {
        str_format(s->why, sizeof s->why, "this kind of server has no sessions");
        return;
    }
    if (buf_appendf(&server, "%s://%s:%d%s", u.scheme, u.host, u.port, u.path) == ERR_OK) {
        digest_sha256(buf_cstr(&server), server.len, sum);
        digest_hex(hex, sum, sizeof hex / 2);
        str_format(s->name, sizeof s->name, "%s.json", hex);
        s->server = buf_take(&server, NULL);
    }
    http_url_done(&u);
    buf_done(&server);
    if (t->own_stack)
        s->folder = mem_strdup(".sim/sessions");
    else if (private_folder_of_user(folder, sizeof folder, "XDG_STATE_HOME", ".local/state"))
        s->folder = mem_strdup(folder);
    else
        str_format(s->why, sizeof s->why, "there is no home folder, nor XDG_STATE_HOME");
}

void token_store_open(struct token_store *s, const struct target *target, bool afresh)
{
    choose_file(s, target);
    if (!s->folder || !s->server || afresh)
        return;
    struct buf text = BUF_INIT(FILE_MAX);
    struct errinfo ei;
    enum err err = private_file_read(s->folder, s->name, &text, &ei);
    if (!err) {
        token_store_read(s, (struct sv){buf_cstr(&text), text.len});
    } else if (err != ERR_NOTFOUND) {
        str_format(s->why, sizeof s->why, "%s", err_message(&ei));
        LOGW("sessions", "those kept in %s are not used: %s", s->folder, s->why);
    }
    buf_done(&text);
}

/* ---- sessions ---- */

bool token_store_find(struct token_store *s, const char *login, const char *password, struct kept_session *out)
{
    const struct entry *e = map_get(s->sessions, sv_of(login));
    if (!e || !e->token || !usable(s, e, password))
        return false;
    *out = (struct kept_session){e->token, e->since, e->caps, e->locks_seen};
    return true;
}

bool token_store_absent(struct token_store *s, const char *login, const char *password)
{
    const struct entry *e = map_get(s->sessions, sv_of(login));
    return e && !e->token && usable(s, e, password);
}

bool token_store_take(struct token_store *s, const char *login)
{
    struct entry *e = map_get(s->sessions, sv_of(login));
    bool first = e && e->from_file;
    if (first)
        e->from_file = false;
    return first;
}

void token_store_put(struct token_store *s, const char *login, const char *password, const struct kept_session *k)
{
    unsigned char raw[SALT_HEX / 2];
    char salt[SALT_HEX + 1];
    struct entry *e = mem_zalloc(sizeof *e);
    e->login = mem_strdup(login);
    e->token = mem_strdup(k->token);
    e->since = k->since;
    e->caps = k->caps;
    e->locks_seen = k->locks_seen;
    e->made = is_ours(login) && (!k->token || is_token(k->token));
    digest_random(raw, sizeof raw);
    digest_hex(salt, raw, sizeof raw);
    prove(s, salt, login, password, e->proof);
    s->changed |= e->made;
    add_entry(s->sessions, e);
}

struct exchange {
    struct token_store *store;
    const char *before, *token; /* token NULL: no more */
    struct wall since;
};

static bool exchange_one(void *arg, struct sv key, void *value)
{
    const struct exchange *x = arg;
    struct entry *e = value;
    if (!e->token || strcmp(e->token, x->before) != 0)
        return true;
    x->store->changed = true;
    if (!x->token) {
        map_put(x->store->refused, sv_of(x->before), x->store);
        return drop_entry(NULL, key, value);
    }
    mem_free(e->token);
    e->token = mem_strdup(x->token);
    e->since = x->since;
    e->made = is_ours(e->login) && is_token(e->token);
    return true;
}

void token_store_renew(struct token_store *s, const char *before, const char *token, struct wall since)
{
    map_filter(s->sessions, exchange_one, &(struct exchange){s, before, token, since});
}

struct seeking {
    struct sv token;
    bool there;
};

static bool seek(void *arg, struct sv key, void *value)
{
    struct seeking *x = arg;
    const struct entry *e = value;
    (void)key;
    x->there |= e->token && is_ours(e->login) && sv_eq_cstr(x->token, e->token);
    return true;
}

bool token_store_keeps(struct token_store *s, struct sv token)
{
    struct seeking x = {.token = token};
    if (s->folder)
        map_filter(s->sessions, seek, &x);
    return x.there;
}

static bool is_session(void *arg, struct sv key, void *value)
{
    const struct entry *e = value;
    return e->token || e->made ? true : drop_entry(arg, key, value);
}

void token_store_refused(struct token_store *s, const char *token)
{
    s->another = true;
    map_filter(s->sessions, is_session, NULL);
    token_store_drop(s, token);
}

void token_store_drop(struct token_store *s, const char *token)
{
    char *copy = mem_strdup(token); /* it may be the entry's own */
    map_filter(s->sessions, exchange_one, &(struct exchange){.store = s, .before = copy});
    mem_free(copy);
}

void token_store_forget(struct token_store *s)
{
    map_filter(s->sessions, drop_entry, NULL);
    s->changed = false;
    if (s->folder)
        private_file_remove(s->folder, s->name);
}

struct looking {
    const struct token_store *store;
    const char *password;
    struct token_store_view *out;
};

static bool look_at(void *arg, struct sv key, void *value)
{
    const struct looking *l = arg;
    const struct entry *e = value;
    (void)key;
    if (e->token) {
        l->out->all++;
        l->out->usable += usable(l->store, e, l->password);
    }
    return true;
}

void token_store_look(struct token_store *s, const char *password, struct token_store_view *out)
{
    *out = (struct token_store_view){.folder = s->folder};
    snprintf(out->why, sizeof out->why, "%s", s->why);
    map_filter(s->sessions, look_at, &(struct looking){s, password, out});
}
