#ifndef DRIVE_WEBDAV_CLOUD_H
#define DRIVE_WEBDAV_CLOUD_H
/* Internal to the webdav dialect: reading a folder entry by entry, and what is built on it where Nextcloud or ownCloud
 * answers: a change feed made of ETags (webdav/feed.c), and the trash-bin (webdav/trash.c). Layer 2. */
#include "drive/webdav/webdav.h"

#define DAV_CLOUD_CAPS (API_CAP_FEED | API_CAP_TRASH) /* which plain WebDAV has not */

/* ---- webdav/read.c ---- */
struct dav_children {
    const char *xml;                                                         /* the properties that are asked for */
    bool itself_alone;                                                       /* the folder, not what is in it */
    void (*entry)(void *arg, const char *name, const struct dav_item *item); /* name NULL: the folder itself */
    void *arg;
};
/* Tells each entry of a folder whose path (encoded, taken over) ends in a slash; also items that come before a failure
 * are told. */
MAY_YIELD enum err dav_children(struct api *a, struct buf *path, const struct dav_children *c, struct api_result *r);

/* ---- webdav/cloud.c ---- */
MAY_YIELD enum err webdav_accounts_made(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r);
MAY_YIELD enum err webdav_account_remove(struct api *a, const char *email, struct api_result *r);
#define DAV_CHECKSUM_MAX 64
/* "OC-Checksum: SHA1:…", the kind that all of them know; NULL: not asked for here. */
const char *dav_checksum_header(const struct api *a, const struct content *c, char dst[DAV_CHECKSUM_MAX]);
/* Whether "SHA1:… MD5:…", as a server tells them, has what the header says; true: it tells none of that kind. */
bool dav_checksum_fits(const char *told, const char *header);

/* ---- webdav/feed.c ---- */
uint64_t dav_feed_tag(const struct dav_item *item); /* of its ETag; 0: it has none */
/* Folder was listed when it had this tag: it is open, and its changes are told from now on. */
void dav_feed_listed(struct api *a, const char *folder, uint64_t tag);
void dav_feed_wrote(struct api *a, struct mono sent); /* a write was acknowledged: ETags have to show it */
void dav_feed_free(struct dav_feed **f);
MAY_YIELD enum err webdav_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out,
                                  struct api_result *r);

/* ---- webdav/trash.c: only what was deleted in our place ---- */
MAY_YIELD enum err webdav_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r);
MAY_YIELD enum err webdav_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                                  struct api_result *r);
MAY_YIELD enum err webdav_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                                struct api_result *r);
MAY_YIELD void dav_trash_probe(struct api *a); /* whether there is one: the capability */
/* For good: the place itself and what was deleted in it before; in an account that was made for us, all there is. */
MAY_YIELD enum err dav_trash_empty(struct api *a, struct api_result *r);
#endif
