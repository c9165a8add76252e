#ifndef SIM_APP_OPEN_FILES_H
#define SIM_APP_OPEN_FILES_H
/* Whether this machine lets us have as many connections as were asked for. Layer 3. */
#include "base/err.h"

/* Open files that so many apps and logins need: per app its event stream and one connection. */
uint64_t open_files_needed(unsigned apps, unsigned logins);
/* Once, at the start: as many as this machine allows, since not every command knows what it will need. */
void open_files_raise(void);
/* Raises the soft limit to what is needed. ERR_ENV with the numbers when the hard limit is lower. *limit (may be NULL)
 * gets the soft limit now in force. */
enum err open_files_for_apps(unsigned apps, unsigned logins, uint64_t *limit, struct errinfo *ei) WARN_UNUSED;
/* The same for so many bare connections. */
enum err open_files_for_connections(unsigned connections, struct errinfo *ei) WARN_UNUSED;
#endif
