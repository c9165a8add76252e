#ifndef DRIVE_WEBDAV_SESSION_H
#define DRIVE_WEBDAV_SESSION_H
/* Internal to the webdav dialect: a client from its opening to its end, and the place that it works in. All are rows of
 * its table; api/dialect.h says what each is to do. Layer 2. */
#include "drive/webdav/webdav.h"

enum err webdav_open(struct api *a, const struct api_conf *conf, const struct http_url *url,
                     struct errinfo *ei) WARN_UNUSED;
void webdav_close(struct api *a);
void webdav_share(struct api *to, const struct api *from);
MAY_YIELD enum err webdav_greet(struct api *a, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err webdav_claim(struct api *a, struct api_result *r);
MAY_YIELD enum err webdav_unclaim(struct api *a, struct api_locks_left *left, struct api_result *r);
MAY_YIELD enum err webdav_sign_in(struct api *a, const char *email, const char *password, struct api_result *r);
#endif
