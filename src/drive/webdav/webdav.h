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

/* ---- webdav.c: one request ---- */

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

/* ---- webdav/read.c ---- */
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

MAY_YIELD enum err webdav_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out,
                               struct api_result *r);
MAY_YIELD enum err webdav_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out,
                               struct api_totals *totals, struct api_result *r);
MAY_YIELD enum err webdav_probe(struct api *a, struct api_result *r);
MAY_YIELD enum err webdav_storage(struct api *a, struct api_storage *out, struct api_result *r);
MAY_YIELD enum err webdav_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                                   int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out,
                                   size_t version_n, struct api_result *r);

/* ---- webdav/session.c, webdav/cloud.c ---- */
enum err webdav_open(struct api *a, const struct api_conf *conf, const struct http_url *url,
                     struct errinfo *ei) WARN_UNUSED;
void webdav_close(struct api *a);
void webdav_share(struct api *to, const struct api *from);
MAY_YIELD enum err webdav_greet(struct api *a, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err webdav_claim(struct api *a, struct api_result *r);
MAY_YIELD enum err webdav_unclaim(struct api *a, struct api_locks_left *left, struct api_result *r);
MAY_YIELD enum err webdav_sign_in(struct api *a, const char *email, const char *password, struct api_result *r);
void dav_set_login(struct dav *d, const char *user, const char *password);
/* Which flavour answers: fills files and root for the login that is set. */
MAY_YIELD enum err dav_find_files(struct api *a, struct api_result *r);
MAY_YIELD enum err webdav_sign_up(struct api *a, const char *email, const char *password, const char *name,
                                  struct api_result *r);
MAY_YIELD enum err webdav_signup_status(struct api *a, bool *enabled, struct api_result *r);
/* On Nextcloud with its administrator's login: whether all others are ours. *admin false: it is no administrator's. */
MAY_YIELD enum err dav_cloud_users(struct api *a, bool *admin, bool *strangers, struct api_result *r);

/* ---- webdav/write.c, webdav/save.c ---- */
MAY_YIELD enum err webdav_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                                        struct drive_file *out, struct api_result *r);
MAY_YIELD enum err webdav_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                                 struct api_result *r);
MAY_YIELD enum err webdav_replace(struct api *a, const char *id, const char *name, const char *version,
                                  const char *lock_id, const struct content *c, struct arena *mem,
                                  struct drive_file *out, struct api_result *r);
MAY_YIELD enum err webdav_rename(struct api *a, const char *id, const char *name, struct arena *mem,
                                 struct drive_file *out, struct api_result *r);
MAY_YIELD enum err webdav_move(struct api *a, const char *const *ids, size_t n, const char *parent,
                               struct api_result *r);
MAY_YIELD enum err webdav_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                               struct api_result *r);
MAY_YIELD enum err webdav_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job,
                                struct api_result *r);
#endif
