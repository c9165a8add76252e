#ifndef NET_TLS_H
#define NET_TLS_H
/* TLS over a socket that never blocks, for connections that libcurl does not make: stress.c counts its bytes and times
 * itself. The owner of openssl/ssl.h. A connection belongs to its loop's thread. Layer 1. */
#include "base/err.h"
#include <stddef.h>

struct tls_ctx;
/* cafile NULL: the system's authorities; insecure: any certificate will do. */
enum err tls_ctx_new(struct tls_ctx **out, const char *cafile, bool insecure, struct errinfo *ei) WARN_UNUSED;
void tls_ctx_free(struct tls_ctx **c);

struct tls;
/* host: the name or address that the certificate must bear, an IPv6 one with or without brackets; borrowed for the
 * call. fd stays the caller's. */
struct tls *tls_new(struct tls_ctx *c, int fd, const char *host);
void tls_free(struct tls **t);
enum tls_step { TLS_DONE, TLS_AGAIN, TLS_END, TLS_FAILED }; /* AGAIN: when the socket is ready once more */
enum tls_step tls_handshake(struct tls *t, struct errinfo *ei);
enum tls_step tls_read(struct tls *t, void *dst, size_t cap, size_t *got);
enum tls_step tls_write(struct tls *t, const void *p, size_t n, size_t *done);
#endif
