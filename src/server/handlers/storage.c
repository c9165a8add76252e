/* The bucket's settings: read, tried out, saved. Keys go in and never come out. */
#include "server/objects/storage.h"
#include "base/mem.h"
#include "server/http/fields.h"
#include "server/http/route.h"

#include <string.h>

/* The request's settings, borrowed from its JSON. Answers 422 and returns false when something is missing or wrong. */
static MAY_YIELD bool read_settings(struct request *r, const struct json *j, struct storage_settings *out)
{
    const struct {
        const char *field;
        const char **value;
        bool optional;
    } fields[] = {
        {"endpoint", &out->endpoint, false},
        {"region", &out->region, true},
        {"bucket", &out->bucket, false},
        {"accessKeyId", &out->access_key, false},
        {"secretAccessKey", &out->secret_key, false},
    };
    const char *provider = json_str(json_get(j, "provider"));
    *out = (struct storage_settings){.path_style = json_bool(json_get(j, "forcePathStyle"), true)};
    if (provider && strcmp(provider, "s3") != 0) {
        reply_validation(r, "provider", "provider must be \"s3\"");
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct json *v = json_get(j, fields[i].field);
        const char *text = json_str(v);
        if (text && *text) {
            *fields[i].value = text;
        } else if (!fields[i].optional || (!text && !json_is_null(v))) {
            reply_validation(r, fields[i].field, "%s must be a text that is not empty", fields[i].field);
            return false;
        }
    }
    return true;
}

/* A bucket that cannot be used is the request's fault, not the server's: the reason goes back, never the keys. */
static MAY_YIELD void reply_unusable(struct request *r, const struct errinfo *ei)
{
    if (ei->code == ERR_STORE || ei->code == ERR_USAGE)
        reply_message(r, 422, "STORAGE_TEST_FAILED", "The bucket cannot be used: %s", err_message(ei));
    else
        reply_error(r, ei);
}

static MAY_YIELD void reply_settings(struct request *r)
{
    struct buf json = BUF_INIT(64 << 10);
    struct jsonw w;
    int64_t version = 0;
    const struct storage_settings *s = storage_current(r->server, &version);
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "configured", s != NULL);
    jsonw_i64(&w, "version", version);
    if (s) {
        jsonw_str(&w, "provider", "s3");
        jsonw_str(&w, "endpoint", s->endpoint);
        jsonw_str(&w, "region", s->region);
        jsonw_str(&w, "bucket", s->bucket);
        jsonw_bool(&w, "forcePathStyle", s->path_style);
        jsonw_bool(&w, "hasCredentials", true);
    }
    jsonw_end_object(&w);
    reply_json(r, 200, &json);
    buf_done(&json);
}

static MAY_YIELD void handle_get(struct request *r)
{
    struct errinfo ei;
    if (storage_refresh(r->server, &ei) == ERR_OK)
        reply_settings(r);
    else
        reply_error(r, &ei);
}

static MAY_YIELD void handle_test(struct request *r)
{
    struct storage_settings want;
    struct json *j = NULL;
    struct errinfo ei = {0};
    if (req_json(r, &j) != ERR_OK || !read_settings(r, j, &want))
        return;
    if (storage_test(r->server, &want, &ei) == ERR_OK)
        reply_text(r, 200, "application/json; charset=utf-8", SV("{\"ok\":true}"));
    else
        reply_unusable(r, &ei);
}

static MAY_YIELD void reply_stale(struct request *r)
{
    struct buf json = BUF_INIT(4096);
    struct jsonw w;
    int64_t version = 0;
    storage_current(r->server, &version);
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", "Somebody else changed the storage settings; read them again");
    jsonw_str(&w, "error", "VERSION_CONFLICT");
    jsonw_i64(&w, "currentVersion", version);
    jsonw_end_object(&w);
    reply_json(r, 409, &json);
    buf_done(&json);
}

/* The version that the change was made from. It may be left out while nothing is saved. */
static bool read_version(struct request *r, const struct json *j, int64_t *version)
{
    int64_t current = 0;
    bool saved = storage_current(r->server, &current) != NULL;
    const struct json *v = json_get(j, "version");
    *version = current;
    return json_i64(v, version) || (json_is_null(v) && !saved);
}

static MAY_YIELD void handle_put(struct request *r)
{
    struct storage_settings want;
    struct json *j = NULL;
    struct errinfo ei = {0};
    int64_t version = 0;
    enum storage_outcome outcome;
    if (req_json(r, &j) != ERR_OK || !read_settings(r, j, &want))
        return;
    if (!read_version(r, j, &version)) {
        reply_stale(r);
        return;
    }
    if (storage_save(r->server, &want, version, &outcome, &ei) != ERR_OK)
        reply_unusable(r, &ei);
    else if (outcome == STORAGE_STALE)
        reply_stale(r);
    else if (outcome == STORAGE_NOT_THE_SAME)
        reply_message(r, 409, "STORAGE_IN_USE",
                      "Files are stored already and this bucket does not hold them. Copy the objects over first.");
    else
        reply_settings(r);
}

const struct route routes_storage[] = {
    {"GET", "/api/user/storage-config", 0, ROUTE_ADMIN, handle_get},
    {"PUT", "/api/user/storage-config", 0, ROUTE_ADMIN | ROUTE_STORAGE_BUDGET, handle_put},
    {"POST", "/api/user/storage-config/test", 0, ROUTE_ADMIN | ROUTE_STORAGE_BUDGET, handle_test},
    {0},
};
