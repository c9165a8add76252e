/* OpenSSL speaks to the socket itself: with SIGPIPE ignored (loop_new) its writes cannot end the program. */
#include "net/tls.h"
#include "base/mem.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

struct tls_ctx {
    SSL_CTX *ssl;
};
struct tls {
    SSL *ssl;
};

static enum err refuse(struct errinfo *ei, enum err code, const char *what)
{
    char why[160] = "no reason given";
    unsigned long e = ERR_get_error();
    if (e)
        ERR_error_string_n(e, why, sizeof why);
    ERR_clear_error();
    return err_set(ei, code, "%s: %s", what, why);
}

enum err tls_ctx_new(struct tls_ctx **out, const char *cafile, bool insecure, struct errinfo *ei)
{
    SSL_CTX *ssl = SSL_CTX_new(TLS_client_method());
    if (!ssl)
        return refuse(ei, ERR_TLS, "TLS cannot be set up");
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ssl, insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    int known = cafile ? SSL_CTX_load_verify_locations(ssl, cafile, NULL) : SSL_CTX_set_default_verify_paths(ssl);
    if (known != 1 && !insecure) {
        SSL_CTX_free(ssl);
        return refuse(ei, ERR_USAGE, cafile ? cafile : "the system's certificates");
    }
    *out = mem_zalloc(sizeof **out);
    (*out)->ssl = ssl;
    return ERR_OK;
}

void tls_ctx_free(struct tls_ctx **c)
{
    if (!*c)
        return;
    SSL_CTX_free((*c)->ssl);
    MEM_FREE(*c);
}

struct tls *tls_new(struct tls_ctx *c, int fd, const char *host)
{
    char name[256];
    size_t n = strlen(host);
    bool bracketed = n > 2 && host[0] == '[';
    snprintf(name, sizeof name, "%.*s", (int)(bracketed ? n - 2 : n), host + bracketed);
    struct tls *t = mem_zalloc(sizeof *t);
    t->ssl = SSL_new(c->ssl);
    if (!t->ssl || SSL_set_fd(t->ssl, fd) != 1) {
        tls_free(&t);
        return NULL;
    }
    /* A name is sent along and compared; an address is only compared (RFC 6066 3 allows names alone). */
    X509_VERIFY_PARAM *want = SSL_get0_param(t->ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(want, name) != 1) {
        SSL_set_tlsext_host_name(t->ssl, name);
        X509_VERIFY_PARAM_set1_host(want, name, 0);
    }
    SSL_set_connect_state(t->ssl);
    return t;
}

void tls_free(struct tls **t)
{
    if (!*t)
        return;
    SSL_free((*t)->ssl);
    MEM_FREE(*t);
}

static enum tls_step step_of(struct tls *t, int rc)
{
    switch (SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_NONE:
        return TLS_DONE;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return TLS_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_END;
    default:
        return TLS_FAILED;
    }
}

enum tls_step tls_handshake(struct tls *t, struct errinfo *ei)
{
    ERR_clear_error();
    enum tls_step step = step_of(t, SSL_do_handshake(t->ssl));
    if (step != TLS_FAILED && step != TLS_END)
        return step;
    long verdict = SSL_get_verify_result(t->ssl);
    if (verdict != X509_V_OK)
        err_set(ei, ERR_TLS, "the certificate is not trusted: %s; name its authority with --cacert, or use --insecure",
                X509_verify_cert_error_string(verdict));
    else
        refuse(ei, ERR_TLS, "the TLS handshake failed");
    ERR_clear_error();
    return TLS_FAILED;
}

enum tls_step tls_read(struct tls *t, void *dst, size_t cap, size_t *got)
{
    ERR_clear_error();
    return step_of(t, SSL_read_ex(t->ssl, dst, cap, got));
}

enum tls_step tls_write(struct tls *t, const void *p, size_t n, size_t *done)
{
    ERR_clear_error();
    return step_of(t, SSL_write_ex(t->ssl, p, n, done));
}
