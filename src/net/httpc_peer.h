#ifndef NET_HTTPC_PEER_H
#define NET_HTTPC_PEER_H
/* The inside of peers and origins; private to src/net/httpc*.c. Layer 1. */
#include "net/httpc_int.h"

#include <netinet/in.h>

/* A name that libcurl connects to instead of the host. */
struct alias {
    char text[40]; /* "::p17:3200" */
    struct curl_slist list;
    bool resolved; /* its multi knows the addresses */
};

enum { ADDRS_MAX = 16 };
/* A base URL and the addresses of its host. */
struct origin {
    struct origin *next;
    char *base;          /* as given: the key */
    struct http_url url; /* path: the prefix of every request target */
    CURLU *parsed;
    char addrs[ADDRS_MAX][INET6_ADDRSTRLEN + 2];
    unsigned n_addrs, next_addr;
    uint32_t scope_id;
    struct alias stream_aliases[ADDRS_MAX]; /* by the address to begin with: streams need no name each */
};

/* A peer's default headers, shared with the requests that are under way when they change. */
struct header_set {
    unsigned refs, n;
    struct curl_slist nodes[]; /* linked; each data on the heap */
};

struct httpc_peer {
    struct httpc *h;
    struct httpc_peer *next, **at;
    struct multi *multi;
    struct origin *origin;
    struct header_set *headers;
    struct sock *socks;
    struct xfer *running; /* its requests */
    unsigned keep;        /* idle connections, 0: all */
    unsigned first_addr;
    struct httpc_counters count;
    struct alias alias;
    bool has_source;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } source;
};

void httpc_alias_init(struct alias *a, char kind, unsigned id, int port);
/* For CURLOPT_RESOLVE: a with the origin's addresses from first on; the caller frees it. */
struct curl_slist *httpc_alias_resolve(const struct alias *a, const struct origin *o, unsigned first);
void httpc_origin_free(struct origin **o);
void httpc_headers_set(struct header_set **s, const char *name, const char *value); /* value NULL removes */
bool httpc_headers_have(const struct header_set *s, const char *line);              /* one of the line's name */
void httpc_headers_release(struct header_set **s);
/* Request headers first, then those of the peer that they do not replace. nodes has room for both. */
struct curl_slist *httpc_header_list(const struct httpc_peer *p, const char *const *own, size_t n_own,
                                     struct curl_slist *nodes);
/* The origin's path prefix and path; the caller frees it. */
char *httpc_target(const struct origin *o, const char *path);
bool httpc_target_ok(const char *path);
#endif
