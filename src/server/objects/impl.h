#ifndef SERVER_OBJECTS_IMPL_H
#define SERVER_OBJECTS_IMPL_H
/* What the files content*.c share. Layer 3. */
#include "drive/model.h"
#include "net/work.h"
#include "server/objects/content.h"
#include "server/objects/seal.h"
#include "store/blob.h"

#define CONTENT_PIPE_LEN   131072
#define CONTENT_MEMORY_LEN (SEAL_HEADER_LEN + CONTENT_MEMORY_MAX / SEAL_SEGMENT_LEN * SEAL_SEALED_LEN)
/* What a transfer in pieces costs at most: its buffer, the pipe, libcurl's buffers, the thread. */
#define CONTENT_STREAM_COST 524288
struct in_flight;
struct content {
    struct seal_key key;
    int64_t memory_max;
    struct sem memory;           /* bytes that uploads may still take, of memory_max */
    struct sem puts, gets;       /* transfers in pieces that may still start. Who holds a get never waits for a put */
    struct in_flight *in_flight; /* keys put and not yet settled */
    bool left_behind;            /* a deletion failed */
};

/* An object on its way into the store, piece by piece: the caller writes while a coroutine of its own puts. */
struct content_putting {
    struct server *server;
    struct blob *blob;
    char key[CONTENT_KEY_MAX];
    uint64_t size, written;
    struct wpipe *pipe;
    bool broken; /* a write failed: err says why, in the end */
    struct group group;
    enum err err;
    struct errinfo ei;
};
MAY_YIELD void content_putting_start(struct content_putting *p, struct server *s, const char *account_id,
                                     uint64_t size);
MAY_YIELD enum err content_putting_write(struct content_putting *p, const void *data, size_t n) WARN_UNUSED;
/* Ends it: cleanly when cause is ERR_OK, otherwise by giving up. Returns the cause, or why the put failed when it was
 * the put that did: a write that failed knows only that. */
MAY_YIELD enum err content_putting_end(struct content_putting *p, enum err cause, struct errinfo *ei) WARN_UNUSED;

/* And one on its way out: read side of the same. length 0: to the end. */
struct content_getting {
    struct server *server;
    struct blob *blob;
    const char *key;
    uint64_t offset, length;
    struct wpipe *pipe;
    struct group group;
    enum err err;
    struct errinfo ei;
};
MAY_YIELD void content_getting_start(struct content_getting *g, struct server *s, const char *key, uint64_t offset,
                                     uint64_t length);
/* Exactly n bytes. */
MAY_YIELD enum err content_getting_read(struct content_getting *g, void *data, size_t n) WARN_UNUSED;
MAY_YIELD enum err content_getting_end(struct content_getting *g, struct errinfo *ei) WARN_UNUSED;

/* An object whose put failed. */
void content_put_failed(struct server *s, const char *key);
/* The connected bucket, or ERR_STORE. */
enum err content_blob(struct server *s, struct blob **out, struct errinfo *ei) WARN_UNUSED;
/* A failure of the store as one: whatever kept us from it is ERR_STORE, but ERR_NOTFOUND stays, and ERR_CANCELLED (the
 * other side of the transfer was too slow for it) becomes ERR_TIMEOUT. */
enum err content_store_err(enum err e, struct errinfo *ei) WARN_UNUSED;
#endif
