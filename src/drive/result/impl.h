#ifndef DRIVE_RESULT_IMPL_H
#define DRIVE_RESULT_IMPL_H
/* Shared by the renderings of a result: result.c, result/json.c, result/text.c. Layer 2. */
#include "drive/result/result.h"

/* What makes a run unhealthy although it came to its end. */
struct result_verdict {
    uint64_t failed, violated, missed;
};

struct result_verdict result_verdict(const struct result *r);
/* The whole document; exit_status is told as it is given. */
enum err result_render_json(const struct result *r, int exit_status, struct buf *out) WARN_UNUSED;
#endif
