#include "drive/api/ranged.h"
#include <stdio.h>

struct ranged ranged_of(uint64_t offset, uint64_t length, const struct http_resp *resp,
                        int (*sink)(void *arg, const char *p, size_t n), void *arg)
{
    return (struct ranged){.sink = sink,
                           .arg = arg,
                           .resp = resp,
                           .ranged = offset || length,
                           .from = offset,
                           .to = length ? offset + length : UINT64_MAX};
}

int ranged_sink(void *ranged, const char *p, size_t n)
{
    struct ranged *d = ranged;
    if (d->ranged && d->resp->status == 200) {
        uint64_t begin = d->at;
        d->at += n;
        uint64_t first = begin < d->from ? d->from : begin, last = d->at < d->to ? d->at : d->to;
        if (first >= last)
            return 0;
        p += first - begin;
        n = (size_t)(last - first);
    }
    return d->sink ? d->sink(d->arg, p, n) : 0;
}

void ranged_header(char *dst, size_t n, uint64_t offset, uint64_t length)
{
    if (length)
        snprintf(dst, n, "Range: bytes=%llu-%llu", (unsigned long long)offset,
                 (unsigned long long)(offset + length - 1));
    else
        snprintf(dst, n, "Range: bytes=%llu-", (unsigned long long)offset);
}
