#ifndef STORE_S3SIGN_H
#define STORE_S3SIGN_H
/* AWS Signature Version 4 in headers, for small requests whose body is in memory ("Authenticating Requests: Using the
 * Authorization Header", Amazon S3 API reference). Signs host, x-amz-content-sha256, x-amz-date and, when there is one,
 * x-amz-copy-source. Layer 1, pure. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

struct s3sign {
    const char *access_key, *secret_key, *region;
    const char *host; /* as the Host header will say it */
    const char *method;
    const char *path;  /* percent-encoded */
    const char *query; /* percent-encoded, sorted by name, each name with '='; "" when there is none */
    struct sv body;
    const char *copy_source; /* NULL: none */
    struct wall at;
};
struct s3sign_headers { /* complete lines, "Name: value" */
    char authorization[512], date[40], content_sha256[96];
};
/* ERR_LIMIT when key or region are absurdly long. */
enum err s3sign_make(const struct s3sign *in, struct s3sign_headers *out) WARN_UNUSED;
#endif
