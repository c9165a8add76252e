#ifndef SERVER_CONF_H
#define SERVER_CONF_H
/* Where the server's settings come from: options of the command line, else the environment, else the working folder's
 * .env, else the default. An empty value counts as not set. Layer 3. */
#include "server/server.h"

extern const struct server_conf server_conf_unset; /* what the command line starts from */
/* Fills what the options left unset. ERR_USAGE names a malformed or missing setting and what it takes. Strings that
 * were read live until conf_done. */
enum err conf_load(struct server_conf *c, struct errinfo *ei) WARN_UNUSED;
void conf_done(struct server_conf *c);
#endif
