#ifndef DRIVE_TARGET_H
#define DRIVE_TARGET_H
/* What is under test and where its parts are: from the environment, then the working folder's .env (the environment wins), then a running stack's state
 * in .sim/. Also decides whether the target may be aimed at (design.md, Safety). Layer 2. */
#include "net/httpc.h"
#include "store/blob.h"
struct target {
    char *url;                       /* TMA_URL; NULL: none was given */
    char *database_url, *redis_url;  /* NULL: not given, checks that need them are "not run" */
    char *s3_endpoint, *s3_bucket, *s3_access_key, *s3_secret_key;
    char *password;                  /* TMA_LOAD_PASSWORD or the default */
    bool insecure; char *cafile;
    char *allow_host;                /* --allow-host */
};
/* Empty variables count as unset. Secrets are registered with the log. */
enum err target_load(struct target *t, struct errinfo *ei) WARN_UNUSED;
void target_done(struct target *t);
/* ERR_ENV with a sentence when TMA_URL is missing or malformed; ERR_SAFETY when its host is neither loopback nor --allow-host. */
enum err target_require_url(const struct target *t, struct errinfo *ei) WARN_UNUSED;
/* ERR_ENV when nothing answers, an other kind of server answers, or it redirects (the right URL is named); ERR_SAFETY when it says it is production
 * or holds users outside @load.test. `GET /health`, signup-status, and users in DATABASE_URL where given. */
MAY_YIELD enum err target_probe(const struct target *t, struct loop *l, struct httpc *h, struct errinfo *ei) WARN_UNUSED;
bool target_has_s3(const struct target *t);
struct blob_conf target_blob_conf(const struct target *t);    /* borrowed from t */
#endif
