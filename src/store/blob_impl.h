#ifndef STORE_BLOB_IMPL_H
#define STORE_BLOB_IMPL_H
/* What blob.c (objects) and blob_bucket.c (bucket calls) share. */
#include "store/blob.h"
#include <pthread.h>

enum multi_delete { MULTI_UNKNOWN, MULTI_YES, MULTI_NO };

struct blob {
    struct loop *loop;
    struct work *work;
    struct httpc_peer *peer;
    char *bucket, *access_key, *secret_key, *region;
    bool path_style, https;
    char *connect_host; /* without brackets */
    int port;
    char *host;      /* host[:port] of the endpoint: libs3's hostName */
    char *host_line; /* what the Host header of a bucket call says: with the bucket's name before it in virtual-host
                        style */
    enum multi_delete multi;
    uint64_t deleted, delete_requests; /* keys, calls; of the loop's thread */
    pthread_mutex_t lock;              /* of what follows: worker threads share it */
    bool proven;                       /* the last call got an answer */
    bool silent;                       /* the last call did not: one at a time tries, not before quiet_until */
    bool trying;
    struct mono quiet_until;
};
bool blob_key_valid(const char *key);
#endif
