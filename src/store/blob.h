#ifndef STORE_BLOB_H
#define STORE_BLOB_H
/* An S3 bucket. Objects travel by libs3 in worker threads (its calls block). Bucket calls and multi-delete, whose paths
 * libs3 signs in a way that some stores refuse, and copies go as small SigV4 requests over httpc (measured.md 1). Keys
 * are [A-Za-z0-9/_.-] only. What the store refuses or fails to answer is ERR_STORE with its reason; a store that stays
 * silent is given up after 15 s, and from then on only one call at a time tries it while the others fail at once.
 * The owner of libs3.h. Layer 1; one loop's thread. */
#include "net/httpc.h"
#include "net/work.h"

struct blob;
struct blob_conf { /* copied; region NULL: us-east-1 */
    const char *endpoint, *bucket, *access_key, *secret_key, *region;
    bool path_style;
};
/* ERR_USAGE with a sentence when endpoint or bucket cannot be, ERR_SAFETY when the guard forbids the host. Nothing is
 * asked of the store yet. */
enum err blob_new(struct blob **out, struct loop *l, struct httpc *h, struct work *w, const struct blob_conf *conf,
                  struct errinfo *ei) WARN_UNUSED;
void blob_free(struct blob **b); /* no call may be running */

/* Exactly size bytes are read from src (a wpipe that the caller writes meanwhile); fewer, or an error on it, is
 * ERR_CANCELLED and nothing is stored. The read side of src is closed in the end, so that its writer never waits. */
MAY_YIELD enum err blob_put_stream(struct blob *b, const char *key, uint64_t size, struct wpipe *src,
                                   struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err blob_put(struct blob *b, const char *key, const void *data, size_t n,
                            struct errinfo *ei) WARN_UNUSED;
/* Bytes [offset, offset+length) go into dst (closed at the end, with the error if one came). length 0: to the end.
 * ERR_NOTFOUND; ERR_CANCELLED when dst's reader closed it. An answer cut short is ERR_STORE. */
MAY_YIELD enum err blob_get_stream(struct blob *b, const char *key, uint64_t offset, uint64_t length, struct wpipe *dst,
                                   struct errinfo *ei) WARN_UNUSED;
/* Appends to out; more than its maximum is ERR_LIMIT. */
MAY_YIELD enum err blob_get(struct blob *b, const char *key, uint64_t offset, uint64_t length, struct buf *out,
                            struct errinfo *ei) WARN_UNUSED;
struct blob_info {
    uint64_t size;
    struct wall modified;
};
MAY_YIELD enum err blob_head(struct blob *b, const char *key, struct blob_info *out, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err blob_copy(struct blob *b, const char *from, const char *to, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err blob_delete(struct blob *b, const char *key, struct errinfo *ei) WARN_UNUSED; /* absent is fine */

/* Deletes n keys in batches of <= 1000 by multi-delete where the store has it (probed once), else one by one; *failed
 * counts the keys that the store refused to delete: with any, ERR_STORE and the first reason, after all were tried. */
MAY_YIELD enum err blob_delete_many(struct blob *b, const char *const *keys, size_t n, size_t *failed,
                                    struct errinfo *ei) WARN_UNUSED;
bool blob_has_multi_delete(const struct blob *b); /* known after the first blob_delete_many */
struct blob_deletes {
    uint64_t keys, requests; /* keys: deleted, absent ones too */
    int multi;               /* 1: in batches, 0: one by one, -1: not known yet */
};
struct blob_deletes blob_deletes(const struct blob *b); /* since blob_new */
/* All keys below prefix, page by page in key order, bounded memory. fn may yield; false stops. */
MAY_YIELD enum err blob_list(struct blob *b, const char *prefix,
                             bool (*fn)(void *arg, const char *key, const struct blob_info *info), void *arg,
                             struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err blob_bucket_create(struct blob *b, struct errinfo *ei) WARN_UNUSED; /* existing is fine */
/* Head, list, write, read and delete of a probe object: the storage-config test. The message names the step that
 * failed. */
MAY_YIELD enum err blob_probe(struct blob *b, struct errinfo *ei) WARN_UNUSED;
#endif
