#ifndef DRIVE_TARGET_H
#define DRIVE_TARGET_H
/* What is under test and where its parts are: from the environment, then the working folder's .env, then a running
 * stack's .sim/env (each line NAME=value; the first of the three that sets a name wins, an empty value counts as
 * unset). Also says whether the target may be aimed at (design.md, Safety). Layer 2.
 *
 * A stale TMA_URL must not be judged with another server's database: a file that names a TMA_URL of its own, other than
 * the one in force, gives none of that server's parts (database, Redis, bucket). */
#include "net/httpc.h"
#include "store/blob.h"
#include <stdio.h>

/* Whom to sign in as where nobody can be signed up. */
struct target_login {
    char *name, *password; /* password NULL: none, as with a key */
};
#define TARGET_LOGIN_MAX 63 /* bytes of a name */

struct target {
    char *url;                      /* TMA_URL; NULL: none was given; after target_settle without credentials */
    char *database_url, *redis_url; /* NULL: not given, checks that need them are "not run" */
    char *s3_endpoint, *s3_bucket, *s3_access_key, *s3_secret_key;
    char *password;                 /* TMA_LOAD_PASSWORD or the default */
    char *ssh_key, *ssh_passphrase; /* of sftp://: a private key's file; NULL: sign in by password */
    char *portal_login;             /* a portal's login form: "PATH" or "PATH USER-FIELD PASSWORD-FIELD"; NULL: none */
    char *known_hosts;              /* NULL: ssh's own */
    bool insecure;
    char *cafile;
    char *dialect; /* --dialect; set by the caller, owned by the struct as the rest; NULL: by the scheme */
    struct target_login *logins; /* given: of the URL and --users; none where the server signs up its own */
    size_t n_logins;
    unsigned name_max;    /* bytes of a file's name, found out likewise; 0: as many as any */
    bool logins_made;     /* found out when the target was asked: with the first one's help seed makes others */
    unsigned proven;      /* parts that were seen to be this server's own: belong.h */
    bool own_stack;       /* url is that of this folder's stack (.sim) */
    const char *url_from; /* static: "the environment", ".env" or ".sim/env"; NULL without a url */
};
/* Secrets are registered with the log. ERR_USAGE names the file and line that cannot be read. */
enum err target_load(struct target *t, struct errinfo *ei) WARN_UNUSED;
void target_done(struct target *t);
/* With dialect set: takes user and password out of the URL into logins (decoded, registered with the log), and adds
 * those of users_file (NULL: none), a line each: "user:password" or "user password"; '#' begins a comment. A URL that
 * cannot be read is left to target_require_url. ERR_USAGE names file and line. */
enum err target_settle(struct target *t, const char *users_file, struct errinfo *ei) WARN_UNUSED;
bool target_shows_inside(const struct target *t); /* its dialect's servers have a database, store and metrics for us */
bool target_logins_given(const struct target *t); /* by its dialect */
const char *target_password(const struct target *t, const char *login); /* of a given one, else the one for all */
/* The name of the k-th owner (0: the first): a given login or owner-K@load.test. False when no more are given. */
bool target_owner(const struct target *t, unsigned k, char *dst, size_t n);
/* One line: what is aimed at and who said so. */
void target_print(const struct target *t, FILE *out);
/* ERR_USAGE with a sentence when TMA_URL is missing or malformed; ERR_SAFETY when the guard (net/guard.h) forbids its
 * host. */
enum err target_require_url(const struct target *t, struct errinfo *ei) WARN_UNUSED;
/* The same of the database, Redis and store that were given, by their variables' names; nothing is dialled. */
enum err target_judge_parts(const struct target *t, struct errinfo *ei) WARN_UNUSED;
/* ERR_ENV when nothing answers, another kind of server answers, or it redirects (the right URL is named); ERR_SAFETY
 * when it says it is production or its database holds users outside @load.test. Reads GET /health, signup-status, and
 * the users in DATABASE_URL where given. */
struct cmd_ctx;
MAY_YIELD enum err target_probe(const struct cmd_ctx *ctx, struct errinfo *ei) WARN_UNUSED;
bool target_has_s3(const struct target *t);
struct blob_conf target_blob_conf(const struct target *t); /* borrowed from t */
/* "host:port/path" of a URL's server, one text for all spellings of it: the scheme left out, loopback "localhost", the
 * host in small letters, no '/' at the end. "" for what is no URL of ours. */
#define TARGET_PLACE_MAX 299
void target_place(const char *url, char *dst, size_t n);
bool target_is_local(const struct target *t); /* TMA_URL names this machine by its form (net/guard.h) */
#endif
