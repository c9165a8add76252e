/* Where the parts are. Nothing here opens a connection: target_probe.c does. */
#include "drive/target.h"
#include "base/dotenv.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "drive/api/scheme.h"
#include "drive/limits.h"
#include "net/guard.h"
#include "store/kv.h"
#include "store/pg_url.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PASSWORD "load-test-password"
#define URL_MAX          (16 * 1024)
#define USERS_FILE_MAX   (256 * 1024)

/* part: belongs to the server that TMA_URL names. */
struct setting {
    const char *name;
    size_t offset;
    bool part;
    enum {
        PLAIN,
        ADDRESS,
        KEY,
        SECRET
    } kind; /* an address may hold a secret; only a SECRET keeps blanks at its ends */
};
static const struct setting settings[] = {
    {"TMA_URL", offsetof(struct target, url), false, ADDRESS},
    {"DATABASE_URL", offsetof(struct target, database_url), true, ADDRESS},
    {"REDIS_URL", offsetof(struct target, redis_url), true, ADDRESS},
    {"TMA_LOAD_S3_ENDPOINT", offsetof(struct target, s3_endpoint), true, ADDRESS},
    {"TMA_LOAD_S3_BUCKET", offsetof(struct target, s3_bucket), true, PLAIN},
    {"TMA_LOAD_S3_ACCESS_KEY", offsetof(struct target, s3_access_key), true, KEY},
    {"TMA_LOAD_S3_SECRET_KEY", offsetof(struct target, s3_secret_key), true, SECRET},
    {"TMA_LOAD_PASSWORD", offsetof(struct target, password), false, SECRET},
    {"TMA_LOAD_SSH_KEY", offsetof(struct target, ssh_key), false, PLAIN},
    {"TMA_LOAD_SSH_PASSPHRASE", offsetof(struct target, ssh_passphrase), false, SECRET},
    {"TMA_LOAD_PORTAL_LOGIN", offsetof(struct target, portal_login), false, PLAIN},
    {"TMA_LOAD_KNOWN_HOSTS", offsetof(struct target, known_hosts), false, PLAIN},
};

/* The values of one source, in the order of settings; NULL: not set there. */
struct source {
    const char *from;
    char *values[ARRAY_LEN(settings)];
};

static const char stack_file[] = ".sim/env";

static char **field(struct target *t, const struct setting *s)
{
    return (char **)(void *)((char *)t + s->offset);
}

static void source_done(struct source *s)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        MEM_FREE(s->values[i]);
}

static void source_of_environment(struct source *s)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        const char *v = getenv(settings[i].name);
        struct sv value = v ? sv_trim(sv_of(v)) : (struct sv){"", 0};
        if (value.n) /* a password may have blanks at its ends */
            s->values[i] = settings[i].kind == SECRET ? mem_strdup(v) : mem_strndup(value.p, value.n);
    }
}

static char **slot_of(void *arg, struct sv name)
{
    struct source *s = arg;
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (sv_eq_cstr(name, settings[i].name))
            return &s->values[i];
    return NULL;
}

static enum err source_of_file(struct source *s, struct errinfo *ei)
{
    return dotenv_read(s->from, slot_of, s, ei);
}

void target_place(const char *url, char *dst, size_t n)
{
    const struct scheme *row;
    struct http_url u;
    dst[0] = '\0';
    if (!url || scheme_of(url, NULL, &row, &u, NULL))
        return;
    struct sv path = sv_of(u.path);
    while (path.n > 0 && path.p[path.n - 1] == '/')
        path.n--;
    int len = snprintf(dst, n, "%s:%u" SV_FMT, guard_is_loopback(u.host) ? "localhost" : u.host, (unsigned)u.port,
                       SV_ARG(path));
    if (len < 0 || (size_t)len >= n)
        dst[0] = '\0';
    for (char *c = dst; *c && *c != ':' && *c != '/'; c++)
        *c = (char)tolower((unsigned char)*c);
    http_url_done(&u);
}

/* Whether two URLs name one server. */
static bool same_server(const char *a, const char *b)
{
    char x[TARGET_PLACE_MAX + 1], y[TARGET_PLACE_MAX + 1];
    target_place(a, x, sizeof(x));
    target_place(b, y, sizeof(y));
    return x[0] ? strcmp(x, y) == 0 : strcmp(a, b) == 0;
}

static void take_from(struct target *t, struct source *s)
{
    const char *own_url = s->values[0];
    bool foreign = own_url && t->url && !same_server(own_url, t->url);
    if (foreign)
        LOGI("target",
             "TMA_URL of %s is in force: the database, Redis and bucket of %s belong to another server and "
             "are left out",
             t->url_from, s->from);
    t->own_stack = own_url && !foreign && strcmp(s->from, stack_file) == 0;
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        char **dst = field(t, &settings[i]);
        if (*dst || !s->values[i] || (foreign && settings[i].part))
            continue;
        *dst = s->values[i];
        s->values[i] = NULL;
        if (i == 0)
            t->url_from = s->from;
    }
}

/* What others' variables hold: libraries and tools read them, and quote them. */
static void add_foreign_secrets(void)
{
    static const char *const plain[] = {"PGPASSWORD", "JWT_SECRET", "FILE_ENCRYPTION_KEY", "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN"};
    static const char *const urls[] = {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy",
                                       "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY"};
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        secret_add(sv_of(getenv(plain[i])));
    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        secret_add_url(getenv(urls[i]));
}

enum err target_load(struct target *t, struct errinfo *ei)
{
    memset(t, 0, sizeof *t);
    add_foreign_secrets();
    struct source sources[] = {{.from = "the environment"}, {.from = ".env"}, {.from = stack_file}};
    source_of_environment(&sources[0]);
    enum err err = source_of_file(&sources[1], ei);
    if (!err)
        err = source_of_file(&sources[2], ei);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        if (!err)
            take_from(t, &sources[i]);
        source_done(&sources[i]);
    }
    if (!t->password)
        t->password = mem_strdup(DEFAULT_PASSWORD);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        if (settings[i].kind == ADDRESS)
            secret_add_url(*field(t, &settings[i]));
        else if (settings[i].kind != PLAIN)
            secret_add(sv_of(*field(t, &settings[i])));
    }
    if (err)
        target_done(t);
    return err;
}

/* ---- given logins ---- */

static enum err add_login(struct target *t, struct sv name, struct sv password, bool has_password, struct errinfo *ei)
{
    if (name.n == 0 || name.n > TARGET_LOGIN_MAX)
        return err_set(ei, ERR_USAGE, "a user's name has 1 to %d bytes", TARGET_LOGIN_MAX);
    for (size_t i = 0; i < t->n_logins; i++) {
        if (sv_eq_cstr(name, t->logins[i].name))
            return ERR_OK;
    }
    t->logins = mem_realloc_array(t->logins, t->n_logins + 1, sizeof *t->logins);
    struct target_login *l = &t->logins[t->n_logins++];
    l->name = mem_strndup(name.p, name.n);
    l->password = has_password ? mem_strndup(password.p, password.n) : NULL;
    if (password.n)
        secret_add_basic(name, password);
    return ERR_OK;
}

/* "user:password", "user password", "user" */
static enum err users_line(struct target *t, struct sv line, const char *file, int number, struct errinfo *ei)
{
    struct errinfo why = {0};
    struct sv text = sv_trim(line);
    size_t n = 0;
    if (text.n == 0 || text.p[0] == '#')
        return ERR_OK;
    if (memchr(text.p, '\0', text.n))
        return err_set(ei, ERR_USAGE, "%s line %d: a byte of 0: this is no text", file, number);
    while (n < text.n && !strchr(": \t", text.p[n]))
        n++;
    bool has = n < text.n;
    struct sv password = has ? (struct sv){text.p + n + 1, text.n - n - 1} : (struct sv){"", 0};
    if (has && text.p[n] != ':')
        password = sv_trim(password);
    if (add_login(t, (struct sv){text.p, n}, password, has, &why))
        return err_set(ei, ERR_USAGE, "%s line %d: %s", file, number, err_message(&why));
    return ERR_OK;
}

static enum err users_of_file(struct target *t, const char *file, struct errinfo *ei)
{
    struct buf text = BUF_INIT(USERS_FILE_MAX);
    enum err err = file_read_text(file, &text, ERR_USAGE, ei);
    struct sv rest = {buf_cstr(&text), text.len}, line;
    for (int i = 1; !err && file_line(&rest, &line); i++)
        err = users_line(t, line, file, i, ei);
    buf_done(&text);
    return err;
}

/* A name and its password leave the URL, so that nothing that prints it can tell them. */
static enum err take_credentials(struct target *t, const struct http_url *u, struct errinfo *ei)
{
    enum err err = add_login(t, sv_of(u->user), sv_of(u->password), u->password != NULL, ei);
    if (!err) {
        const char *scheme_end = strstr(t->url, "://"), *at = strchr(scheme_end + 3, '@');
        const char *slash = strchr(scheme_end + 3, '/'), *next;
        while ((next = strchr(at + 1, '@')) && (!slash || next < slash)) /* a raw '@' in the password */
            at = next;
        struct buf url = BUF_INIT(URL_MAX);
        err = buf_append(&url, t->url, (size_t)(scheme_end + 3 - t->url));
        if (!err)
            err = buf_append_str(&url, at + 1);
        mem_free(t->url);
        t->url = buf_take(&url, NULL);
    }
    return err;
}

enum err target_settle(struct target *t, const char *users_file, struct errinfo *ei)
{
    const struct scheme *row;
    struct http_url u;
    enum err err = ERR_OK;
    if (!t->url || scheme_of(t->url, t->dialect, &row, &u, NULL))
        return ERR_OK;
    if (!row->logins_given && users_file)
        err =
            err_set(ei, ERR_USAGE, "--users is for servers that sign nobody up: this one's accounts are made by seed");
    if (!err && row->logins_given && u.user)
        err = take_credentials(t, &u, ei);
    if (!err && row->logins_given && users_file)
        err = users_of_file(t, users_file, ei);
    if (!err && row->logins_given && t->n_logins == 0)
        err = add_login(t, SV("anonymous"), SV(""), false, ei);
    http_url_done(&u);
    return err;
}

bool target_shows_inside(const struct target *t)
{
    return t->n_logins == 0;
}

bool target_logins_given(const struct target *t)
{
    return t->n_logins > 0 && !t->logins_made;
}

const char *target_password(const struct target *t, const char *login)
{
    for (size_t i = 0; i < t->n_logins; i++) {
        if (strcmp(t->logins[i].name, login) == 0)
            return t->logins[i].password;
    }
    return t->password;
}

bool target_owner(const struct target *t, unsigned k, char *dst, size_t n)
{
    if (target_logins_given(t) && k >= t->n_logins)
        return false;
    if (target_logins_given(t))
        snprintf(dst, n, "%s", t->logins[k].name);
    else if (k == 0)
        snprintf(dst, n, "owner" DRIVE_EMAIL_DOMAIN);
    else
        snprintf(dst, n, "owner-%u" DRIVE_EMAIL_DOMAIN, k + 1);
    return true;
}

void target_done(struct target *t)
{
    for (size_t i = 0; i < t->n_logins; i++) {
        mem_free(t->logins[i].name);
        mem_free(t->logins[i].password);
    }
    MEM_FREE(t->logins);
    t->n_logins = 0;
    MEM_FREE(t->dialect);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        MEM_FREE(*field(t, &settings[i]));
    MEM_FREE(t->cafile);
}

void target_print(const struct target *t, FILE *out)
{
    char url[512];
    if (t->url)
        fprintf(out, "target: %s (from %s)\n", str_shown(url, sizeof url, sv_of(t->url)),
                t->url_from ? t->url_from : "the command line");
}

enum err target_require_url(const struct target *t, struct errinfo *ei)
{
    const struct scheme *row;
    struct http_url u;
    struct errinfo why = {0};
    if (!t->url)
        return err_set(ei, ERR_USAGE,
                       "TMA_URL is not set, and no stack runs in this folder: start one with sim stack up, or export "
                       "TMA_URL=http://127.0.0.1:3200");
    if (scheme_of(t->url, t->dialect, &row, &u, &why))
        return err_set(ei, ERR_USAGE, "TMA_URL cannot be used: %s", err_message(&why));
    enum err err = ERR_OK;
    if (u.user || u.password)
        err = err_set(ei, ERR_USAGE, "TMA_URL must not carry a user name or password: set TMA_LOAD_PASSWORD instead");
    else
        err = guard_judge(u.host, ei);
    http_url_done(&u);
    return err;
}

/* name: the variable; its sentence comes first, so that people know where to look. */
static enum err judge_part(const char *name, enum err err, const struct errinfo *why, struct errinfo *ei)
{
    return err ? err_set(ei, err, "%s: %s", name, err_message(why)) : ERR_OK;
}

enum err target_judge_parts(const struct target *t, struct errinfo *ei)
{
    struct errinfo why = {0};
    struct http_url u = {0};
    enum err err = ERR_OK;
    if (t->database_url)
        err = judge_part("DATABASE_URL", pg_url_judge(t->database_url, &why), &why, ei);
    if (!err && t->redis_url)
        err = judge_part("REDIS_URL", kv_url_judge(t->redis_url, &why), &why, ei);
    if (!err && t->s3_endpoint)
        err = judge_part("TMA_LOAD_S3_ENDPOINT", http_url_parse(t->s3_endpoint, &u, &why), &why, ei);
    if (!err && t->s3_endpoint)
        err = judge_part("TMA_LOAD_S3_ENDPOINT", guard_judge(u.host, &why), &why, ei);
    http_url_done(&u);
    return err;
}

bool target_is_local(const struct target *t)
{
    const struct scheme *row;
    struct http_url u;
    if (!t->url || scheme_of(t->url, t->dialect, &row, &u, NULL))
        return false;
    bool local = guard_is_loopback(u.host);
    http_url_done(&u);
    return local;
}

bool target_has_s3(const struct target *t)
{
    return t->s3_endpoint && t->s3_bucket && t->s3_access_key && t->s3_secret_key;
}

struct blob_conf target_blob_conf(const struct target *t)
{
    return (struct blob_conf){
        .endpoint = t->s3_endpoint,
        .bucket = t->s3_bucket,
        .access_key = t->s3_access_key,
        .secret_key = t->s3_secret_key,
        .path_style = true,
    };
}
