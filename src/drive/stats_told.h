#ifndef DRIVE_STATS_TOLD_H
#define DRIVE_STATS_TOLD_H
/* A command's counters as they are told: the table and the failure reasons for people, the JSON for programs. Layer 2.
 */
#include "base/json.h"
#include "drive/stats.h"
#include <stdio.h>

/* One line an operation that occurred: ok, failed, p50, p95, p99, slowest in ms since it was sent, "-" for none; below
 * it those since it was due, where they differ; then how late the latest was sent. */
void stats_print_table(const struct stats *s, FILE *out, bool color);
/* The most common first; nothing when there are none. */
void stats_print_reasons(const struct stats *s, FILE *out, size_t most);
/* "requests", "failed", "causes", "operations", "failures" and what was waited, into the open object. */
void stats_write_json(const struct stats *s, struct jsonw *w);
#endif
