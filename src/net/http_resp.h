#ifndef NET_HTTP_RESP_H
#define NET_HTTP_RESP_H
/* An answer of the HTTP client (httpc_perform), and what its header says. The caller of the request owns it. Layer 1.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

struct http_resp {
    int status; /* 0: no answer */
    struct buf body;
    struct buf headers; /* the raw final header block */
    uint64_t bytes_up, bytes_down;
    struct mono sent, first_byte, done; /* handed to libcurl; first answer byte (us 0: none); finished */
    int64_t connect_us;                 /* with TLS; 0 on a reused connection */
    bool reused;
    bool request_sent; /* false: certainly never reached the server, so the outcome is "not done" */
    unsigned retries;  /* see httpc_perform */
};
void http_resp_done(struct http_resp *r);
/* The last header of that name, trimmed; {NULL,0} when absent. */
struct sv http_resp_header(const struct http_resp *r, const char *name);
/* Calls fn for each header of that name (Set-Cookie). */
void http_resp_each_header(const struct http_resp *r, const char *name, void (*fn)(void *arg, struct sv value),
                           void *arg);
#endif
