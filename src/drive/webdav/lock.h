#ifndef DRIVE_WEBDAV_LOCK_H
#define DRIVE_WEBDAV_LOCK_H
/* Internal to the webdav dialect: edit locks, and those that an earlier run left behind. Layer 2. */
#include "drive/webdav/webdav.h"

MAY_YIELD enum err webdav_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id,
                               struct api_lock *out, struct api_result *r);
MAY_YIELD enum err webdav_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r);
/* Lets go of all locks in the place that are ours, by whichever run; *left is filled, with those of others. */
MAY_YIELD void dav_locks_release(struct api *a, struct api_locks_left *left);
#endif
