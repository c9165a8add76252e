#ifndef NET_HTTP_URL_H
#define NET_HTTP_URL_H
/* URLs of servers. Layer 1, no state. */
#include "base/err.h"

/* "http://[::1]:3200/x" taken apart by libcurl's URL parser; strings owned by the struct. ERR_USAGE with a sentence on
 * anything else than http/https with a host, and on a query or fragment. */
struct http_url {
    char *scheme, *host;   /* an IPv6 host keeps its brackets, but not its zone */
    char *path;            /* without trailing slash: "" for the root */
    char *user, *password; /* decoded; NULL when absent */
    char *zone;            /* of a link-local IPv6 address; NULL when absent */
    int port;
};
enum err http_url_parse(const char *text, struct http_url *out, struct errinfo *ei) WARN_UNUSED;
/* The same for other schemes: rows up to the one without a name; port: that of a URL which names none. */
struct http_url_scheme {
    const char *name;
    int port;
};
enum err http_url_parse_of(const char *text, const struct http_url_scheme *schemes, struct http_url *out,
                           struct errinfo *ei) WARN_UNUSED;
void http_url_done(struct http_url *u);
#endif
