#ifndef DRIVE_RESULT_IMPL_H
#define DRIVE_RESULT_IMPL_H
/* Shared by the files that render a result. Layer 2. */
#include "drive/result/rendering.h"

/* What makes a run unhealthy although it came to its end. */
struct result_verdict {
    bool known; /* false: it did not end by itself, or there was nothing to judge */
    uint64_t failed, violated, missed, not_run;
    uint64_t not_judged; /* thresholds: neither met nor missed, exit status 3 where nothing is bad */
};

struct result_verdict result_verdict(const struct result *r);
#define VERDICT_TEXT_MAX 1024
bool result_is_bad(const struct result_verdict *v);
/* "healthy, 1 check not run", "not healthy: 2 operations failed (save), 1 check violated (ledger)", "not judged: 1
 * threshold (save.p99<1s)", each with "…, but the generator was the limit: no figures" where that is so; "" when it is
 * not known. dst holds VERDICT_TEXT_MAX bytes. */
char *result_verdict_text(const struct result *r, char *dst);
/* The whole document; exit_status is told as it is given. */
enum err result_render_json(const struct result *r, int exit_status, struct buf *out) WARN_UNUSED;

/* The forms, one a file: rows of rendering.c. */
enum err rendering_json(const struct doc *d, struct buf *out) WARN_UNUSED;
enum err rendering_csv(const struct doc *d, struct buf *out) WARN_UNUSED;
enum err rendering_html(const struct doc *d, struct buf *out) WARN_UNUSED;
enum err rendering_junit(const struct doc *d, struct buf *out) WARN_UNUSED;
enum err rendering_prometheus(const struct doc *d, struct buf *out) WARN_UNUSED;
enum err rendering_hdr(const struct doc *d, struct buf *out) WARN_UNUSED;
#endif
