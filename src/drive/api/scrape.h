#ifndef DRIVE_API_SCRAPE_H
#define DRIVE_API_SCRAPE_H
/* What a server says of itself in GET /metrics (Prometheus' text format). Layer 2. */
#include "base/buf.h"
#include "net/httpc.h"

/* The whole text into *out, which this initialises and the caller buf_done's. ERR_NOTFOUND when there is no such page
 * for us. count: of the request. */
MAY_YIELD enum err scrape(struct httpc *h, const char *base_url, int64_t timeout_us, struct httpc_counters count,
                          struct buf *out, struct errinfo *ei) WARN_UNUSED;
/* The value of a figure without labels; false: not there. */
bool scrape_value(const char *text, const char *name, double *out);
#endif
