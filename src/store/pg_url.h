#ifndef STORE_PG_URL_H
#define STORE_PG_URL_H
/* Where a database's URL leads, in libpq's own reading of it: as URL or as "host=… port=…", with its variables (PGHOST,
 * PGHOSTADDR, PGSERVICE, …), its service files and its defaults. Layer 1, no state. */
#include "base/err.h"

/* The hosts that libpq would dial, judged before it looks one up. ERR_SAFETY when the guard forbids one of them, or
 * when a service file leaves the answer to an LDAP server; ERR_USAGE when libpq cannot read url. Sockets of this
 * machine are no hosts. The password in it is registered with the log. */
enum err pg_url_judge(const char *url, struct errinfo *ei) WARN_UNUSED;
#endif
