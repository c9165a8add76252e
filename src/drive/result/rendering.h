#ifndef DRIVE_RESULT_RENDERING_H
#define DRIVE_RESULT_RENDERING_H
/* The forms in which a result can be had as a file: a row each, an option of every command each (--KEY FILE), and of
 * `sim report` for a run that is over. All are made from the same document. Layer 2. */
#include "drive/result/doc.h"

/* symbol, key, help */
/* clang-format off */
#define RENDERINGS(X) \
    X(JSON, json, "write the result as JSON; - is stdout") \
    X(CSV, csv, "write one line an operation as CSV; - is stdout") \
    X(HTML, html, "write a page with plots, complete in itself") \
    X(JUNIT, junit, "write checks, thresholds and conditions as JUnit XML") \
    X(PROMETHEUS, prometheus, "write the figures as Prometheus text, for its textfile\ncollector") \
    X(HDR, hdr, "write the latencies along time as an HdrHistogram log")
/* clang-format on */
enum rendering {
#define X(sym, key, help) RENDERING_##sym,
    RENDERINGS(X)
#undef X
        RENDERING_COUNT
};
const char *rendering_key(enum rendering which);
/* ERR_LIMIT when it does not fit. */
enum err rendering_make(enum rendering which, const struct doc *d, struct buf *out) WARN_UNUSED;
/* Whether this form shows the course along time, so that a command has to keep it. */
bool rendering_shows_course(enum rendering which);
#endif
