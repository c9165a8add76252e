#ifndef DRIVE_TARGET_H
#define DRIVE_TARGET_H
/* What is under test and where its parts are: from the environment, then the working folder's .env, then a running
 * stack's .sim/env (each line NAME=value; the first of the three that sets a name wins, an empty value counts as
 * unset). Also decides whether the target may be aimed at (design.md, Safety). Layer 2.
 *
 * A stale TMA_URL must not be judged with another server's database: a file that names a TMA_URL of its own, other than
 * the one in force, gives none of that server's parts (database, Redis, bucket). */
#include "net/httpc.h"
#include "store/blob.h"
#include <stdio.h>

struct target {
    char *url;                      /* TMA_URL; NULL: none was given */
    char *database_url, *redis_url; /* NULL: not given, checks that need them are "not run" */
    char *s3_endpoint, *s3_bucket, *s3_access_key, *s3_secret_key;
    char *password; /* TMA_LOAD_PASSWORD or the default */
    bool insecure;
    char *cafile;
    char *allow_host;     /* --allow-host; set by the caller, owned by the struct as the rest */
    const char *url_from; /* static: "the environment", ".env" or ".sim/env"; NULL without a url */
};
/* Secrets are registered with the log. ERR_USAGE names the file and line that cannot be read. */
enum err target_load(struct target *t, struct errinfo *ei) WARN_UNUSED;
void target_done(struct target *t);
/* One line: what is aimed at and who said so. */
void target_print(const struct target *t, FILE *out);
/* ERR_USAGE with a sentence when TMA_URL is missing or malformed; ERR_SAFETY when its host is neither loopback nor
 * --allow-host, or says that it is production. */
enum err target_require_url(const struct target *t, struct errinfo *ei) WARN_UNUSED;
/* ERR_ENV when nothing answers, another kind of server answers, or it redirects (the right URL is named); ERR_SAFETY
 * when it says it is production or its database holds users outside @load.test. Reads GET /health, signup-status, and
 * the users in DATABASE_URL where given. */
MAY_YIELD enum err target_probe(const struct target *t, struct loop *l, struct httpc *h,
                                struct errinfo *ei) WARN_UNUSED;
bool target_has_s3(const struct target *t);
struct blob_conf target_blob_conf(const struct target *t); /* borrowed from t */
/* True when host is this machine by its form alone: localhost, 127.0.0.0/8, ::1. */
bool target_host_is_loopback(const char *host);
#endif
