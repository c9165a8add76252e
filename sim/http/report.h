#ifndef SIM_HTTP_REPORT_H
#define SIM_HTTP_REPORT_H
/* The classic stress report: what was asked, how it ended, connection times, and the percentile table that people know
 * from ab. Layer 3. */
#include "drive/cmd.h"
#include "net/stress.h"

struct http_report;
/* connections, rate as asked (0: closed loop); the rest comes with the samples. */
struct http_report *http_report_new(unsigned connections, double rate);
void http_report_free(struct http_report **r);
void http_report_add(struct http_report *r, const struct stress_sample *s);
uint64_t http_report_ended(const struct http_report *r); /* answered or failed */
struct http_report_head {
    const char *host, *path;
    int port;
};
void http_report_print(const struct http_report *r, const struct http_report_head *head, const struct stress_info *info,
                       int64_t took_us, FILE *out);
/* The same as the JSON's "http", and its plain numbers for --fail-on ("http.requests_per_s>1000"). */
void http_report_fill(const struct http_report *r, const struct stress_info *info, int64_t took_us, struct result *out);
#endif
