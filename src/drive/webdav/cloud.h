#ifndef DRIVE_WEBDAV_CLOUD_H
#define DRIVE_WEBDAV_CLOUD_H
/* Internal to the webdav dialect: what Nextcloud and ownCloud add to it about accounts and checksums. Layer 2. */
#include "drive/webdav/webdav.h"

#define DAV_CLOUD_CAPS (API_CAP_FEED | API_CAP_TRASH) /* which plain WebDAV has not */

/* Which flavour answers: fills files and root for the login that is set. */
MAY_YIELD enum err dav_find_files(struct api *a, struct api_result *r);
/* On Nextcloud with its administrator's login: whether all others are ours. *admin false: it is no administrator's. */
MAY_YIELD enum err dav_cloud_users(struct api *a, bool *admin, bool *strangers, struct api_result *r);
#define DAV_CHECKSUM_MAX 64
/* "OC-Checksum: SHA1:…", the kind that all of them know; NULL: not asked for here. */
const char *dav_checksum_header(const struct api *a, const struct content *c, char dst[DAV_CHECKSUM_MAX]);
/* Whether "SHA1:… MD5:…", as a server tells them, has what the header says; true: it tells none of that kind. */
bool dav_checksum_fits(const char *told, const char *header);

/* Rows of the table. */
MAY_YIELD enum err webdav_sign_up(struct api *a, const char *email, const char *password, const char *name,
                                  struct api_result *r);
MAY_YIELD enum err webdav_signup_status(struct api *a, bool *enabled, struct api_result *r);
MAY_YIELD enum err webdav_accounts_made(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r);
MAY_YIELD enum err webdav_account_remove(struct api *a, const char *email, struct api_result *r);
#endif
