#ifndef DRIVE_API_SCHEME_H
#define DRIVE_API_SCHEME_H
/* Which dialect is spoken to a URL: by its scheme, or by the name that --dialect gives. Layer 2, no state. */
#include "net/http_url.h"

struct api_dialect;
struct scheme {
    const char *scheme, *dialect; /* "webdavs", "webdav" */
    const char *carrier;          /* the scheme that is spoken on the wire: "https"; NULL: none of HTTP */
    int port;                     /* of a URL without one */
    bool logins_given;            /* its servers sign nobody up: the URL and --users tell who to be */
    const struct api_dialect *table;
};
/* ERR_USAGE with the names there are; NULL is fine. */
enum err scheme_judge_dialect(const char *dialect, struct errinfo *ei) WARN_UNUSED;
/* url taken apart, its scheme replaced by the carrier, and the row. dialect NULL: by the scheme alone. ERR_USAGE with a
 * sentence when nobody speaks it. */
enum err scheme_of(const char *url, const char *dialect, const struct scheme **row, struct http_url *out,
                   struct errinfo *ei) WARN_UNUSED;
/* "http://host:port/path" again, without user and password; the caller frees it. */
char *scheme_url(const struct http_url *u);
#endif
