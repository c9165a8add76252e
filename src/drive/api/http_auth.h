#ifndef DRIVE_API_HTTP_AUTH_H
#define DRIVE_API_HTTP_AUTH_H
/* Signing in by the headers of HTTP itself: Basic (RFC 7617) and Digest (RFC 7616, qop auth, MD5 and SHA-256), by what
 * the server asks for. Digest is taken where both are offered. Pure but for the client's nonce. Layer 2. */
#include "base/buf.h"
#include "base/str.h"
#include "net/httpc.h"

enum http_auth_kind { HTTP_AUTH_NONE, HTTP_AUTH_BASIC, HTTP_AUTH_DIGEST };
struct http_auth {
    enum http_auth_kind kind;
    bool sha256, qop, stale;
    unsigned count; /* requests made with this nonce */
    char realm[128], nonce[256], opaque[256];
};
/* Takes one WWW-Authenticate header's value: several challenges may stand in it. True: one of them is usable and better
 * than what is there. Begin with a zeroed struct for each answer. */
bool http_auth_challenge(struct http_auth *a, struct sv value);
/* After a 401: true when it is worth asking again, with what the server asked for; signed_request: the refused one
 * carried an Authorization. */
bool http_auth_take(struct http_auth *a, const struct http_resp *resp, bool signed_request);
/* "Authorization: …" for this request into out; nothing for NONE. target: as it stands in the request line. */
enum err http_auth_header(struct http_auth *a, const char *user, const char *password, const char *method,
                          const char *target, struct buf *out) WARN_UNUSED;
/* The same with the client's nonce given, for tests. */
enum err http_auth_header_with(struct http_auth *a, const char *user, const char *password, const char *method,
                               const char *target, const char *cnonce, struct buf *out) WARN_UNUSED;
#endif
