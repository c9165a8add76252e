#ifndef DRIVE_WEBDAV_FEED_H
#define DRIVE_WEBDAV_FEED_H
/* Internal to the webdav dialect: the change feed of Nextcloud and ownCloud, made of ETags. Layer 2. */
#include "drive/webdav/webdav.h"

uint64_t dav_feed_tag(const struct dav_item *item); /* of its ETag; 0: it has none */
/* Folder was listed when it had this tag: it is open, and its changes are told from now on. */
void dav_feed_listed(struct api *a, const char *folder, uint64_t tag);
void dav_feed_wrote(struct api *a, struct mono sent); /* a write was acknowledged: ETags have to show it */
void dav_feed_free(struct dav_feed **f);
MAY_YIELD enum err webdav_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out,
                                  struct api_result *r);
#endif
