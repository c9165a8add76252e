/* Certificates (case X12): requests and streams follow the same setting, and the error says what to do. The server here
 * is OpenSSL in a thread, with a certificate made on the spot. */
#include "client.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static SSL_CTX *server_ctx;
static char cafile[] = "/tmp/drivesim-test-ca-XXXXXX";

/* Self-signed, for localhost and 127.0.0.1; written to cafile as its own authority. */
static int make_certificate(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"drivesim test", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    X509_add_ext(cert, ext, -1);
    X509_EXTENSION_free(ext);
    X509_sign(cert, key, EVP_sha256());

    FILE *f = fdopen(mkstemp(cafile), "w");
    PEM_write_X509(f, cert);
    fclose(f);
    server_ctx = SSL_CTX_new(TLS_server_method());
    int ok = SSL_CTX_use_certificate(server_ctx, cert) == 1 && SSL_CTX_use_PrivateKey(server_ctx, key) == 1;
    X509_free(cert);
    EVP_PKEY_free(key);
    return ok ? 0 : -1;
}

static int drop_certificate(void **state)
{
    (void)state;
    unlink(cafile);
    SSL_CTX_free(server_ctx);
    return 0;
}

static bool tls_head(SSL *ssl, char *head, size_t cap)
{
    size_t n = 0;
    while (n + 1 < cap && (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0)) {
        if (SSL_read(ssl, head + n, 1) != 1)
            return false;
        n++;
    }
    head[n] = '\0';
    return true;
}

static void serve_tls(struct stub *s, int fd, int number)
{
    static const char events[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n";
    static const char refusal[] = "HTTP/1.1 413 No\r\nContent-Length: 5\r\nConnection: close\r\n\r\nquota";
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    char head[8192], drop[65536];
    (void)number;
    SSL *ssl = SSL_new(server_ctx);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1)
        while (tls_head(ssl, head, sizeof head)) {
            atomic_fetch_add(&s->requests, 1);
            const char *text = strncmp(head, "GET /events", 11) == 0 ? events
                               : strncmp(head, "POST", 4) == 0       ? refusal
                                                                     : answer;
            SSL_write(ssl, text, (int)strlen(text));
            if (text == refusal) { /* a kind server: it reads on */
                shutdown(fd, SHUT_WR);
                stub_drain(fd);
                break;
            }
            while (text == events && SSL_read(ssl, drop, sizeof drop) > 0)
                ;
        }
    SSL_free(ssl);
}

struct watch {
    enum err err;
    bool data, closed;
    struct done done;
};

static bool on_data(void *arg, const char *p, size_t n)
{
    struct watch *w = arg;
    (void)p;
    w->data = n > 0;
    done_set(&w->done);
    return true;
}

static void on_close(void *arg, enum err err, const struct http_resp *r, const struct errinfo *why)
{
    struct watch *w = arg;
    (void)r, (void)why;
    w->err = err;
    w->closed = true;
    done_set(&w->done);
}

static void certificate_settings_reach_every_connection(void **state)
{
    (void)state;
    static const struct httpc_stream_ops ops = {.on_data = on_data, .on_close = on_close};
    static const struct {
        const char *host;
        bool insecure, ca, ok;
    } rows[] = {
        {"127.0.0.1", false, false, false}, /* an authority that nobody knows */
        {"127.0.0.1", true, false, true},   {"127.0.0.1", false, true, true},
        {"localhost", false, true, true},   {"127.0.0.2", false, true, false}, /* another name than the certificate's */
        {"127.0.0.2", true, false, true},
    };
    struct stub *s = stub_start_on("0.0.0.0", 0, serve_tls, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct httpc_conf conf = {.insecure = rows[i].insecure, .cafile = rows[i].ca ? cafile : NULL};
        httpc_free(&client);
        assert_int_equal(httpc_new(&client, loop, &conf, &ei), ERR_OK);
        char url[100];
        snprintf(url, sizeof url, "https://%s:%d", rows[i].host, s->port);
        struct httpc_peer *p = peer_at(url, NULL);
        int before = s->requests;
        for (int again = 0; again < 3; again++) {
            struct http_req req = get_of("/");
            struct http_resp r;
            enum err err = perform(p, &req, &r);
            assert_int_equal(err, rows[i].ok ? ERR_OK : ERR_TLS);
            assert_true(rows[i].ok || (strstr(ei.msg, "--cafile") != NULL && strstr(ei.msg, "--insecure") != NULL));
            assert_int_equal(r.request_sent, rows[i].ok);
            assert_int_equal(r.reused, rows[i].ok && again > 0);
            http_resp_done(&r);
        }
        for (int again = 0; again < 2; again++) { /* a stream, and its reconnect */
            struct watch w = {0};
            struct httpc_stream *stream = NULL;
            assert_int_equal(httpc_stream_open(&stream, p, "/events", NULL, 5 * US_PER_S, &ops, &w, &ei), ERR_OK);
            done_wait(loop, &w.done);
            assert_int_equal(w.data, rows[i].ok);
            assert_int_equal(w.err, rows[i].ok ? ERR_OK : ERR_TLS);
            if (!w.closed)
                httpc_stream_close(&stream);
        }
        assert_int_equal(s->requests - before, rows[i].ok ? 5 : 0); /* a connection that failed sent nothing */
        httpc_peer_free(&p);
    }
    stub_stop(s);
}

static void refusals_arrive_over_tls_too(void **state)
{
    (void)state;
    struct httpc_conf conf = {.insecure = true};
    httpc_free(&client);
    assert_int_equal(httpc_new(&client, loop, &conf, &ei), ERR_OK);
    struct stub *s = stub_start(serve_tls, NULL);
    char url[100];
    snprintf(url, sizeof url, "https://127.0.0.1:%d", s->port);
    struct httpc_peer *p = peer_at(url, NULL);
    size_t n = 8 << 20;
    char *body = mem_zalloc(n);
    for (int i = 0; i < 10; i++) {
        struct http_req req = get_of("/up");
        struct http_resp r;
        req.method = "POST";
        req.body = (struct sv){body, n};
        assert_int_equal(perform(p, &req, &r), ERR_OK);
        assert_int_equal(r.status, 413);
        assert_string_equal(buf_cstr(&r.body), "quota");
        assert_true(r.bytes_up < n);
        http_resp_done(&r);
    }
    mem_free(body);
    httpc_peer_free(&p);
    stub_stop(s);
}

static void a_plain_server_is_no_tls_server(void **state)
{
    (void)state;
    struct stub *s = stub_start(serve_tls, NULL);
    struct httpc_peer *p = peer_at(s->url, NULL); /* http:// to a TLS server */
    struct http_req req = get_of("/");
    struct http_resp r;
    enum err err = perform(p, &req, &r);
    assert_true(err == ERR_PROTO || err == ERR_CLOSED || err == ERR_RESET);
    http_resp_done(&r);
    httpc_peer_free(&p);
    stub_stop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(certificate_settings_reach_every_connection),
        CASE(refusals_arrive_over_tls_too),
        CASE(a_plain_server_is_no_tls_server),
    };
    return cmocka_run_group_tests(tests, make_certificate, drop_certificate);
}
