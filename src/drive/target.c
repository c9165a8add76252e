/* Where the parts are. Nothing here opens a connection: target_probe.c does. */
#include "drive/target.h"
#include "base/dotenv.h"
#include "base/log.h"
#include "base/mem.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PASSWORD "load-test-password"

/* part: belongs to the server that TMA_URL names. */
struct setting {
    const char *name;
    size_t offset;
    bool part, secret;
};
static const struct setting settings[] = {
    {"TMA_URL", offsetof(struct target, url), false, false},
    {"DATABASE_URL", offsetof(struct target, database_url), true, false},
    {"REDIS_URL", offsetof(struct target, redis_url), true, false},
    {"TMA_LOAD_S3_ENDPOINT", offsetof(struct target, s3_endpoint), true, false},
    {"TMA_LOAD_S3_BUCKET", offsetof(struct target, s3_bucket), true, false},
    {"TMA_LOAD_S3_ACCESS_KEY", offsetof(struct target, s3_access_key), true, false},
    {"TMA_LOAD_S3_SECRET_KEY", offsetof(struct target, s3_secret_key), true, true},
    {"TMA_LOAD_PASSWORD", offsetof(struct target, password), false, true},
};

/* The values of one source, in the order of settings; NULL: not set there. */
struct source {
    const char *from;
    char *values[ARRAY_LEN(settings)];
};

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
        if (v && *v)
            s->values[i] = mem_strdup(v);
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

bool target_host_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    struct sv h = sv_of(host);
    char bare[64];
    if (h.n >= 2 && h.p[0] == '[' && h.p[h.n - 1] == ']')
        h = (struct sv){h.p + 1, h.n - 2};
    if (h.n == 0 || h.n >= sizeof bare)
        return false;
    memcpy(bare, h.p, h.n);
    bare[h.n] = '\0';
    if (sv_ieq(h, SV("localhost")))
        return true;
    if (inet_pton(AF_INET, bare, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, bare, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
    return false;
}

/* Whether two URLs name one server: same port and path, and the same host or both loopback. */
static bool same_server(const char *a, const char *b)
{
    struct http_url x, y;
    if (http_url_parse(a, &x, NULL))
        return strcmp(a, b) == 0;
    bool same = false;
    if (http_url_parse(b, &y, NULL) == ERR_OK) {
        bool hosts = sv_ieq(sv_of(x.host), sv_of(y.host)) ||
                     (target_host_is_loopback(x.host) && target_host_is_loopback(y.host));
        same = hosts && x.port == y.port && strcmp(x.path, y.path) == 0;
        http_url_done(&y);
    }
    http_url_done(&x);
    return same;
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

/* "postgres://user:secret@host/…": the part between the first ':' after the scheme and the last '@'. */
static void add_url_secret(const char *url)
{
    const char *start = url ? strstr(url, "://") : NULL;
    const char *colon = start ? strchr(start + 3, ':') : NULL;
    const char *at = colon ? strchr(colon, '@') : NULL;
    const char *slash = start ? strchr(start + 3, '/') : NULL;
    if (!at || (slash && slash < at) || at == colon + 1)
        return;
    char *secret = mem_strndup(colon + 1, (size_t)(at - colon) - 1);
    log_add_secret(secret);
    mem_free(secret);
}

enum err target_load(struct target *t, struct errinfo *ei)
{
    memset(t, 0, sizeof *t);
    struct source sources[] = {{.from = "the environment"}, {.from = ".env"}, {.from = ".sim/env"}};
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
        if (settings[i].secret)
            log_add_secret(*field(t, &settings[i]));
    }
    add_url_secret(t->url);
    add_url_secret(t->database_url);
    add_url_secret(t->redis_url);
    if (err)
        target_done(t);
    return err;
}

void target_done(struct target *t)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        MEM_FREE(*field(t, &settings[i]));
    MEM_FREE(t->cafile);
    MEM_FREE(t->allow_host);
}

void target_print(const struct target *t, FILE *out)
{
    struct buf line = BUF_INIT(1024);
    if (t->url && !str_escape(&line, sv_of(t->url), 512))
        fprintf(out, "target: %s (from %s)\n", buf_cstr(&line), t->url_from ? t->url_from : "the command line");
    buf_done(&line);
}

static struct sv bare_host(const char *host)
{
    struct sv h = sv_of(host);
    if (h.n >= 2 && h.p[0] == '[' && h.p[h.n - 1] == ']')
        h = (struct sv){h.p + 1, h.n - 2};
    if (h.n && h.p[h.n - 1] == '.')
        h.n--;
    return h;
}

/* "prod" or "production" as a word of the name: prod.example.com, db-production.lan; not reproduction.lan. */
static bool says_production(struct sv host)
{
    static const char breaks[] = ".-_";
    size_t start = 0;
    for (size_t i = 0; i <= host.n; i++) {
        if (i < host.n && !strchr(breaks, host.p[i]))
            continue;
        struct sv word = {host.p + start, i - start};
        if (sv_ieq(word, SV("prod")) || sv_ieq(word, SV("production")))
            return true;
        start = i + 1;
    }
    return false;
}

static enum err judge_host(const struct target *t, const char *host, struct errinfo *ei)
{
    struct sv h = bare_host(host);
    if (says_production(h))
        return err_set(ei, ERR_SAFETY, "the host " SV_FMT " says that it is production: drivesim never runs against it",
                       SV_ARG(h));
    if (target_host_is_loopback(host) || (t->allow_host && sv_ieq(h, bare_host(t->allow_host))))
        return ERR_OK;
    return err_set(ei, ERR_SAFETY,
                   "the host " SV_FMT
                   " is not this machine: if it is a throwaway server, name it with --allow-host " SV_FMT,
                   SV_ARG(h), SV_ARG(h));
}

enum err target_require_url(const struct target *t, struct errinfo *ei)
{
    struct http_url u;
    struct errinfo why = {0};
    if (!t->url)
        return err_set(ei, ERR_USAGE,
                       "TMA_URL is not set: export TMA_URL=http://127.0.0.1:3200, or start a stack with sim stack up");
    if (http_url_parse(t->url, &u, &why))
        return err_set(ei, ERR_USAGE, "TMA_URL is not a URL that drivesim speaks: %s", err_message(&why));
    enum err err = ERR_OK;
    if (u.user || u.password)
        err = err_set(ei, ERR_USAGE, "TMA_URL must not carry a user name or password: set TMA_LOAD_PASSWORD instead");
    else
        err = judge_host(t, u.host, ei);
    http_url_done(&u);
    return err;
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
