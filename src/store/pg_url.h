#ifndef STORE_PG_URL_H
#define STORE_PG_URL_H
/* Where a database's URL leads, in libpq's own reading of it. Layer 1, no state. */
#include "base/err.h"
#include <stddef.h>

/* The first host of url that far(arg, host) calls so, into dst, cut to n; "" when there is none. Sockets of this
 * machine are no hosts; without any, PGHOST counts as libpq has it. ERR_USAGE when libpq cannot read url. */
enum err pg_url_find_host(const char *url, bool (*far)(void *arg, const char *host), void *arg, char *dst, size_t n,
                          struct errinfo *ei) WARN_UNUSED;
#endif
