#include "store/s3sign.h"
#include "base/digest.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define HEX_LEN (2 * DIGEST_SHA256_LEN + 1)

static void sha256_hex(char dst[HEX_LEN], struct sv s)
{
    unsigned char sum[DIGEST_SHA256_LEN];
    digest_sha256(s.p ? s.p : "", s.n, sum);
    digest_hex(dst, sum, sizeof sum);
}

static void hmac(unsigned char out[DIGEST_SHA256_LEN], const void *key, size_t key_n, const char *text)
{
    digest_hmac_sha256(key, key_n, text, strlen(text), out);
}

static const char *signed_headers(const struct s3sign *in)
{
    return in->copy_source ? "host;x-amz-content-sha256;x-amz-copy-source;x-amz-date"
                           : "host;x-amz-content-sha256;x-amz-date";
}

static enum err canonical_hash(const struct s3sign *in, const char *stamp, const char *body_hash, char out[HEX_LEN])
{
    struct buf b = BUF_INIT(64 * 1024);
    enum err err = buf_appendf(&b, "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\n", in->method, in->path, in->query,
                               in->host, body_hash);
    if (!err && in->copy_source)
        err = buf_appendf(&b, "x-amz-copy-source:%s\n", in->copy_source);
    if (!err)
        err = buf_appendf(&b, "x-amz-date:%s\n\n%s\n%s", stamp, signed_headers(in), body_hash);
    sha256_hex(out, (struct sv){buf_cstr(&b), b.len});
    buf_done(&b);
    return err;
}

/* The signing key is a chain: secret, day, region, service, terminator. */
static enum err signing_key(const struct s3sign *in, const char *day, unsigned char key[DIGEST_SHA256_LEN])
{
    char secret[256];
    int n = snprintf(secret, sizeof secret, "AWS4%s", in->secret_key);
    if (n < 0 || (size_t)n >= sizeof secret)
        return ERR_LIMIT;
    hmac(key, secret, (size_t)n, day);
    hmac(key, key, DIGEST_SHA256_LEN, in->region);
    hmac(key, key, DIGEST_SHA256_LEN, "s3");
    hmac(key, key, DIGEST_SHA256_LEN, "aws4_request");
    return ERR_OK;
}

enum err s3sign_make(const struct s3sign *in, struct s3sign_headers *out)
{
    char day[16], stamp[24], scope[96], body_hash[HEX_LEN], request_hash[HEX_LEN], text[256], signature[HEX_LEN];
    unsigned char key[DIGEST_SHA256_LEN], mac[DIGEST_SHA256_LEN];
    time_t seconds = (time_t)(in->at.us / US_PER_S);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y%m%d", &tm);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm);
    sha256_hex(body_hash, in->body);
    enum err err = canonical_hash(in, stamp, body_hash, request_hash);
    if (!err)
        err = signing_key(in, day, key);
    if (err)
        return err;
    int n = snprintf(scope, sizeof scope, "%s/%s/s3/aws4_request", day, in->region);
    if (n < 0 || (size_t)n >= sizeof scope)
        return ERR_LIMIT;
    snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", stamp, scope, request_hash);
    hmac(mac, key, sizeof key, text);
    digest_hex(signature, mac, sizeof mac);
    n = snprintf(out->authorization, sizeof out->authorization,
                 "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s", in->access_key,
                 scope, signed_headers(in), signature);
    if (n < 0 || (size_t)n >= sizeof out->authorization)
        return ERR_LIMIT;
    snprintf(out->date, sizeof out->date, "x-amz-date: %s", stamp);
    snprintf(out->content_sha256, sizeof out->content_sha256, "x-amz-content-sha256: %s", body_hash);
    return ERR_OK;
}
