#ifndef DRIVE_WEBDAV_WEBDAV_H
#define DRIVE_WEBDAV_WEBDAV_H
/* Internal to the webdav dialect: plain WebDAV (RFC 4918) with locks where the server has them, and what Nextcloud and
 * ownCloud add to it. All work stays in the folder API_PLACE below the URL; ids are the registry's (names.h), versions
 * the opaque part of ETags. Layer 2. */
#include "drive/api/dialect.h"
#include "drive/api/http_auth.h"
#include "drive/webdav/xml.h"

#define DAV_PATH_MAX (16 * 1024)

extern const struct api_dialect api_dialect_webdav;
struct target;
struct dav {
    struct loop *loop;
    const struct target *target;
    char *origin;          /* "http://127.0.0.1:8080" */
    char *prefix;          /* the URL's path, encoded as given: "" or "/dav" */
    char *files;           /* encoded path of the folder that the place stands in; NULL until signed in */
    char *root;            /* of the place: files and "/drivesim-load" */
    char *user, *password; /* NULL: nobody, without Authorization */
    struct http_auth auth;
    bool own_cloud;        /* Nextcloud or ownCloud */
    char *trash;           /* encoded path of the login's trash-bin; NULL: none known */
    struct dav_feed *feed; /* NULL: nobody asks this client for changes */
    const char *copied[1]; /* the id of the last copy, for api_job.ids */
};
static inline struct dav *dav_of(const struct api *a)
{
    return a->state;
}

/* One request. */
struct dav_call {
    const char *method;
    struct buf *path;       /* the whole request target; the call frees it */
    const char *headers[8]; /* NULL-terminated */
    const char *xml;        /* a body; NULL: none */
    const struct content *content;
    uint64_t *taken;
    uint64_t transfer_bytes;
    bool write;
    bool (*item)(void *arg, const struct dav_item *item); /* of a 207 answer; NULL: a failed item is the verdict */
    int (*sink)(void *arg, const char *p, size_t n);      /* of a GET; *resp is passed by the caller */
    void *arg;
    struct http_resp *resp; /* where the caller wants it; http_resp_done is the caller's. NULL: not wanted */
};
/* Performs it, signing in as the server asks for, and fills *r; ERR_OK when an answer came. A 207 that tells of a
 * failure inside is that failure, unless item is set. */
MAY_YIELD enum err dav_perform(struct api *a, const struct dav_call *c, struct api_result *r);
/* The path of an entry in the place; folder: with a slash behind. False: the id is not known (any more), and r says so
 * as a server would. */
bool dav_path(struct api *a, const char *id, bool folder, struct buf *path, struct api_result *r);
/* "Destination: http://…" of what is to be called name in folder parent. */
bool dav_destination(struct api *a, const char *parent, const char *name, bool folder, struct buf *header,
                     struct api_result *r);
void dav_missing(struct api_result *r); /* 404, unasked */
bool dav_is_name_taken(const struct api_result *r);
/* An ETag's opaque part, of a weak one too; false: none, or too long for a version. */
bool dav_etag(const char *etag, char *dst, size_t n, bool *weak);
#endif
