#ifndef DRIVE_WEBDAV_XML_H
#define DRIVE_WEBDAV_XML_H
/* Multi-status answers (RFC 4918, 14.16) taken apart while they come: one struct an item, told as soon as it is whole.
 * Pure. Layer 2. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

struct dav_item {
    const char *href;                    /* as it came: encoded, absolute or a path */
    int status;                          /* of the item as a whole; 0: it has properties instead */
    bool folder, has_props;              /* has_props: at least one that was asked for is there */
    const char *etag, *own_id;           /* NULL: not told; own_id: oc:fileid */
    const char *checksum;                /* oc:checksums, "SHA1:… MD5:…" */
    const char *trashed_from;            /* of what is in the trash-bin: its path among the user's files */
    const char *lock_owner, *lock_token; /* of the lock on it, as lockdiscovery tells; NULL: none */
    const char *lock_timeout;            /* "Second-120", "Infinite"; NULL: not told */
    int64_t size, total;                 /* total: oc:size, of all in a folder; -1: not told */
    int64_t used, available;             /* quota; -1: not told, or unlimited */
    struct wall modified;                /* us 0: not told */
};
struct dav_multistatus;
/* item false ends it with ERR_PARSE; strings live until it returns. */
struct dav_multistatus *dav_multistatus_new(bool (*item)(void *arg, const struct dav_item *item), void *arg);
void dav_multistatus_free(struct dav_multistatus **m);
enum err dav_multistatus_feed(struct dav_multistatus *m, const char *p, size_t n) WARN_UNUSED;
enum err dav_multistatus_end(struct dav_multistatus *m) WARN_UNUSED; /* ERR_PARSE: not whole, or no multi-status */

/* The sentence of an error's body: <s:message>, or an HTML page's title. False: it has none. */
bool dav_error_text(struct sv body, char *dst, size_t n);
#endif
