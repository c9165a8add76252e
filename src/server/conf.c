#include "server/conf.h"
#include "base/dotenv.h"
#include "base/mem.h"
#include "base/secret.h"
#include "drive/model.h"
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)

enum kind { TEXT, SECRET, NUMBER, SWITCH };
struct setting {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *fallback; /* NULL: must be set */
    const char *takes;
    int64_t max; /* of a NUMBER */
};
#define AT(field) offsetof(struct server_conf, field)
static const struct setting settings[] = {
    {"DATABASE_URL", TEXT, AT(database_url), NULL, "postgresql://user:password@host:port/database", 0},
    {"REDIS_URL", TEXT, AT(redis_url), NULL, "redis://host:port/0", 0},
    {"JWT_SECRET", SECRET, AT(jwt_secret), NULL, "a long random string, such as `openssl rand -hex 32` prints", 0},
    {"FILE_ENCRYPTION_KEY", SECRET, AT(file_encryption_key), NULL, "32 bytes, as `openssl rand -base64 32` prints them",
     0},
    {"PORT", NUMBER, AT(port), "3200", "a port number", 65535},
    {"LISTEN", TEXT, AT(listen), "127.0.0.1", "an address of this machine", 0},
    {"APP_ENV", TEXT, AT(app_env), "development", "development or production", 0},
    {"BACKEND_URL", TEXT, AT(backend_url), "", "the URL by which clients reach the server", 0},
    {"FORCE_INSECURE_COOKIES", SWITCH, AT(insecure_cookies), "false", "true or false", 0},
    {"LOG_LEVEL", TEXT, AT(log_level), "warn", "error, warn, info or debug", 0},
    {"UPLOAD_MEMORY_MB", NUMBER, AT(upload_memory_mb), "512", "megabytes", 1 << 20},
    {"MAX_UPLOAD_MB", NUMBER, AT(max_upload_mb), "10240", "megabytes", 1 << 30},
};

const struct server_conf server_conf_unset = {
    .port = -1,
    .max_upload_mb = -1,
    .upload_memory_mb = -1,
    .request_budget = DRIVE_REQUESTS_PER_15MIN,
    .upload_budget = DRIVE_UPLOADS_PER_30MIN,
    .login_budget = DRIVE_LOGINS_PER_15MIN,
    .storage_test_budget = 20,
    .stream_limit = DRIVE_STREAMS_PER_LOGIN,
    .stream_backlog_bytes = 256 << 10,
    .token_lifetime_us = 7 * 24 * 3600 * US_PER_S,
    .idle_timeout_us = 75 * US_PER_S,
    .head_timeout_us = 15 * US_PER_S,
    .body_timeout_us = 60 * US_PER_S,
    .wait_us = 10 * US_PER_S,
    .db_timeout_us = 8 * US_PER_S,
    .lock_min_us = 30 * US_PER_S,
    .keepalive_us = 30 * US_PER_S,
    .bcrypt_cost = 5,
};

/* The values that .env gives, in the order of settings. */
struct dotenv {
    char *values[ARRAY_LEN(settings)];
};

static char **slot_of(void *arg, struct sv name)
{
    struct dotenv *d = arg;
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (sv_eq_cstr(name, settings[i].name))
            return &d->values[i];
    return NULL;
}

static void *field(struct server_conf *c, const struct setting *s)
{
    return (char *)c + s->offset;
}

static bool is_unset(struct server_conf *c, const struct setting *s)
{
    if (s->kind == TEXT || s->kind == SECRET)
        return *(char **)field(c, s) == NULL;
    return s->kind == SWITCH ? !*(bool *)field(c, s) : *(int64_t *)field(c, s) < 0;
}

static bool parse_switch(const char *v, bool *out)
{
    *out = strcmp(v, "true") == 0 || strcmp(v, "1") == 0;
    return *out || strcmp(v, "false") == 0 || strcmp(v, "0") == 0;
}

/* Strings are copied and noted in c->owned, as those of the command line aren't ours to free. */
static enum err set(struct server_conf *c, const struct setting *s, size_t index, const char *v, struct errinfo *ei)
{
    bool fits = true;
    int64_t n = 0;
    switch (s->kind) {
    case TEXT:
    case SECRET:
        c->owned[index] = mem_strdup(v);
        *(const char **)field(c, s) = c->owned[index];
        break;
    case NUMBER:
        fits = sv_to_i64(sv_of(v), &n) && n >= 0 && n <= s->max;
        *(int64_t *)field(c, s) = n;
        break;
    case SWITCH:
        fits = parse_switch(v, field(c, s));
        break;
    }
    return fits ? ERR_OK : err_set(ei, ERR_USAGE, "%s=%s: it takes %s", s->name, v, s->takes);
}

enum err conf_load(struct server_conf *c, struct errinfo *ei)
{
    _Static_assert(ARRAY_LEN(settings) <= ARRAY_LEN(((struct server_conf *)0)->owned), "a place for each string");
    struct dotenv file = {{NULL}};
    enum err err = dotenv_read(".env", slot_of, &file, ei);

    for (size_t i = 0; i < ARRAY_LEN(settings) && !err; i++) {
        const struct setting *s = &settings[i];
        const char *env = getenv(s->name), *v = env && *env ? env : file.values[i];
        if (is_unset(c, s)) {
            if (!v && !s->fallback)
                err = err_set(ei, ERR_USAGE, "%s is not set: it takes %s", s->name, s->takes);
            else
                err = set(c, s, i, v ? v : s->fallback, ei);
        }
        if (!err && s->kind == SECRET)
            secret_add(sv_of(*(const char **)field(c, s)));
        else if (!err && s->kind == TEXT)
            secret_add_url(*(const char **)field(c, s));
    }
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        mem_free(file.values[i]);
    c->max_upload_bytes = c->max_upload_mb * MIB;
    c->upload_memory_bytes = c->upload_memory_mb * MIB;
    return err;
}

void conf_done(struct server_conf *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->owned); i++)
        MEM_FREE(c->owned[i]);
}
