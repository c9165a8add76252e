#ifndef SERVER_ACCESS_PASSWORD_H
#define SERVER_ACCESS_PASSWORD_H
/* Passwords by libcrypt's bcrypt, in worker threads: milliseconds of CPU and 32 KiB a call belong neither on the loop
 * nor on a coroutine's stack. Layer 3. */
#include "net/work.h"

#define PASSWORD_HASH_MAX  384
#define PASSWORD_BYTES_MAX 72 /* bcrypt looks at no more, so a longer one never fits */
/* ERR_IO when libcrypt refuses. out of PASSWORD_HASH_MAX bytes. */
MAY_YIELD enum err password_hash(struct work *w, const char *password, unsigned cost, char *out,
                                 struct errinfo *ei) WARN_UNUSED;
MAY_YIELD bool password_fits(struct work *w, const char *password, const char *hash);
#endif
