#ifndef NET_HTTP_DATE_H
#define NET_HTTP_DATE_H
/* Dates of HTTP headers (RFC 9110, 5.6.7), and how long an answer asks to wait. Pure. Layer 1. */
#include "base/clock.h"
#include "net/httpc.h"

/* The three forms: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994". A
 * year of two digits is the latest one that is no more than 50 years after now. Tolerant of what is met in the wild and
 * can be read in one way only: UTC or an offset for GMT, days and hours of one digit, any case. */
bool http_date_parse(struct sv s, struct wall now, struct wall *out);
char *http_date_format(char *dst, size_t n, struct wall t); /* the first form; dst of 32 bytes is enough. Returns dst */
/* Retry-After, in seconds or as a date that is compared with the answer's own Date (now, where it has none): the clocks
 * may differ. Of several the longest; a fraction counts as a whole second; at most HTTP_WAIT_MAX_US. 0: a date that is
 * over. -1: there is none that can be read. */
int64_t http_retry_after_us(const struct http_resp *r, struct wall now);
/* The same, or what the RateLimit-Reset or X-RateLimit-Reset of a 429 says, in seconds or as a Unix time. */
int64_t http_wait_us(const struct http_resp *r, struct wall now);
#define HTTP_WAIT_MAX_US (INT64_MAX / 2)
#endif
