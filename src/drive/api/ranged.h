#ifndef DRIVE_API_RANGED_H
#define DRIVE_API_RANGED_H
/* A part of a body, asked for by Range: stands between the connection and the caller's sink, since a server that
 * ignores Range sends the whole. Layer 2. */
#include "net/httpc.h"

struct ranged {
    int (*sink)(void *arg, const char *p, size_t n); /* NULL: dropped */
    void *arg;
    const struct http_resp *resp;
    bool ranged;
    uint64_t at, from, to; /* of the body that comes; to: exclusive, UINT64_MAX: the end */
};
/* length 0: to the end; both 0: the whole. */
struct ranged ranged_of(uint64_t offset, uint64_t length, const struct http_resp *resp,
                        int (*sink)(void *arg, const char *p, size_t n), void *arg);
int ranged_sink(void *ranged, const char *p, size_t n); /* an http_req's sink */
void ranged_header(char *dst, size_t n, uint64_t offset, uint64_t length);
#endif
