#ifndef DRIVE_WEBDAV_TRASH_H
#define DRIVE_WEBDAV_TRASH_H
/* Internal to the webdav dialect: the trash-bin of Nextcloud and ownCloud; only what was deleted in our place. Layer 2.
 */
#include "drive/webdav/webdav.h"

MAY_YIELD void dav_trash_probe(struct api *a); /* whether there is one: the capability */
/* For good: the place itself and what was deleted in it before; in an account that was made for us, all there is. */
MAY_YIELD enum err dav_trash_empty(struct api *a, struct api_result *r);

/* Rows of the table. */
MAY_YIELD enum err webdav_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err webdav_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                                  struct api_result *r);
MAY_YIELD enum err webdav_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                                struct api_result *r);
#endif
