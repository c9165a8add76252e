#ifndef DRIVE_WEBDAV_READ_H
#define DRIVE_WEBDAV_READ_H
/* Internal to the webdav dialect: what one entry is, what is in a folder, and a file's content. Layer 2. */
#include "drive/webdav/webdav.h"

/* The properties of one entry, or of any path (encoded, taken over); found false: it is not there. */
struct dav_look {
    bool found, folder, weak;
    char version[DRIVE_ID_MAX + 1], own_id[DRIVE_ID_MAX + 1];
    char checksums[256]; /* "SHA1:… MD5:…"; "": not told */
    int64_t size, total, used, available;
    struct wall modified;
};
MAY_YIELD enum err dav_look(struct api *a, struct buf *path, struct dav_look *out, struct api_result *r);
/* Fills out (NULL: none) from a look at what was just made at this place; its id is known from then on. */
MAY_YIELD struct dav_look dav_look_at_new(struct api *a, const char *parent, const char *name, bool folder,
                                          struct arena *mem, struct drive_file *out);

struct dav_children {
    const char *xml;                                                         /* the properties that are asked for */
    bool itself_alone;                                                       /* the folder, not what is in it */
    void (*entry)(void *arg, const char *name, const struct dav_item *item); /* name NULL: the folder itself */
    void *arg;
};
/* Tells each entry of a folder whose path (encoded, taken over) ends in a slash; also items that come before a failure
 * are told. */
MAY_YIELD enum err dav_children(struct api *a, struct buf *path, const struct dav_children *c, struct api_result *r);

/* Rows of the table. */
MAY_YIELD enum err webdav_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out,
                               struct api_result *r);
MAY_YIELD enum err webdav_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out,
                               struct api_totals *totals, struct api_result *r);
MAY_YIELD enum err webdav_probe(struct api *a, struct api_result *r);
MAY_YIELD enum err webdav_storage(struct api *a, struct api_storage *out, struct api_result *r);
MAY_YIELD enum err webdav_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                                   int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out,
                                   size_t version_n, struct api_result *r);
#endif
